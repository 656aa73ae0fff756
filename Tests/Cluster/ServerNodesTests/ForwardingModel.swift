import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// A client with two streams and two calls of one actor, which moves from node A to another node. The node of the client forwards them with the
/// machine of the product, and the model performs its actions. Each step is one event; `steps` lists those that are possible.
///
/// The versions of the actor are numbers. The client requires every one, in order, and each response after the version of its call.
struct ForwardingModel {
    enum Move: CaseIterable {
        /// A reports the end of its streams.
        case announced
        /// A reports nothing.
        case silent
        /// A ends with its channel; messages that it has sent may be lost.
        case crash
        /// The next owner is the node of the client.
        case here
    }

    /// An error in the machine or its use that the check must find.
    enum Mutant: CaseIterable {
        case catchesUpAtStart, passesOnUpdatesOfFormerOwner, forgetsPosition, keepsFormerStream, keepsCancelledStart
        case answersWhileResuming, keepsStartOfFormerOwner
    }

    enum Step {
        case observe(Int), call(Int), cancel
        case move, notice, lookUp, pauseEnds, releaseResponses, resumeHere, loseChannel
        /// The node handles its oldest message; if `fails`, it cannot resume the stream now.
        case handle(node: Int, fails: Bool)
        case receive(from: Int)
    }

    /// A message between the nodes.
    struct Message {
        enum Kind: UInt8 {
            case observe, call, resume, unsubscribe
            case started, resumed, update, caughtUp, moved, refusedRequest, refusedCall, failed, response
        }

        let kind: Kind
        /// The number of the call or observation.
        var number: UInt8 = 0
        var name: UInt8 = 0
        var version: UInt8 = 0
        var attempt = ForwardedStreams.Attempt(streamID: [], number: 0)
    }

    /// The state of a stream at the client.
    struct Observation {
        enum State: UInt8 { case idle, requested, started, cancelled }

        var state = State.idle
        var name: UInt8 = 0
        var version: UInt8 = 0
    }

    static let actor = ActorName("x")
    static let slot = ClusterSlot(of: "x")
    /// The nodes A and B, and the channels to them.
    private static let nodes = ["a", "b"].map { name in (try? ClusterNode(name: name))! }
    private static func channel(to node: Int) -> UInt64 { UInt64(node + 1) }
    private static let here: UInt8 = 2
    private static let unknown: UInt8 = 3
    private static let firstCall: UInt8 = 2

    let kind: Move
    let mutant: Mutant?
    let callCount: Int
    private var mayFail: Bool
    private var mayCancel: Bool

    // The node of the client.
    private var streams = ForwardedStreams()
    private var calls = OrderedResend<UInt8>()
    /// The node that owner lookups name.
    private var knownOwner: UInt8 = 0
    private var hasNotice = false
    private var delayed: [UInt8] = []
    private var mustCheckDelayed = false
    private var requests: [UInt8: ForwardedStream] = [:]
    /// The nodes to which calls and observations were sent.
    private var sentTo: [UInt8: UInt8] = [:]

    // The client.
    private var observations = [Observation(), Observation()]
    private var calledCount = 0

    // The owners.
    private var owner: UInt8 = 0
    private var version: UInt8 = 1
    private var toNode: [[Message]] = [[], []]
    private var fromNode: [[Message]] = [[], []]
    private var subscribers: [[UInt8]] = [[], []]
    private var nameCount: [UInt8] = [0, 0]
    private var isLost = false
    /// The streams that the client's node serves, by observation.
    private var localStreams: [UInt8] = []

    /// The steps that led here.
    private var trail: [Step] = []
    /// The first promise that was broken.
    private(set) var violation: String?

    init(_ kind: Move, calls: Int, fails: Bool, cancels: Bool, mutant: Mutant? = nil) {
        (self.kind, callCount, self.mutant) = (kind, calls, mutant)
        (mayFail, mayCancel) = (fails, cancels)
    }

    // MARK: Steps

