internal import Bytes
internal import Networking
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// What a client has under way with actors of other nodes: its messages go there as they are, over a line for each node, and what
/// comes back goes to the client as it is. When an actor moves, or its node dies, its streams are taken up at its next owner behind
/// what the client has, and `@Idempotent` calls are repeated there; the client notices nothing.
///
/// On the connection's reactor.
final class ConnectionRelays: OwnerLineUser {
    /// It lets go of this when it closes. Held, since what is sent to it may be the last that it does.
    let connection: ServerConnection
    private let nodes: ServerNodes
    private var lines: [ClusterNode: OwnerLine] = [:]
    private var lineCount = 0
    /// By the names that their owners gave them.
    private var streams: [[UInt8]: RelayedStream] = [:]
    /// Those that are being taken up at their next owner, by the callID under which the client has begun them.
    private var resuming: [[UInt8]: RelayedStream] = [:]
    private var isOpen = true

    init(_ connection: ServerConnection, _ nodes: ServerNodes) {
        self.connection = connection
        self.nodes = nodes
        let (reactor, reference) = (connection.shard.reactor, WeakRelays(self))
        connection.caller?.connection.onPrincipalChange { reactor.run { reference.relays?.principalDidChange() } }
    }

    private var shard: ServerShard { connection.shard }

    // MARK: Calls and streams begin

    /// A message about an actor of another node has come from the client. It may be made.
    ///
    /// - Parameters:
    ///   - stream: set for one that begins or resumes a stream.
    ///   - isRepeatable: whether the owner recognises it when it comes again.
    func forward(_ message: borrowing Message, stream: AskedStream?, isRepeatable: Bool) {
        let callID = message.envelope.pointee.callID.isAbsent ? stream?.resumed ?? [] : Array(message.callID)
        guard let call = connection.begin(message, callID) else { return }
        call.stream = stream
        let relayed = RelayedCall(KeptMessage(message), callID: callID, isRepeatable: isRepeatable)
        if let stream {
            relayed.stream = RelayedStream(
                callID: callID, actor: stream.actor.text, target: stream.target, filter: message.filterBytes,
                epoch: message.text(message.envelope.pointee.epoch),
                sequence: message.envelope.pointee.lastSequence ?? 0)
        }
        call.relayed = relayed
        send(call, relayed)
    }

    private func send(_ call: RunningCall, _ relayed: RelayedCall) {
        shard.withOwner(of: relayed.slot) { [weak self] owner in
            guard let self, self.isOpen, !call.isAnswered else { return }
            switch owner {
            case .failure(let error): self.connection.finish(call, .failure(error))
            case .success(let node) where node == self.nodes.node:
                self.connection.withdraw(call)
                relayed.withMessage { self.connection.handleAgain($0) }
            case .success(let node):
                let line = self.line(to: node)
                relayed.line = line
                relayed.withMessage { relayed.place = line.send($0.bytes) }
            }
        }
    }

    private func line(to node: ClusterNode) -> OwnerLine {
        if let line = lines[node] { return line }
        lineCount += 1
        let line = OwnerLine(self, to: node, at: nodes.exchange, reactor: shard.reactor)
        line.open(
            RelayedClient(
                session: shard.answers.names.text(connection.name), streams: "\(lineCount).",
                caller: connection.caller?.connection, largestMessage: Int(connection.largestMessage),
                wholeSeconds: connection.dates == .wholeSeconds))
        lines[node] = line
        return line
    }

    // MARK: The client's other messages

    /// Whether that was a stream of another node's, which the client does not want any more.
    func unsubscribe(_ streamID: [UInt8], _ message: borrowing Message) -> Bool {
        if let stream = streams.removeValue(forKey: streamID) {
            stream.line?.send(message.bytes)
            return true
        }
        guard let stream = resuming.values.first(where: { $0.streamID == streamID }) else { return false }
        resuming[stream.callID] = nil
        // What it was asked for meanwhile ends when it begins.
        return true
    }

    /// The client takes nothing more from these: its rights were taken away.
    func endStreams(_ error: TrebuchetError) {
        let ended = Array(streams.values) + resuming.values
        (streams, resuming) = ([:], [:])
        for stream in ended {
            var buffer = ByteBuffer()
            EnvelopeWriter.streamEnd(streamID: stream.streamID, reason: .clientUnsubscribed, into: &buffer)
            stream.line?.send(buffer.bytes)
            connection.failStream(stream.streamID, error)
        }
    }

    private func principalDidChange() {
        guard isOpen else { return }
        let client = RelayedClient(
            session: "", streams: "", caller: connection.caller?.connection, largestMessage: 0, wholeSeconds: false)
        for line in lines.values { line.send(.client, client.payload) }
    }

    var isWritable: Bool { connection.isWritable }

    func linkDidBecomeWritable() { for line in lines.values { line.tellWhatWasTaken() } }

    /// The client has gone.
    func close() {
        isOpen = false
        for line in lines.values { line.close() }
        (lines, streams, resuming) = ([:], [:], [:])
    }

    // MARK: What owners send

