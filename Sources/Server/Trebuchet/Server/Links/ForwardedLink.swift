internal import Bytes
internal import Networking
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire
internal import WebSockets

/// The link of a connection whose client is connected to another node.
///
/// `@unchecked Sendable`: used on the connection's reactor only, except for constants.
final class ForwardedLink: NodeChannelHandler, MessageLink, @unchecked Sendable {
    /// The number of unacknowledged bytes above which the client's streams skip versions and its responses wait.
    static let window = 256 << 10
    /// The number of unacknowledged bytes above which the connection ends. One message may exceed it.
    private static let maximumUnacknowledged = 16 << 20

    let reactor: Reactor
    let host: AddressKey?
    private let channel: NodeChannel
    private let pendingDeliveries: PendingDeliveries
    /// Messages that wait for shared streams of the client's node, the oldest first.
    private var queuedMessages: [(kind: NodeFrame.Kind, payload: [UInt8])] = []
    private var connection: ServerConnection?
    /// The received parts of an incomplete message.
    private var parts: [UInt8] = []
    private var unacknowledgedBytes = 0
    /// The number of received messages.
    private var received: UInt64 = 0
    private let largestMessage: Int
    private var isOver = false

    /// Opens the connection. Callable from any thread.
    ///
    /// - Parameters:
    ///   - name: the session of the client over an earlier channel, if that still exists.
    ///   - pendingDeliveries: the pending deliveries to the client's node.
    init(
        _ channel: NodeChannel, _ client: ForwardedClient, _ name: RemoteSessionAlias, at shard: ServerShard,
        behind pendingDeliveries: PendingDeliveries
    ) {
        reactor = shard.reactor
        self.channel = channel
        self.pendingDeliveries = pendingDeliveries
        host = client.address.flatMap { AddressKey($0) }.flatMap { $0.isLoopback ? nil : $0 }
        largestMessage = shard.limits.messageSize
        reactor.execute { self.open(client, name, at: shard) }
    }

    private func open(_ client: ForwardedClient, _ carried: RemoteSessionAlias, at shard: ServerShard) {
        let name = carried.name
        // No further messages arrive over the previous channel.
        shard.connections[name.number]?.linkDidClose()
        let connection = ServerConnection(
            self, name: name, shard: shard, caller: client.caller, largestMessage: client.largestMessage,
            upstream: ForwardingOrigin(carried: carried, streams: client.streams) { [weak self] in
                self?.sendInOrder($0, $1)
            }
        )
        connection.recordsResponses = shard.idempotencyCache.reopen(name)
        // Other nodes take over the slots of a draining node: no new calls and streams start here.
        if shard.isDraining { connection.dismiss() }
        self.connection = connection
        if client.revocation != nil, let caller = connection.caller { client.update(caller.connection) }
    }

    // MARK: NodeChannelHandler

    func receive(_ frame: NodeFrame) {
        switch frame.kind {
        case .toOwnerPart:
            guard parts.count + frame.payload.count <= largestMessage else { return channelDidBreak(received: 0) }
            parts += frame.payload
        case .toOwner:
            received += 1
            let message = parts.isEmpty ? frame.payload : parts + frame.payload
            parts = []
            message.withUnsafeBytes { connection?.receive($0) }
        case .acknowledgement:
            let wasWritable = isWritable
            unacknowledgedBytes -= min(unacknowledgedBytes, Int(clamping: frame.number ?? 0))
            if !wasWritable, isWritable { connection?.linkDidBecomeWritable() }
        case .client:
            guard let client = ForwardedClient(frame.payload) else { return }
            if let caller = connection?.caller { client.update(caller.connection) }
        case .close:
            drop()
            close()
        default: break
        }
    }

    func channelDidBreak(received: UInt64) {
        drop()
        channel.send(.ended)
        close()
    }

    func channelDidOverflow(received: UInt64) { channelDidBreak(received: received) }

    private func close() {
        channel.discard()
        connection?.linkDidClose()
        connection = nil
    }

    // MARK: MessageLink

    var isWritable: Bool { unacknowledgedBytes <= Self.window }

    func send(_ body: (inout ByteBuffer) -> Void) {
        var buffer = ByteBuffer()
        body(&buffer)
        guard !isOver else { return }
        // As over a socket: a client that reads nothing loses its connection before it uses memory of others.
        guard unacknowledgedBytes <= Self.maximumUnacknowledged else { return channelDidEnd() }
        unacknowledgedBytes += buffer.count
        guard queuedMessages.isEmpty, pendingDeliveries.isEmpty else {
            return sendInOrder(.toClient, Array(buffer.bytes))
        }
        channel.send(buffer.bytes, part: .toClientPart, last: .toClient)
    }

    /// Sends a frame to the client's node in order, after the pending deliveries of shared streams.
    func sendInOrder(_ kind: NodeFrame.Kind, _ payload: [UInt8]) {
        guard !queuedMessages.isEmpty || !pendingDeliveries.isEmpty else { return pass(kind, payload) }
        queuedMessages.append((kind, payload))
        if !pendingDeliveries.reserveBytes(payload.count) { channelDidEnd() }
        if queuedMessages.count == 1 { awaitStreams() }
    }

    private func pass(_ kind: NodeFrame.Kind, _ payload: [UInt8]) {
        guard kind == .toClient else { return channel.send(kind, payload) }
        channel.send(payload, part: .toClientPart, last: .toClient)
    }

    /// Frames queued behind these may belong to calls that caused further stream changes.
    private func awaitStreams() {
        let count = queuedMessages.count
        let waits = pendingDeliveries.whenSent { self.reactor.execute { self.resumeReading(count) } }
        if !waits { resumeReading(count) }
    }

    private func resumeReading(_ count: Int) {
        // The queue is empty after the channel has broken.
        let ready = Array(queuedMessages.prefix(count))
        queuedMessages.removeFirst(ready.count)
        for (kind, payload) in ready {
            pendingDeliveries.release(payload.count)
            pass(kind, payload)
        }
        if !queuedMessages.isEmpty { awaitStreams() }
    }

    private func drop() {
        for (_, payload) in queuedMessages { pendingDeliveries.release(payload.count) }
        queuedMessages = []
    }

    func send(shared: SharedBytes, headCount: Int, head: (inout ByteBuffer) -> Void) {
        send { buffer in
            head(&buffer)
            buffer.append(shared.bytes)
        }
    }

    func inOneWrite(_ body: () -> Void) { body() }
    var memory: MemoryAccount? { nil }
    /// The client's node itself notifies its clients of a drain, so the acknowledgement is immediate.
    func sendDrainPing() { reactor.execute { self.connection?.didReceiveDrainPong() } }

    func close(_ code: WebSocketCloseCode, reason: String) { channelDidEnd() }
    func abort() { channelDidEnd() }

    private func channelDidEnd() {
        guard !isOver else { return }
        isOver = true
        // Run it later, outside of the connection's current operation.
        reactor.execute {
            guard self.connection != nil else { return }
            // Messages that arrive later are not executed.
            var received: [UInt8] = []
            BinaryFields.append(self.received, to: &received)
            self.sendInOrder(.ended, received)
            self.close()
        }
    }

    /// The client's node limits the client.
    func pauseReading() {}
    func resumeReading() {}
}