    var steps: [Step] {
        var steps: [Step] = []
        // A client sends the second observation after the first: they are alike.
        if let next = observations.firstIndex(where: { $0.state == .idle }) { steps.append(.observe(next)) }
        if calledCount < callCount { steps.append(.call(calledCount)) }
        if mayCancel, observations[0].state == .started { steps.append(.cancel) }
        if owner == 0 { steps.append(.move) } else if !hasNotice { steps.append(.notice) }
        let isWaiting = !calls.waiting.isEmpty || streams.hasQueued(in: Self.slot)
        if isWaiting, knownOwner == Self.unknown, owner == 0 || hasNotice { steps.append(.lookUp) }
        if streams.hasPaused(in: Self.slot) { steps.append(.pauseEnds) }
        if mustCheckDelayed { steps.append(.releaseResponses) }
        if !streams.resumingHere.isEmpty { steps.append(.resumeHere) }
        if kind == .crash, owner != 0, !isLost { steps.append(.loseChannel) }
        for node in 0...1 {
            if let first = toNode[node].first, node == 1 || kind != .crash || owner == 0 {
                steps.append(.handle(node: node, fails: false))
                if mayFail, first.kind == .resume, owner == node { steps.append(.handle(node: node, fails: true)) }
            }
            if !fromNode[node].isEmpty { steps.append(.receive(from: node)) }
        }
        return steps
    }

    mutating func perform(_ step: Step) {
        trail.append(step)
        switch step {
        case .observe(let number):
            observations[number].state = .requested
            requests[UInt8(number)] = ForwardedStream(
                callID: [UInt8(number)], actor: Self.actor, target: "", filter: nil)
            forward(UInt8(number))
        case .call(let number):
            calledCount += 1
            forward(Self.firstCall + UInt8(number))
        case .cancel: cancel()
        case .move: move()
        case .notice: receiveNotice()
        case .lookUp:
            knownOwner = owner
            sendWaiting()
        case .pauseEnds:
            endPauses()
            sendWaiting()
        case .releaseResponses: releaseResponses()
        case .resumeHere: resumeHere()
        case .loseChannel: loseChannel()
        case .handle(let node, let fails):
            handle(toNode[node].removeFirst(), at: node, fails: fails)
        case .receive(let node): receive(fromNode[node].removeFirst(), from: node)
        }
    }

    // MARK: The node of the client

    private mutating func forward(_ number: UInt8) {
        endPauses()
        calls.addCall(number, UInt64(number))
        sendWaiting()
    }

    private mutating func endPauses() {
        for name in streams.names(in: Self.slot, .paused) { _ = streams.handle(.pauseEnded, of: name) }
    }

    /// Sends what waits for the owner, as `RemoteCallForwarder.send` does.
    private mutating func sendWaiting() {
        guard knownOwner != Self.unknown else { return }
        let isHere = knownOwner == Self.here
        for name in streams.names(in: Self.slot, .queued) {
            input(isHere ? .ownerIsHere : .ownerFound(over: Self.channel(to: Int(knownOwner))), name)
        }
        sendCalls()
    }

    private mutating func sendCalls() {
        let isHere = knownOwner == Self.here
        guard !calls.waiting.isEmpty, !calls.awaitsResponses,
            calls.maySend(to: Self.nodes[isHere ? 1 : Int(knownOwner)])
        else { return }
        for number in calls.removeAll() {
            if isHere {
                handleHere(number)
            } else {
                calls.didSend(UInt64(number), to: Self.nodes[Int(knownOwner)])
                sentTo[number] = knownOwner
                let kind = number < Self.firstCall ? Message.Kind.observe : .call
                toNode[Int(knownOwner)].append(Message(kind: kind, number: number))
            }
        }
    }

