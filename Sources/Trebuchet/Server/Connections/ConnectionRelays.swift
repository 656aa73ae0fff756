internal import Bytes
internal import Networking
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// What a client has under way with actors of other nodes: its messages go there as they are but for their callIDs, over a line for
/// each node, and what comes back goes to the client the same way. When an actor moves, or its node dies, its streams are taken up at
/// its next owner behind what the client has, and `@Idempotent` calls are repeated there; the client notices nothing.
///
/// On the connection's reactor.
final class ConnectionRelays {
    /// So long calls wait for those before them that are at an owner which does not own their slot any more: as long as that waits for
    /// what runs when it gives the slot away.
    static let longestReturn = Duration.seconds(3)
    /// So long after an owner could not go on with a stream it is asked again.
    static let pause = Duration.milliseconds(500)
    /// The longest time for which an answer waits for the missing versions of a resumed stream. The owner says when they have left, which
    /// takes seconds over a link that loses packets.
    static let longestCatchingUp = Duration.seconds(10)

    /// It lets go of this when it closes. Held, since what is sent to it may be the last that it does.
    let connection: ServerConnection
    let nodes: ServerNodes
    private(set) var lines: [ClusterNode: OwnerLine] = [:]
    private var lineCount = 0
    private var callCount: UInt64 = 0
    /// Those of which something waits, or is away.
    private(set) var slots: [ClusterSlot: SlotTraffic] = [:]
    /// By the names that their owners gave them.
    var streams: [[UInt8]: RelayedStream] = [:]
    /// Those that are being taken up at their next owner, by the names that the client knows.
    var resuming = StreamsByName()
    /// Of those that were taken up, the ones of which not all has come that the client lacked.
    var catchingUp = StreamsByName()
    /// Those that this node takes up itself, as long as their actors are being made.
    var loading = StreamsByName()
    /// Calls that are made when the reactor has heard of owners.
    var postponed = 0
    /// Whether one of them is in hand.
    var isMakingPostponed = false
    private(set) var isOpen = true
    /// Why nothing of the client's can be carried on: its principal has more than nodes tell each other.
    private(set) var excess: TrebuchetError?

    init(_ connection: ServerConnection, _ nodes: ServerNodes) {
        self.connection = connection
        self.nodes = nodes
        let (reactor, reference) = (connection.shard.reactor, WeakRelays(self))
        connection.caller?.connection.onPrincipalChange { reactor.run { reference.relays?.principalDidChange() } }
        if connection.caller?.principal != nil { excess = client().excess }
    }

    var shard: ServerShard { connection.shard }

    // MARK: Calls and streams begin

    /// A message about an actor of another node has come from the client. It may be made.
    ///
    /// - Parameter isRepeatable: whether the owner recognises it when it comes again.
    func forward(_ message: borrowing Message, isRepeatable: Bool) {
        forward(message, Array(message.callID), nil, nil, isRepeatable: isRepeatable)
    }

    /// The same with one that begins or resumes a stream.
    func forward(
        _ message: borrowing Message, beginning asked: AskedStream, _ filter: StreamFilter?, _ stake: StreamStake
    ) {
        let envelope = message.envelope
        let callID = envelope.pointee.callID.isAbsent ? asked.resumed ?? [] : Array(message.callID)
        let stream = RelayedStream(
            callID: callID, actor: asked.actor.text, target: asked.target, filter: filter,
            epoch: message.text(envelope.pointee.epoch), sequence: envelope.pointee.lastSequence ?? 0,
            mayShare: connection.mayShareStreams, stake: stake)
        forward(message, callID, asked, stream, isRepeatable: true)
    }

    private func forward(
        _ message: borrowing Message, _ callID: [UInt8], _ asked: AskedStream?, _ stream: RelayedStream?,
        isRepeatable: Bool
    ) {
        guard let call = connection.begin(message, callID) else { return }
        call.stream = asked
        callCount += 1
        // What was here before goes before what has just come.
        let order = callCount | (connection.isCounted ? 0 : 1 << 63)
        let relayed = RelayedCall(
            message, callID: callID, order: order, isRepeatable: isRepeatable, stream: stream, of: self)
        call.relayed = relayed
        let traffic = traffic(of: relayed.slot)
        // What waits to be taken up goes before it, and does so no longer.
        for stream in traffic.paused { _ = wait(for: stream) }
        if shard.hasJustLetGo, traffic.calls.isEmpty, traffic.crossings == 0 { waitForCrossings(traffic) }
        traffic.calls.add(relayed, relayed.order)
        proceed(traffic)
    }

