internal import Bytes
internal import Networking
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire
internal import WebSockets

/// Carries a connection whose client is at another node.
///
/// `@unchecked Sendable`: on the connection's reactor alone, but for its constants.
final class RelayedLink: RelayEnd, MessageLink, @unchecked Sendable {
    /// Bytes that are on their way to the client, beyond which its streams skip versions and its answers wait.
    static let window = 256 << 10
    /// Bytes on their way beyond which nothing more is sent, and the connection ends. One message may go beyond it.
    private static let mostUntaken = 16 << 20

    let reactor: Reactor
    let host: AddressKey?
    private let line: RelayLine
    private let arrears: FeedArrears
    /// What waits for shared streams of the client's node, oldest first.
    private var held: [(kind: RelayFrame.Kind, payload: [UInt8])] = []
    private var connection: ServerConnection?
    /// What has come of a message.
    private var parts: [UInt8] = []
    private var untaken = 0
    /// Messages that have come.
    private var received: UInt64 = 0
    private let largestMessage: Int
    private var isOver = false

    /// From anywhere.
    ///
    /// - Parameters:
    ///   - name: that which it had over an earlier line, if anybody still has it.
    ///   - arrears: of the client's node.
    init(
        _ line: RelayLine, _ client: RelayedClient, _ name: CarriedName, at shard: ServerShard,
        behind arrears: FeedArrears
    ) {
        reactor = shard.reactor
        self.line = line
        self.arrears = arrears
        host = client.address.flatMap { AddressKey($0) }.flatMap { $0.isLoopback ? nil : $0 }
        largestMessage = shard.limits.messageSize
        reactor.execute { self.open(client, name, at: shard) }
    }

    private func open(_ client: RelayedClient, _ carried: CarriedName, at shard: ServerShard) {
        let name = carried.name
        // What has come over the line before is all that will.
        shard.connections[name.number]?.linkDidClose()
        let connection = ServerConnection(
            self, name: name, shard: shard, caller: client.caller, largestMessage: client.largestMessage,
            dates: client.wholeSeconds ? .wholeSeconds : .milliseconds,
            upstream: Upstream(carried: carried, streams: client.streams) { [weak self] in self?.leave($0, $1) })
        connection.remembers = shard.answers.reopen(name)
        // What it may still own is another node's in a moment: nothing begins here any more.
        if shard.isDraining { connection.dismiss() }
        self.connection = connection
    }

    // MARK: RelayEnd

    func receive(_ frame: RelayFrame) {
        switch frame.kind {
        case .toOwnerPart:
            guard parts.count + frame.payload.count <= largestMessage else { return lineDidBreak(received: 0) }
            parts += frame.payload
        case .toOwner:
            received += 1
            let message = parts.isEmpty ? frame.payload : parts + frame.payload
            parts = []
            message.withUnsafeBytes { connection?.receive($0) }
        case .taken:
            let wasWritable = isWritable
            untaken -= min(untaken, Int(clamping: frame.number ?? 0))
            if !wasWritable, isWritable { connection?.linkDidBecomeWritable() }
        case .client:
            guard let client = RelayedClient(frame.payload) else { return }
            connection?.caller?.connection.principal = client.knownPrincipal
        case .gone:
            drop()
            end()
        default: break
        }
    }

    func lineDidBreak(received: UInt64) {
        drop()
        line.send(.ended)
        end()
    }

    func lineDidOverflow(received: UInt64) { lineDidBreak(received: received) }

    private func end() {
        line.forget()
        connection?.linkDidClose()
        connection = nil
    }

    // MARK: MessageLink

    var isWritable: Bool { untaken <= Self.window }

    func send(_ body: (inout ByteBuffer) -> Void) {
        var buffer = ByteBuffer()
        body(&buffer)
        guard !isOver else { return }
        // As over a socket: who takes nothing loses its connection, before it takes the room of others.
        guard untaken <= Self.mostUntaken else { return lineIsOver() }
        untaken += buffer.count
        guard held.isEmpty, arrears.isEmpty else { return leave(.toClient, Array(buffer.bytes)) }
        line.send(buffer.bytes, part: .toClientPart, last: .toClient)
    }

    /// Sends the client's node something, in its order, once that has what shared streams owe it.
    func leave(_ kind: RelayFrame.Kind, _ payload: [UInt8]) {
        guard !held.isEmpty || !arrears.isEmpty else { return pass(kind, payload) }
        held.append((kind, payload))
        if !arrears.hold(payload.count) { lineIsOver() }
        if held.count == 1 { awaitStreams() }
    }

    private func pass(_ kind: RelayFrame.Kind, _ payload: [UInt8]) {
        guard kind == .toClient else { return line.send(kind, payload) }
        line.send(payload, part: .toClientPart, last: .toClient)
    }

    /// What comes behind these may be of calls that have changed more.
    private func awaitStreams() {
        let count = held.count
        let waits = arrears.whenSent { self.reactor.execute { self.goOn(count) } }
        if !waits { goOn(count) }
    }

    private func goOn(_ count: Int) {
        // Nothing is left of them when the line has broken.
        let ready = Array(held.prefix(count))
        held.removeFirst(ready.count)
        for (kind, payload) in ready {
            arrears.release(payload.count)
            pass(kind, payload)
        }
        if !held.isEmpty { awaitStreams() }
    }

    private func drop() {
        for (_, payload) in held { arrears.release(payload.count) }
        held = []
    }

    func send(shared: SharedBytes, headCount: Int, head: (inout ByteBuffer) -> Void) {
        send { buffer in
            head(&buffer)
            buffer.append(shared.bytes)
        }
    }

    func inOneWrite(_ body: () -> Void) { body() }
    var memory: MemoryAccount? { nil }
    /// Clients hear from their own node that they are to go.
    func askWhetherHeard() { reactor.execute { self.connection?.linkDidHear() } }

    func close(_ code: WebSocketCloseCode, reason: String) { lineIsOver() }
    func abort() { lineIsOver() }

    private func lineIsOver() {
        guard !isOver else { return }
        isOver = true
        // Not inside of what the connection is doing.
        reactor.execute {
            guard self.connection != nil else { return }
            // What comes later was not begun.
            var received: [UInt8] = []
            ByteParts.append(self.received, to: &received)
            self.leave(.ended, received)
            self.end()
        }
    }

    /// A client has a limit of its own at its node.
    func pauseReading() {}
    func resumeReading() {}
}