    /// Passes an input to the stream with this name, and performs the action.
    private mutating func input(_ input: ForwardedStream.Input, _ name: [UInt8]) {
        guard let stream = streams[name] else { return }
        let before = streams.awaitedCount
        let action = streams.handle(input, of: name)
        if streams.awaitedCount < before { mustCheckDelayed = !delayed.isEmpty }
        switch action {
        case .none, .passOn, .passOnStart, .share, .fail, .pause, .lookUpOwner: break
        case .replaceOwner(let channel):
            if Self.channel(to: Int(knownOwner)) == channel { knownOwner = Self.unknown }
        case .sendRequest(let channel):
            guard let attempt = streams.attempt(for: name) else { return }
            toNode[Int(channel) - 1].append(
                Message(kind: .resume, number: stream.callID[0], version: UInt8(stream.sequence), attempt: attempt))
        case .resumeHere: break
        case .unsubscribe(let channel), .leave(let channel):
            if mutant == .keepsFormerStream, case .leave = action { return }
            toNode[Int(channel) - 1].append(Message(kind: .unsubscribe, name: name[0]))
        }
    }

    /// The streams in the order of their last changes of phase.
    private var ordered: [ForwardedStream] {
        streams.all.sorted {
            (streams.attempt(for: $0.streamID)?.number ?? 0) < (streams.attempt(for: $1.streamID)?.number ?? 0)
        }
    }

    private var awaitsStreams: Bool {
        guard mutant == .answersWhileResuming else { return streams.awaits(Self.actor) }
        return streams.all.contains { $0.phase.isAwaited && $0.phase.source != nil }
    }

    private mutating func answer(_ version: UInt8) {
        if awaitsStreams { delayed.append(version) } else { deliverResponse(version) }
    }

    private mutating func releaseResponses() {
        mustCheckDelayed = false
        guard !awaitsStreams else { return }
        for version in delayed { deliverResponse(version) }
        delayed = []
    }

    private mutating func receiveNotice() {
        hasNotice = true
        if knownOwner != Self.unknown { knownOwner = owner }
        let channel = owner == 1 ? Self.channel(to: 1) : nil
        for stream in ordered { input(.ownerChanged(to: channel), stream.streamID) }
        sendWaiting()
    }

    private mutating func loseChannel() {
        isLost = true
        toNode[0] = []
        fromNode[0] = []
        subscribers[0] = []
        if knownOwner == 0 { knownOwner = Self.unknown }
        for stream in ordered { input(.channelLost(Self.channel(to: 0)), stream.streamID) }
        // An observation changes nothing and is sent again; the outcome of a call is unknown.
        for number in calls.inFlight.sorted() where sentTo[UInt8(number)] == 0 {
            calls.didEnd(number)
            if number < Self.firstCall { calls.addCall(UInt8(number), number) }
        }
        sendWaiting()
    }

    private mutating func receive(_ message: Message, from node: Int) {
        let channel = Self.channel(to: node)
        let name = [message.name]
        switch message.kind {
        case .started:
            guard var stream = requests.removeValue(forKey: message.number) else { return }
            calls.didEnd(UInt64(message.number))
            let start = ForwardedStream.Start(streamID: name, epoch: "e", position: nil)
            if stream.handle(.started(start, over: channel)) == .passOnStart {
                streams.insert(stream)
                markStarted(Int(message.number), message.name)
                // As the forwarder does when its reactor has learned of another owner.
                if hasNotice, Int(owner) != node, mutant != .keepsStartOfFormerOwner {
                    input(.ownerChanged(to: owner == 1 ? Self.channel(to: 1) : nil), name)
                }
            }
            sendWaiting()
        case .resumed:
            let start = ForwardedStream.Start(streamID: name, epoch: "e", position: nil)
            // The client has ended the stream, or another node resumes it.
            guard let stream = streams[message.attempt] else {
                if mutant != .keepsCancelledStart {
                    toNode[node].append(Message(kind: .unsubscribe, name: message.name))
                }
                return
            }
            let before = streams.awaitedCount
            if streams.handle(.started(start, over: channel), of: message.attempt.streamID) == .passOnStart {
                markStarted(Int(stream.callID[0]), message.name)
                if mutant == .catchesUpAtStart { input(.caughtUp(over: channel), name) }
            }
            if streams.awaitedCount < before { mustCheckDelayed = !delayed.isEmpty }
        case .update:
            if mutant == .passesOnUpdatesOfFormerOwner, streams[name] != nil {
                _ = streams.receiveUpdate(of: name, UInt64(message.version), over: channel)
                return deliverUpdate(message)
            }
            let sequence = mutant == .forgetsPosition ? nil : UInt64(message.version)
            if streams.receiveUpdate(of: name, sequence, over: channel) { deliverUpdate(message) }
        case .caughtUp: input(.caughtUp(over: channel), name)
        case .moved:
            input(.moved(over: channel), name)
            sendWaiting()
        case .refusedRequest:
            if streams[message.attempt] != nil { input(.refused(over: channel), message.attempt.streamID) }
            sendWaiting()
        case .failed:
            if streams[message.attempt] != nil {
                input(.failed(isTemporary: true, over: channel), message.attempt.streamID)
            }
        case .refusedCall:
            if Int(knownOwner) == node { knownOwner = Self.unknown }
            calls.requeue(message.number, UInt64(message.number))
            sendWaiting()
        case .response:
            calls.didEnd(UInt64(message.number))
            answer(message.version)
            sendWaiting()
        case .observe, .call, .resume, .unsubscribe: break
        }
    }