    /// Calls to actors of other reactors of this node that have just gone may come back, and go first.
    private func waitForCrossings(_ traffic: SlotTraffic) {
        nonisolated(unsafe) let traffic = traffic  // Looked at on this reactor alone.
        let (reactor, reference) = (shard.reactor, WeakRelays(self))
        for crossing in connection.crossings {
            traffic.crossings += 1
            crossing.add {
                reactor.execute {
                    traffic.crossings -= 1
                    reference.relays?.proceed(traffic)
                }
            }
        }
    }

    /// The call that it is to its connection; nil when nobody waits for it any more.
    func underWay(_ relayed: RelayedCall) -> RunningCall? {
        connection.running[relayed.callID].flatMap { $0.relayed === relayed ? $0 : nil }
    }

    // MARK: They wait for their owner

    func traffic(of slot: ClusterSlot) -> SlotTraffic {
        if let found = slots[slot] { return found }
        let made = SlotTraffic(slot)
        slots[slot] = made
        connection.hasCallsElsewhere = true
        return made
    }

    /// Sends what waits, as far as it may go.
    func proceed(_ traffic: SlotTraffic) {
        if traffic.isAsking, traffic.hasNothing { traffic.stopAsking() }
        guard isOpen, !traffic.isAsking else { return }
        if traffic.isEmpty {
            if slots[traffic.slot] === traffic { slots[traffic.slot] = nil }
            connection.hasCallsElsewhere = !slots.isEmpty
            return
        }
        if traffic.streams.isEmpty {
            guard !traffic.calls.waiting.isEmpty, traffic.crossings == 0 else { return }
            if traffic.calls.awaitsReturn { return lookLater(traffic) }
        }
        traffic.isAsking = true
        let waiter = shard.withOwner(of: traffic.slot) { [weak self] owner in
            (traffic.isAsking, traffic.waiter) = (false, nil)
            guard let self, self.isOpen else { return }
            switch owner {
            case .failure(let error): self.fail(traffic, error)
            case .success(let node):
                self.send(traffic, to: node)
                self.proceed(traffic)
            }
        }
        if let waiter { traffic.waiter = waiter }
    }

    private func send(_ traffic: SlotTraffic, to node: ClusterNode) {
        let streams = traffic.streams.filter(\.isWanted)
        traffic.streams = []
        for stream in streams {
            if node == nodes.node {
                loading.insert(stream)
                _ = didResume(stream.streamID)
                stream.stake = nil
                connection.takeUp(stream)
            } else {
                line(to: node).ask(stream)
            }
        }
        if node == nodes.node { loading.removeAll { !connection.isTakingUp($0) } }
        guard traffic.crossings == 0, !traffic.calls.waiting.isEmpty, traffic.calls.mayGo(to: node) else { return }
        for relayed in traffic.calls.takeAll() {
            guard let call = underWay(relayed) else { continue }
            if node == nodes.node {
                connection.withdraw(call)
                // It is counted anew.
                relayed.stream?.stake = nil
                guard !relayed.isResumption else {
                    relayed.withMessage { connection.handleAgain($0) }
                    continue
                }
                connection.continuing(call) { relayed.withMessage { connection.handleAgain($0) } }
            } else if let revocation = connection.revocation(of: relayed.actor) {
                connection.finish(call, .failure(revocation))
            } else {
                traffic.calls.didSend(relayed.order, to: node)
                line(to: node).ask(relayed)
            }
        }
    }

    /// Those that are away are waited for no longer then: they run there.
    private func lookLater(_ traffic: SlotTraffic) {
        guard !traffic.isTimed else { return }
        traffic.isTimed = true
        let round = traffic.calls.round
        shard.reactor.schedule(after: Self.longestReturn) { [weak self] in
            traffic.isTimed = false
            if traffic.calls.round == round { traffic.calls.waitForNone() }
            self?.proceed(traffic)
        }
    }

