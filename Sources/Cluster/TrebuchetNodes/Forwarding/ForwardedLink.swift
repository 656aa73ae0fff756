internal import Bytes
internal import Networking
internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire
internal import WebSockets

/// The link of a connection whose client is connected to another node.
///
/// `@unchecked Sendable`: used on the connection's reactor only, except for constants.
final class ForwardedLink: NodeChannelHandler, MessageLink, UpstreamServer, @unchecked Sendable {
    /// The number of unacknowledged bytes above which the client's streams skip versions and its responses wait.
    static let window = 256 << 10
    /// The number of unacknowledged bytes above which the connection ends. One message may exceed it.
    private static let maximumUnacknowledged = 16 << 20

    let reactor: Reactor
    let host: AddressKey?
    let alias: RemoteSessionAlias
    let streamPrefix: String
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
    ///   - alias: the session of the client, that of an earlier channel if it still exists.
    ///   - pendingDeliveries: the pending deliveries to the client's node.
    init(
        _ channel: NodeChannel, _ client: ForwardedClient, _ alias: RemoteSessionAlias, at shard: ServerShard,
        behind pendingDeliveries: PendingDeliveries
    ) {
        reactor = shard.reactor
        self.channel = channel
        (self.alias, streamPrefix) = (alias, client.streams)
        self.pendingDeliveries = pendingDeliveries
        host = client.address.flatMap { AddressKey($0) }.flatMap { $0.isLoopback ? nil : $0 }
        largestMessage = shard.limits.messages.inboundBytes
        reactor.execute { self.open(client, at: shard) }
    }

    private func open(_ client: ForwardedClient, at shard: ServerShard) {
        let connection = ServerConnection.open(
            over: self, at: shard, caller: client.caller, largestMessage: client.largestMessage)
        self.connection = connection
        if client.revocation != nil, let caller = connection.authorization.caller { client.update(caller.connection) }
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
            if let caller = connection?.authorization.caller { client.update(caller.connection) }
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

    // MARK: UpstreamServer

    var permission: [UInt8] { ForwardedCallID.permission }
    func refuse(_ callID: [UInt8]) { report(.refused, callID) }
    func repeatElsewhere(_ callID: [UInt8]) { report(.repeatElsewhere, callID) }
    func move(_ streamID: [UInt8]) { report(.moved, streamID) }
    func reportCatchUp(of streamID: [UInt8]) { report(.caughtUp, streamID) }

    /// Sends a frame, unless the channel has ended: recorded calls outlive it.
    private func report(_ kind: NodeFrame.Kind, _ name: [UInt8]) {
        if connection != nil { sendInOrder(kind, name) }
    }

    func resumesItself(_ callID: UnsafeRawBufferPointer) -> Bool { ForwardedCallID(callID)?.isOfNode == true }
    func mayShare(_ callID: UnsafeRawBufferPointer) -> Bool { ForwardedCallID(callID)?.mayShare == true }
    func callNumber(_ callID: UnsafeRawBufferPointer) -> UInt64? { ForwardedCallID(callID)?.number }

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
    private func sendInOrder(_ kind: NodeFrame.Kind, _ payload: [UInt8]) {
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