    private mutating func handleHere(_ number: UInt8) {
        if number < Self.firstCall {
            requests[number] = nil
            markStarted(Int(number), 0)
            localStreams.append(number)
            observations[Int(number)].version = version
        } else {
            version += 1
            for number in localStreams { deliver(version, to: Int(number)) }
            answer(version)
        }
    }

    /// The connection has resumed the streams at the node of the client.
    private mutating func resumeHere() {
        for stream in ordered where stream.phase == .resumingHere {
            let name = stream.streamID
            let number = stream.callID[0]
            // `RemoteCallForwarder.awaits` asks the connection, which checks its delayed responses itself.
            _ = streams.handle(.resumedHere, of: name)
            mustCheckDelayed = !delayed.isEmpty
            guard observations[Int(number)].state == .started else { continue }
            localStreams.append(number)
            for version in (UInt8(stream.sequence) + 1)..<(version + 1) { deliver(version, to: Int(number)) }
        }
    }

    // MARK: The owners

    private mutating func move() {
        owner = kind == .here ? Self.here : 1
        guard kind != .silent, kind != .crash else { return }
        for name in subscribers[0] { fromNode[0].append(Message(kind: .moved, name: name)) }
        subscribers[0] = []
    }

    private mutating func handle(_ message: Message, at node: Int, fails: Bool) {
        if message.kind == .unsubscribe { return subscribers[node].removeAll { $0 == message.name } }
        guard Int(owner) == node else {
            let kind = message.kind == .resume ? Message.Kind.refusedRequest : .refusedCall
            return fromNode[node].append(Message(kind: kind, number: message.number, attempt: message.attempt))
        }
        if fails {
            mayFail = false
            return fromNode[node].append(Message(kind: .failed, attempt: message.attempt))
        }
        guard message.kind != .call else {
            version += 1
            for name in subscribers[node] {
                fromNode[node].append(Message(kind: .update, name: name, version: version))
            }
            return fromNode[node].append(Message(kind: .response, number: message.number, version: version))
        }
        nameCount[node] += 1
        let name = UInt8(node + 1) << 4 | nameCount[node]
        subscribers[node].append(name)
        let isResumption = message.kind == .resume
        fromNode[node].append(
            Message(
                kind: isResumption ? .resumed : .started, number: message.number, name: name,
                attempt: message.attempt))
        for version in (isResumption ? message.version + 1 : version)..<(version + 1) {
            fromNode[node].append(Message(kind: .update, name: name, version: version))
        }
        if isResumption { fromNode[node].append(Message(kind: .caughtUp, name: name)) }
    }

    // MARK: The client

    private mutating func markStarted(_ number: Int, _ name: UInt8) {
        guard observations[number].state != .cancelled else { return fail("a cancelled stream starts") }
        observations[number].state = .started
        observations[number].name = name
    }

    private mutating func cancel() {
        mayCancel = false
        observations[0].state = .cancelled
        localStreams.removeAll { $0 == 0 }
        let name = [observations[0].name]
        guard let stream = streams[name] else { return }
        if stream.phase == .resumingHere { _ = streams.handle(.resumedHere, of: name) } else { input(.cancelled, name) }
        mustCheckDelayed = !delayed.isEmpty
    }