    /// Nobody has owned it for long. A stream has no end until its client goes.
    private func fail(_ traffic: SlotTraffic, _ error: TrebuchetError) {
        var resumptions: [RelayedCall] = []
        for relayed in traffic.calls.takeAll() {
            guard let call = underWay(relayed) else { continue }
            if relayed.isResumption {
                resumptions.append(relayed)
            } else {
                let unknown = TrebuchetError(.unknownOutcome, "it was sent before, and may have run: \(error.message)")
                connection.finish(call, .failure(relayed.mayHaveRun ? unknown : error))
            }
        }
        // A client that goes on with a stream waits until its question's time is over.
        for relayed in resumptions { traffic.calls.add(relayed, relayed.order) }
        guard !traffic.streams.isEmpty || !resumptions.isEmpty else { return proceed(traffic) }
        shard.reactor.schedule(after: .seconds(1)) { [weak self] in self?.proceed(traffic) }
    }

    private func line(to node: ClusterNode) -> OwnerLine {
        if let line = lines[node] { return line }
        lineCount += 1
        let line = OwnerLine(self, to: node, at: nodes.exchange, reactor: shard.reactor)
        line.open(client())
        lines[node] = line
        return line
    }

    /// What nodes are told of it.
    private func client() -> RelayedClient {
        RelayedClient(
            session: shard.answers.names.text(connection.name), streams: "\(lineCount).",
            caller: connection.caller?.connection, largestMessage: Int(connection.largestMessage),
            wholeSeconds: connection.dates == .wholeSeconds)
    }

    /// Whether it was one of those in use.
    func forget(_ line: OwnerLine) -> Bool {
        guard lines[line.node] === line else { return false }
        lines[line.node] = nil
        return true
    }

    // MARK: The client's other messages

    /// Whether that was a stream of another node's, which the client does not want any more. Whatever becomes of the line to that, it
    /// has ended for the client.
    func unsubscribe(_ streamID: [UInt8]) -> Bool {
        didShow(streamID)
        if let stream = streams.removeValue(forKey: streamID) {
            stream.line?.unsubscribe(streamID)
            stream.isWanted = false
            return true
        }
        // What it was asked for meanwhile ends when it begins.
        guard let stream = didResume(streamID) else { return false }
        stream.isWanted = false
        return true
    }

    /// The client takes up a stream under this name: what it knew by it before is no more, wherever that is.
    func leave(_ streamID: [UInt8]) { _ = unsubscribe(streamID) }

    /// The client takes nothing more from these: its rights were taken away.
    func endStreams(_ error: TrebuchetError) { endStreams { _ in error } }

    /// The same for those that are refused.
    func endStreams(refused: (RelayedStream) -> TrebuchetError?) {
        for streamID in Array(streams.keys) + resuming.names {
            guard let stream = streams[streamID] ?? resuming[streamID], let error = refused(stream) else { continue }
            _ = unsubscribe(streamID)
            connection.failStream(streamID, error)
        }
    }

    /// Nothing more comes of these: the client goes on elsewhere, for one.
    ///
    /// - Returns: their names.
    func leaveStreams() -> [[UInt8]] {
        let names = Array(streams.keys) + resuming.names
        for name in names { _ = unsubscribe(name) }
        return names
    }

    private func principalDidChange() {
        guard isOpen else { return }
        let client = client()
        excess = client.excess
        guard let excess else { return lines.values.forEach { $0.send(.client, client.payload) } }
        // Nothing may go on there in the name of who was signed in before.
        endStreams(excess)
        connection.endSharedStreams(excess)
        for call in Array(connection.running.values) where call.relayed != nil {
            connection.finish(call, .failure(excess))
        }
        for line in lines.values { line.end() }
        lines = [:]
        letGo()
    }

    func linkDidBecomeWritable() { for line in lines.values { line.tellWhatWasTaken() } }

    /// The client has gone.
    func close() {
        isOpen = false
        for line in lines.values { line.end() }
        (lines, streams) = ([:], [:])
        (resuming, catchingUp, loading) = (StreamsByName(), StreamsByName(), StreamsByName())
        letGo()
    }

    /// Of what waits: who is asked for its owner may not answer for long.
    private func letGo() {
        for traffic in slots.values {
            traffic.calls = CallOrder()
            (traffic.streams, traffic.paused) = ([], [])
            traffic.stopAsking()
        }
        slots = [:]
        connection.hasCallsElsewhere = false
    }
}

/// For closures that may run anywhere.
///
/// `@unchecked Sendable`: `relays` is looked at on its reactor alone.
private final class WeakRelays: @unchecked Sendable {
    weak var relays: ConnectionRelays?

    init(_ relays: ConnectionRelays) { self.relays = relays }
}