    func receive(_ bytes: UnsafeRawBufferPointer, over line: OwnerLine) {
        guard isOpen, let place = shard.scans.take() else { return }
        defer { shard.scans.giveBack() }
        guard (try? place.pointee.scan(bytes)) != nil else { return }
        let message = Message(bytes: bytes, envelope: UnsafePointer(place))
        let envelope = message.envelope
        switch message.kind {
        case .response:
            let callID = Array(message.callID)
            if resuming.removeValue(forKey: callID) == nil {
                guard let call = connection.running[callID], call.relayed?.line === line else { return }
                connection.withdraw(call)
            }
        case .streamStart:
            let callID = Array(message.callID)
            let streamID = Array(message.bytes(envelope.pointee.streamID))
            let stream: RelayedStream
            if let resumed = resuming.removeValue(forKey: callID) {
                stream = resumed
            } else if let call = connection.running[callID], let begun = call.relayed?.stream,
                call.relayed?.line === line
            {
                connection.withdraw(call)
                stream = begun
            } else {
                return line.unsubscribe(streamID)
            }
            stream.begin(
                as: streamID, epoch: message.text(envelope.pointee.epoch), position: envelope.pointee.sequenceNumber)
            stream.line = line
            streams[streamID] = stream
        case .streamData:
            guard let stream = streams[Array(message.bytes(envelope.pointee.streamID))], stream.line === line else {
                return
            }
            if let sequence = envelope.pointee.sequenceNumber { stream.sequence = sequence }
        case .streamEnd:
            let streamID = Array(message.bytes(envelope.pointee.streamID))
            let reason = StreamEndReason(rawValue: message.text(envelope.pointee.reason))
            if reason == .serverDraining || reason == .connectionClosed { return moved(streamID, over: line) }
            streams[streamID] = nil
        case .streamError: streams[Array(message.bytes(envelope.pointee.streamID))] = nil
        case .error: break
        // The lines to a node are not what these are about.
        default: return
        }
        connection.passOn(bytes)
    }

    /// An owner does not own what a call or stream is of.
    func refused(_ callID: [UInt8], over line: OwnerLine) {
        if let stream = resuming[callID], stream.line === line {
            shard.forgetOwner(of: stream.slot, line.node)
            return resume(stream)
        }
        guard let call = connection.running[callID], let relayed = call.relayed, relayed.line === line else { return }
        relayed.line = nil
        shard.forgetOwner(of: relayed.slot, line.node)
        send(call, relayed)
    }

    /// A stream's actor has another owner from now on.
    func moved(_ streamID: [UInt8], over line: OwnerLine) {
        guard let stream = streams[streamID], stream.line === line else { return }
        streams[streamID] = nil
        shard.forgetOwner(of: stream.slot, line.node)
        resume(stream)
    }

    /// Nothing more comes over a line.
    ///
    /// - Parameter received: how many messages its owner has got over it; nil when that is not known.
    func ended(_ line: OwnerLine, received: UInt64?) {
        guard isOpen, lines[line.node] === line else { return }
        lines[line.node] = nil
        // In the order in which they were sent.
        let calls = connection.running.values.filter { $0.relayed?.line === line }
        for call in calls.sorted(by: { $0.relayed?.place ?? 0 < $1.relayed?.place ?? 0 }) {
            guard let relayed = call.relayed else { continue }
            relayed.line = nil
            shard.forgetOwner(of: relayed.slot, line.node)
            let cameTooLate = received.map { relayed.place > $0 } ?? false
            if cameTooLate || relayed.goesAgain() {
                send(call, relayed)
            } else {
                connection.finish(
                    call,
                    .failure(
                        TrebuchetError(
                            .unknownOutcome, "the node that the call was sent to is gone, and it may have run there")))
            }
        }
        for stream in Array(streams.values) + Array(resuming.values) where stream.line === line {
            streams[stream.streamID] = nil
            shard.forgetOwner(of: stream.slot, line.node)
            resume(stream)
        }
    }

    // MARK: Streams go on

    /// Takes a stream up at the owner of now, behind what the client has; as often as that takes.
    func resume(_ stream: RelayedStream) {
        stream.line = nil
        resuming[stream.callID] = stream
        shard.withOwner(of: stream.slot) { [weak self] owner in
            guard let self, self.isOpen, self.resuming[stream.callID] === stream, stream.line == nil else { return }
            switch owner {
            case .failure:
                // Nobody has owned it for long. A stream has no end until its client goes.
                self.shard.reactor.schedule(after: .seconds(1)) { [weak self] in
                    guard let self, self.isOpen, self.resuming[stream.callID] === stream else { return }
                    self.resume(stream)
                }
            case .success(let node) where node == self.nodes.node:
                self.resuming[stream.callID] = nil
                stream.resumption.withUnsafeBytes { self.connection.receive($0) }
            case .success(let node):
                let line = self.line(to: node)
                stream.line = line
                stream.resumption.withUnsafeBytes { _ = line.send($0) }
            }
        }
    }
}

/// For closures that may run anywhere.
///
/// `@unchecked Sendable`: `relays` is looked at on its reactor alone.
private final class WeakRelays: @unchecked Sendable {
    weak var relays: ConnectionRelays?

    init(_ relays: ConnectionRelays) { self.relays = relays }
}