    private mutating func deliverUpdate(_ message: Message) {
        guard let number = observations.firstIndex(where: { $0.state == .started && $0.name == message.name }) else {
            return fail("an update of an unknown stream")
        }
        deliver(message.version, to: number)
    }

    private mutating func deliver(_ version: UInt8, to number: Int) {
        let before = observations[number].version
        guard before == 0 || version == before + 1 else { return fail("version \(version) after \(before)") }
        observations[number].version = version
    }

    private mutating func deliverResponse(_ version: UInt8) {
        for observation in observations where observation.state == .started && observation.version > 0 {
            if observation.version < version { fail("the response of version \(version) after \(observation.version)") }
        }
    }

    private mutating func fail(_ text: String) { violation = violation ?? text }

    /// Checks the promises for the end, when no step is possible.
    mutating func checkEnd() {
        if !delayed.isEmpty { fail("a response was never sent") }
        if !calls.isEmpty { fail("a call was never answered") }
        for observation in observations where observation.state != .cancelled {
            if observation.version != version { fail("the last version was never sent") }
        }
        let names = streams.all.compactMap { $0.phase.source == nil ? nil : $0.streamID[0] }
        if subscribers.joined().sorted() != names.sorted() { fail("the owners have \(subscribers), the node \(names)") }
    }

    // MARK: Identity

    /// The bytes that distinguish the state. Numbers of attempts count only by their order, and old ones not at all.
    var key: [UInt8] {
        var key: [UInt8] = [
            knownOwner, owner, version, UInt8(calledCount), nameCount[0], nameCount[1],
        ]
        for flag in [hasNotice, mayFail, mayCancel, mustCheckDelayed, isLost, calls.awaitsResponses] {
            key.append(flag ? 1 : 0)
        }
        for observation in observations {
            key += [observation.state.rawValue, observation.name, observation.version]
        }
        key.append(UInt8(requests.count))
        for (number, call) in calls.waiting { key += [UInt8(number), call] }
        key.append(255)
        for number in calls.inFlight.sorted() { key += [UInt8(number), sentTo[UInt8(number)] ?? 0] }
        key.append(255)
        for stream in ordered {
            let phase: (UInt8, UInt64) =
                switch stream.phase {
                case .requested: (0, 0)
                case .queued: (1, 0)
                case .paused: (2, 0)
                case .resuming(let channel): (3, channel)
                case .resumingHere: (4, 0)
                case .catchingUp(let channel): (5, channel)
                case .live(let channel): (6, channel)
                case .ended: (7, 0)
                }
            key += [stream.streamID[0], stream.callID[0], UInt8(stream.sequence), phase.0, UInt8(phase.1)]
        }
        for list in [delayed, localStreams] + subscribers {
            key.append(255)
            key += list
        }
        for list in toNode + fromNode {
            key.append(255)
            for message in list {
                let isCurrent = message.attempt.streamID.isEmpty || streams[message.attempt] != nil
                key += [
                    message.kind.rawValue, message.number, message.name, message.version,
                    isCurrent ? message.attempt.streamID.first ?? 0 : 254,
                ]
            }
        }
        return key
    }
}

extension ForwardingModel {
    /// Performs all orders of steps, up to a number of states.
    ///
    /// - Returns: The number of states, the number of ends, and the first broken promise with the steps that lead to it.
    static func explore(_ first: Self, upTo limit: Int) -> (states: Int, ends: Int, violation: String?) {
        var seen: Set<[UInt8]> = [first.key]
        var stack = [first]
        var ends = 0
        while let state = stack.popLast() {
            let steps = state.steps
            if steps.isEmpty {
                var last = state
                last.checkEnd()
                ends += 1
                if let violation = last.violation { return (seen.count, ends, "\(violation): \(last.trail)") }
            }
            for step in steps {
                var next = state
                next.perform(step)
                if let violation = next.violation { return (seen.count, ends, "\(violation): \(next.trail)") }
                if seen.insert(next.key).inserted { stack.append(next) }
            }
            if seen.count > limit { break }
        }
        return (seen.count, ends, nil)
    }
}
