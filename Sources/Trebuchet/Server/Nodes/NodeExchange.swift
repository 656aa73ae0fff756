internal import Networking
internal import Platform
internal import Relays
internal import Synchronization
internal import TrebuchetCluster

/// One end of a line between two nodes. What comes for it is handled on its reactor, in order.
protocol RelayEnd: AnyObject, Sendable {
    var reactor: Reactor { get }
    /// Whether what comes is handled at once where messages between nodes come in, one after the other, and not on the reactor.
    var isToldInPlace: Bool { get }
    func receive(_ frame: RelayFrame)
    /// Something was lost on the way, or the other node is gone: nothing comes any more.
    ///
    /// - Parameter received: the messages behind so many of the first that were sent over it have surely not arrived.
    func lineDidBreak(received: UInt64)
    /// Too much waited for the other node, and the most of it here: nothing goes on, and what has not arrived is not to be sent again.
    func lineDidOverflow(received: UInt64)
}

extension RelayEnd {
    var isToldInPlace: Bool { false }
}

/// What this node sends to others and gets from them.
///
/// What waits for one node goes in one message when the one before has gone, so order is kept and many share the way. An
/// engine delivers at most once: a message that is missing breaks all lines to its sender, whose ends know what to do. The other node is
/// told, and does the same (`RelayMessage.Epochs`).
final class NodeExchange: Sendable {
    /// Bytes that may wait for one node. Beyond it those lines end for which the most waits, until a quarter of it is free.
    static let mostWaiting = 256 << 20
    /// Of one message's frames; an engine takes at least so much.
    static let messageBytes = 512 << 10
    /// Of a frame's payload: what is larger goes in parts.
    static let partBytes = 256 << 10

    private static let mostAbsences = 3
    private static let roundsBetweenChecks = 8

    private typealias Overflown = ExchangeState.Overflown
    private typealias Line = ExchangeState.Line

    private let engine: any ClusterEngine
    private let mostWaiting: Int
    let node: ClusterNode
    /// True from when an operator has asked for its end.
    let stopRequests = StateRelay(false)
    private let state = Mutex(ExchangeState())
    /// Makes the end of a line that another node opens; nil when it cannot.
    private let open: @Sendable (RelayLine, RelayFrame) -> (any RelayEnd)?
    /// Told of nodes to which something was lost.
    private let didLose: @Sendable (ClusterNode) -> Void

    init(
        _ engine: any ClusterEngine, as node: ClusterNode, mostWaiting: Int = NodeExchange.mostWaiting,
        open: @escaping @Sendable (RelayLine, RelayFrame) -> (any RelayEnd)?,
        didLose: @escaping @Sendable (ClusterNode) -> Void = { _ in }
    ) {
        self.engine = engine
        self.mostWaiting = mostWaiting
        self.node = node
        self.open = open
        self.didLose = didLose
    }

    /// Listens from now on.
    func start() async throws(ClusterEngineError) {
        let inbox = try await engine.listen(as: node) { [weak self] in self?.receive($0) }
        state.withLock { $0.inbox = inbox }
    }

    /// Returns when what waits has been sent, after a second at the latest.
    func flush() async {
        let deadline = MonotonicClock.now &+ 1_000_000_000
        while state.withLock({ $0.peers.values.contains { $0.isSending } }), MonotonicClock.now < deadline {
            try? await Task.sleep(for: .milliseconds(2))
        }
    }

    /// Nothing is sent or received any more, and nobody is told.
    func mute() {
        let inbox = state.withLock { state in
            state.isClosed = true
            for node in Array(state.peers.keys) { state.peers[node]?.clear() }
            defer { state.inbox = nil }
            return state.inbox
        }
        inbox?.cancel()
    }

    /// Nothing is sent or received any more; all lines break.
    func close() {
        mute()
        let ends = state.withLock { state in
            defer { (state.ends, state.peers) = ([:], [:]) }
            return Array(state.ends.values)
        }
        Self.break(ends)
    }

    /// Tells the others that this node is being stopped: it counts as living no more, and is there all the same.
    func leave() {
        let peers = state.withLock { state in
            state.isLeaving = true
            return Array(state.peers.keys)
        }
        for node in peers { send([RelayFrame(.leaving, line: 0)], to: node) }
    }

    // MARK: Lines

    /// A line of this node's to another one.
    func newLine(to node: ClusterNode, _ end: any RelayEnd) -> RelayLine {
        state.withLock { state in
            state.lines += 1
            let line = RelayLine(exchange: self, node: node, number: state.lines, isOwn: true)
            if !state.isClosed { state.ends[Line(node: node, number: line.number, isOwn: true)] = end }
            return line
        }
    }

    /// Nothing comes for it any more.
    func forget(_ line: RelayLine) {
        _ = state.withLock { state in
            if line.isOwn { state.handed[line.number] = nil }
            return state.ends.removeValue(forKey: Line(node: line.node, number: line.number, isOwn: line.isOwn))
        }
    }

    /// Those that something goes to, or comes from.
    var nodes: [ClusterNode] { state.withLock { Array($0.peers.keys) } }

