internal import Bytes
internal import Networking
internal import TrebuchetActors
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
    /// - Parameter name: that which it had over an earlier line, if anybody still has it.
    init(_ line: RelayLine, _ client: RelayedClient, _ name: CarriedName, at shard: ServerShard) {
        reactor = shard.reactor
        self.line = line
        host = client.address.flatMap { AddressKey($0) }.flatMap { $0.isLoopback ? nil : $0 }
        largestMessage = shard.limits.messageSize
        reactor.execute { self.open(client, name, at: shard) }
    }

    private func open(_ client: RelayedClient, _ carried: CarriedName, at shard: ServerShard) {
        let name = carried.name
        // What has come over the line before is all that will.
        shard.connections[name.number]?.linkDidClose()
        let caller =
            client.isCaller
            ? Caller(connection: CallerConnection(principal: client.knownPrincipal, remoteAddress: client.address))
            : nil
        let connection = ServerConnection(
            self, name: name, shard: shard, caller: caller, largestMessage: client.largestMessage,
            dates: client.wholeSeconds ? .wholeSeconds : .milliseconds,
            upstream: Upstream(line: line, carried: carried, streams: client.streams))
        connection.remembers = shard.answers.reopen(name)
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
        case .gone: end()
        default: break
        }
    }

    func lineDidBreak(received: UInt64) {
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
        line.send(buffer.bytes, part: .toClientPart, last: .toClient)
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
            self.line.send(.ended, number: self.received)
            self.end()
        }
    }

    /// A client has a limit of its own at its node.
    func pauseReading() {}
    func resumeReading() {}
}
