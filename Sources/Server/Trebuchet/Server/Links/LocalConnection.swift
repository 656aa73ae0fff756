internal import Bytes
internal import Networking
internal import Synchronization
internal import Transports
internal import TrebuchetActors
internal import TrebuchetWire
internal import WebSockets

/// The two ends of a connection inside this process. The messages are those of a socket. The receiver is used on the client's loop
/// only.
final class LocalConnection: Sendable {
    private static let highWatermark = 256 << 10

    private let serverReactor: Reactor
    private let name: CallSessionID
    /// The session of the connection as encoded in messages.
    fileprivate let sessionText: String
    private let clientLoop: any EventLoop
    /// The number of bytes in transit to the client.
    private let pending = Atomic<Int>(0)
    private let connection: LoopVariable<ServerConnection?>
    private let receiver: ConnectionReceiver
    private let isClosed: LoopVariable<Bool>
    private let largestMessage: Int

    init(_ shard: ServerShard, _ receiver: ConnectionReceiver, largestMessage: Int) {
        self.largestMessage = largestMessage
        name = shard.newConnectionName()
        sessionText = shard.idempotencyCache.names.text(name)
        serverReactor = shard.reactor
        clientLoop = receiver.loop
        self.receiver = receiver
        connection = LoopVariable(nil, on: shard.reactor)
        isClosed = LoopVariable(false, on: receiver.loop)
    }

    /// Creates the server's end; on the server's reactor.
    func open(_ shard: ServerShard, caller: Caller?) {
        connection.value = ServerConnection(
            ServerEnd(self), name: name, shard: shard, caller: caller,
            largestMessage: largestMessage)
    }

    var clientEnd: any ClientLink { ClientEnd(self) }

    /// Ends the connection; on the server's reactor.
    fileprivate func abort() {
        connection.value = nil
        close("the server closed the connection", .server)
    }

    fileprivate func sendToServer(_ message: [UInt8]) {
        serverReactor.execute { message.withUnsafeBytes { self.connection.value?.receive($0) } }
    }

    fileprivate func sendToClient(_ message: [UInt8]) {
        pending.add(message.count, ordering: .relaxed)
        clientLoop.execute {
            message.withUnsafeBytes { self.receiver.didReceive($0) }
            let after = self.pending.subtract(message.count, ordering: .relaxed).newValue
            // This message reduced `pending` to the watermark or below.
            if after <= Self.highWatermark, after + message.count > Self.highWatermark {
                self.serverReactor.execute { self.connection.value?.linkDidBecomeWritable() }
            }
        }
    }

    /// Makes a round trip to the client's loop, queued behind the messages in transit.
    fileprivate func sendDrainPing() {
        clientLoop.execute { self.serverReactor.execute { self.connection.value?.didReceiveDrainPong() } }
    }

    fileprivate var isWritable: Bool { pending.load(ordering: .relaxed) <= Self.highWatermark }

    fileprivate func close(_ reason: String, _ cause: ServerEvent.Closing.Cause) {
        serverReactor.execute {
            self.connection.value?.linkDidClose(ServerEvent.Closing(cause, reason: reason))
            self.connection.value = nil
        }
        clientLoop.execute {
            guard !self.isClosed.value else { return }
            self.isClosed.value = true
            self.receiver.linkDidClose(TransportError(.closed, reason))
        }
    }
}

/// The server's end: sends messages to the client's loop.
private final class ServerEnd: MessageLink {
    private let connection: LocalConnection

    init(_ connection: LocalConnection) { self.connection = connection }

    var isWritable: Bool { connection.isWritable }

    func send(_ body: (inout ByteBuffer) -> Void) {
        var buffer = ByteBuffer()
        body(&buffer)
        connection.sendToClient(Array(buffer.bytes))
    }

    func send(shared: SharedBytes, headCount: Int, head: (inout ByteBuffer) -> Void) {
        send { buffer in
            head(&buffer)
            buffer.append(shared.bytes)
        }
    }

    func inOneWrite(_ body: () -> Void) { body() }

    /// A client in this process limits its calls itself.
    func pauseReading() {}
    var memory: MemoryAccount? { nil }
    func resumeReading() {}
    var host: AddressKey? { nil }

    func sendDrainPing() { connection.sendDrainPing() }
    func close(_ code: WebSocketCloseCode, reason: String) { connection.close(reason, .server) }
    func abort() { connection.abort() }
}

/// The client's end. Its messages are sent to the server's reactor.
private final class ClientEnd: ClientLink {
    private let connection: LocalConnection

    init(_ connection: LocalConnection) { self.connection = connection }

    var callSession: String? { connection.sessionText }

    func send(_ message: [UInt8]) { connection.sendToServer(message) }
    func close() { connection.close("the connection was closed", .client) }
}