    /// For tests.
    var lineCount: Int { state.withLock { $0.ends.count } }
    var waitingBytes: Int { state.withLock { $0.peers.values.reduce(0) { $0 + $1.waitingBytes } } }

    // MARK: Out

    /// - Parameter departure: held as long as these are in this node's memory.
    func send(_ frames: [RelayFrame], to node: ClusterNode, _ departure: Departure? = nil) {
        let (begins, overflown): (Bool, [Overflown]) = state.withLock { state in
            guard !state.isClosed else { return (false, []) }
            // What is sent over a line that has broken would never be begun.
            let frames = frames.filter { frame in
                guard frame.kind == .toOwner || frame.kind == .toOwnerPart else { return true }
                guard state.ends[Line(node: node, number: frame.line, isOwn: true)] != nil else { return false }
                if frame.kind == .toOwner { state.handed[frame.line, default: 0] += 1 }
                return true
            }
            guard !frames.isEmpty else { return (false, []) }
            state.know(node)
            let begins = state.peers[node]?.add(frames, departure) == true
            return (
                begins,
                state.peers[node]?.waitingBytes ?? 0 > mostWaiting ? state.shed(node, to: mostWaiting / 4 * 3) : []
            )
        }
        for (end, received) in overflown { end.reactor.execute { end.lineDidOverflow(received: received) } }
        guard begins else { return }
        Task { await self.sendAll(to: node) }
    }

    private func sendAll(to node: ClusterNode) async {
        while let (message, departures) = next(for: node) {
            defer { withExtendedLifetime(departures) {} }
            do throws(ClusterEngineError) {
                let isThere = try await deliver(message, to: node)
                let isGone = state.withLock { state in
                    defer { state.peers[node]?.isGone = false }
                    return state.peers[node]?.isGone == true
                }
                if !isThere || isGone {
                    end(node, because: .lost, isThere ? [] : message.frames)
                } else {
                    state.withLock { $0.peers[node]?.didTell(message.epochs) }
                }
            } catch {
                end(node, because: .lost, error.code == .unknownOutcome ? [] : message.frames)
            }
        }
    }

    /// Directly, or through the engine.
    private func deliver(_ message: RelayMessage, to node: ClusterNode) async throws(ClusterEngineError) -> Bool {
        let bytes = message.bytes
        if let direct = state.withLock({ $0.direct }), await direct.send(bytes, number: message.number, to: node) {
            return true
        }
        return try await engine.send(bytes, to: node)
    }

    private func next(for node: ClusterNode) -> (RelayMessage, [Departure])? {
        state.withLock { state in
            guard let (number, epochs, waiting) = state.peers[node]?.next(Self.messageBytes) else { return nil }
            let message = RelayMessage(from: self.node.description, number: number, epochs, waiting.map(\.frame))
            return (message, waiting.compactMap(\.departure))
        }
    }

    // MARK: In

    private func receive(_ event: InboxEvent) {
        switch event {
        case .message(let bytes):
            guard let message = RelayMessage(bytes), let sender = ClusterNode(message.sender) else { return }
            receive(message, from: sender)
        case .mayHaveMissed, .ended:
            for node in state.withLock({ Array($0.peers.keys) }) { lose(node) }
        }
    }

    /// A message that has come over a direct link; false when it is none of that node's.
    func receive(_ bytes: [UInt8], from node: ClusterNode) -> Bool {
        guard let message = RelayMessage(bytes), message.sender == node.description else { return false }
        receive(message, from: node)
        return true
    }

    /// The number of the last message of a node's whose frames were handed on.
    func handled(from node: ClusterNode) -> UInt64 { state.withLock { $0.peers[node]?.handled ?? 0 } }

    /// Sends over these links from now on, where there is one.
    func use(_ links: DirectLinks) { state.withLock { $0.direct = links } }

    private func receive(_ message: RelayMessage, from sender: ClusterNode) {
        // What comes next may come on another way, once this counts as handled: its frames are before those of that in each queue then.
        defer {
            state.withLock {
                if $0.peers[sender]?.theirs == message.epochs.sender { $0.peers[sender]?.handled = message.number }
            }
        }
        let arrival: NodePeer.Arrival? = state.withLock { state in
            guard !state.isClosed else { return nil }
            state.know(sender)
            return state.peers[sender]?.take(message.number, message.epochs)
        }
        guard let arrival else { return }
        var frames = message.frames
        if arrival.endsLines { end(sender, because: .itLost) }
        if arrival.hasGap { lose(sender) }
        if arrival.isLate { frames.removeAll { $0.kind != .stop && $0.kind != .leaving } }
        var batches: [(reactor: Reactor, work: [(any RelayEnd, RelayFrame)])] = []
        for frame in frames {
            switch frame.kind {
            case .leaving:
                state.withLock { $0.peers[sender]?.isLeaving = true }
                continue
            case .stop:
                stopRequests.update(true)
                continue
            default: break
            }
            guard let end = end(for: frame, from: sender) else { continue }
            // Before all others of the message: nobody minds to hear of it earlier.
            guard !end.isToldInPlace else {
                end.receive(frame)
                continue
            }
            if let index = batches.firstIndex(where: { $0.reactor === end.reactor }) {
                batches[index].work.append((end, frame))
            } else {
                batches.append((end.reactor, [(end, frame)]))
            }
        }
        for (reactor, work) in batches {
            reactor.execute { for (end, frame) in work { end.receive(frame) } }
        }
    }

    private func end(for frame: RelayFrame, from sender: ClusterNode) -> (any RelayEnd)? {
        let key = Line(node: sender, number: frame.line, isOwn: frame.kind.isBack)
        if let end = state.withLock({ $0.ends[key] }) { return end }
        let line = RelayLine(exchange: self, node: sender, number: frame.line, isOwn: false)
        guard frame.kind == .open else {
            // It had a line here that was lost, and does not know it.
            if !frame.kind.isBack, frame.kind != .gone { line.send(.ended) }
            return nil
        }
        guard let end = open(line, frame) else {
            line.send(.ended)
            return nil
        }
        let (isOpen, isLeaving) = state.withLock { state in
            if !state.isClosed { state.ends[key] = end }
            return (!state.isClosed, state.isLeaving)
        }
        if isLeaving { send([RelayFrame(.leaving, line: 0)], to: sender) }
        return isOpen ? end : nil
    }

    // MARK: Losses

    /// A node is gone, or something between the two was lost: no line to it goes on.
    func lose(_ node: ClusterNode) {
        end(node, because: .lost)
        tell(node)
    }

    /// Tells a node of this one's epoch, if it does not know it; again in the next round when that fails.
    private func tell(_ node: ClusterNode) {
        let begins = state.withLock { $0.isClosed ? false : $0.peers[node]?.beginTelling() ?? false }
        if begins { Task { await self.sendAll(to: node) } }
    }

    private enum Reason {
        /// This node has lost something.
        case lost
        /// The other one says that it has.
        case itLost
    }

    /// No line between the two goes on. What could not be sent is told of in the next round, or with what is sent then.
    ///
    /// - Parameter undelivered: what has surely not arrived, beside what waits.
    private func end(_ node: ClusterNode, because reason: Reason, _ undelivered: [RelayFrame] = []) {
        let (ends, waiting, handed) = state.withLock { state in
            let lines = state.ends.keys.filter { $0.node == node }
            defer {
                for line in lines {
                    state.ends[line] = nil
                    if line.isOwn { state.handed[line.number] = nil }
                }
            }
            let waiting = state.peers[node]?.clear() ?? []
            if reason == .lost, state.peers[node] != nil {
                let epoch = state.nextEpoch(isFirst: false)
                state.peers[node]?.begin(epoch)
            }
            return (lines.compactMap { line in state.ends[line].map { (line, $0) } }, waiting, state.handed)
        }
        var counts: [UInt64: UInt64] = [:]
        for frame in undelivered + waiting.map(\.frame) where frame.kind == .toOwner {
            counts[frame.line, default: 0] += 1
        }
        didLose(node)
        for (line, end) in ends {
            let (sent, lost) = line.isOwn ? (handed[line.number] ?? 0, counts[line.number] ?? 0) : (0, 0)
            end.reactor.execute { end.lineDidBreak(received: sent - min(sent, lost)) }
        }
    }

    /// Now and then something goes to each node to which there are lines: that the last message before is missing shows with the next alone.
    private func check(_ living: Set<ClusterNode>) {
        let silent: [ClusterNode] = state.withLock { state in
            state.rounds += 1
            guard !state.isClosed, state.rounds % Self.roundsBetweenChecks == 0 else { return [] }
            let used = Set(state.ends.keys.lazy.map(\.node)).intersection(living)
            return used.filter { state.peers[$0]?.beginCheck() == true }
        }
        for node in silent { Task { await self.sendAll(to: node) } }
    }

    /// Nodes that live no more are gone as soon as they do not listen either: others take their slots at once. One that listens and is
    /// just being stopped may still carry on what it has begun; another one has to be missing some times in a row, as one that has just
    /// come is called before this node has seen it living.
    func lose(allBut living: [ClusterNode]) async {
        let living = Set(living)
        let gone = state.withLock { state in
            for node in Array(state.peers.keys) {
                let before = state.peers[node]?.absences ?? 0
                state.peers[node]?.absences = living.contains(node) ? 0 : before + 1
            }
            return state.peers.filter { $0.value.absences > 0 }
                .map { ($0.key, mayListen: $0.value.isLeaving || $0.value.absences < Self.mostAbsences) }
        }
        for (node, mayListen) in gone {
            if mayListen, (try? await engine.send([], to: node)) != false { continue }
            let isSending = state.withLock { state in
                guard state.peers[node]?.isSending == true else { return false }
                state.peers[node]?.isGone = true
                return true
            }
            if isSending { continue }
            end(node, because: .lost)
            state.withLock { if $0.peers[node]?.isSending == false { $0.peers[node] = nil } }
        }
        // What was to tell others of a loss may have been lost itself.
        for node in living { tell(node) }
        check(living)
    }

    private static func `break`(_ ends: [any RelayEnd]) {
        for end in ends { end.reactor.execute { end.lineDidBreak(received: .max) } }
    }
}
