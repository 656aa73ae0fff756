package import Bytes
public import Networking
public import Transports

/// An open WebSocket connection, of either role.
///
/// It is confined to its reactor, which calls the handler; methods must be called there unless they state otherwise. While unsent
/// output exceeds the high watermark, a server does not read from the peer: a peer that does not accept responses cannot cause
/// more. A connection has a share of each turn of its reactor, about 100 µs and at most 256 messages. When it is used up, the
/// rest of the input is handled in a later turn, after that of other connections.
///
/// `@unchecked Sendable`: except for constants its state is accessed only on the reactor's thread; methods that are callable from
/// any thread switch to it first.
public final class WebSocket: @unchecked Sendable {
    /// The event loop of the connection, which calls its handler.
    public let reactor: Reactor
    /// The negotiated subprotocol, or nil.
    public let subprotocol: String?
    /// The header fields of the server's handshake response; empty at a server. They are set before the handler is created and
    /// then constant.
    public internal(set) var responseHeaders: HTTPHeaders = [:]
    let channel: ByteChannel
    /// The handler, or nil after it was notified of the end.
    var handler: (any WebSocketHandler)?
    /// The state that every message accesses. It is behind a pointer, so that messages cost no exclusivity checks (9 % of an
    /// echo). Only `read` uses `reader`, and `isReading` prevents its reentrancy; the rest is plain values without references to
    /// them. Freed in `deinit`.
    private let hot: UnsafeMutablePointer<HotState>
    /// Input that arrived while reading was paused.
    var pausedInput: PausedInputBuffer?
    /// The compression state, or nil if it was not negotiated.
    let compression: MessageCompression?
    /// The messages that wait for compression in later steps; nil if there are none.
    var outgoing: OutgoingCompression?
    /// The generator of masking keys at a client; nil at a server.
    let maskingKeys: MaskingKeys?

    /// True while events are read: notifications for the handler wait until it has returned.
    var isReading = false
    var isPausedByUser = false
    /// True after its share of a turn was used up; the rest of its input is handled in a later turn.
    var isQueued = false
    /// The state of a message that needs a long step.
    var longStep = LongStep.none
    /// The peer's protocol violation for which this side has closed the connection.
    package internal(set) var violation: ProtocolViolation?
    /// The reason for which this side closes the connection.
    var endings: Storage?
    /// The code and reason of the end, until the handler is notified.
    var unreportedClose: (code: WebSocketCloseCode, reason: String)?

    let times: ConnectionTimeouts
    private var closeTimer: LoopTimer?
    private var beatTimer: LoopTimer?
    /// The server's table that contains the socket, and its index there.
    var table: ConnectionTable?
    var tableIndex = 0
    /// The count of the connection for its address, as long as the socket exists.
    var addressEntry: CountedConnection?
    /// The host of the peer; nil for this machine, and at a client.
    package var addressKey: AddressKey? { addressEntry.flatMap { $0.key.isLoopback ? nil : $0.key } }
    package var representedAddress: SocketAddress? { addressEntry?.client }

    init(
        _ channel: ByteChannel, role: WebSocketRole, subprotocol: String?, limits: WebSocketLimits,
        times: ConnectionTimeouts, compression: MessageCompression?, handler: (any WebSocketHandler)? = nil
    ) {
        self.compression = compression
        self.channel = channel
        self.subprotocol = subprotocol
        self.handler = handler
        reactor = channel.reactor
        hot = .allocate(capacity: 1)
        hot.initialize(
            to: HotState(
                reader: MessageReader(role: role, limits: limits, compression: compression),
                machine: WebSocketStateMachine(role: role)))
        maskingKeys = role == .client ? MaskingKeys() : nil
        self.times = times
        channel.limits = times.channel
    }

    deinit {
        hot.deinitialize(count: 1)
        hot.deallocate()
    }

    /// The frequently accessed state of a socket.
    private struct HotState: ~Copyable {
        var reader: MessageReader
        var machine: WebSocketStateMachine
        var fragmentBytes = 0
        var keepalive = Keepalive()
        /// The counted memory for input.
        var bufferedBytes = 0
        /// The stride of the time slice. It starts at 1, because the first messages of a connection may be expensive.
        var stride: UInt8 = 1
        /// The number of all jobs of the reactor at the end of the last slice that added some.
        var lastJob: UInt64 = 0
    }

    var keepalive: Keepalive {
        @inline(__always) get { hot.pointee.keepalive }
        @inline(__always) _modify { yield &hot.pointee.keepalive }
    }

    /// The number of messages between two clock readings: lower for a connection with expensive messages.
    var stride: Int {
        get { Int(hot.pointee.stride) }
        set { hot.pointee.stride = UInt8(truncatingIfNeeded: newValue) }
    }

    var lastJob: UInt64 {
        get { hot.pointee.lastJob }
        set { hot.pointee.lastJob = newValue }
    }

    var machine: WebSocketStateMachine {
        @inline(__always) get { hot.pointee.machine }
        @inline(__always) _modify { yield &hot.pointee.machine }
    }

    /// The size above which messages are fragmented; 0 for never. For peers and proxies with small buffers.
    package var fragmentBytes: Int {
        get { hot.pointee.fragmentBytes }
        set { hot.pointee.fragmentBytes = newValue }
    }

    /// The memory account of this connection, also shared with its principal, created at first use. Nil at a client and after the
    /// end.
    package var memoryAccount: MemoryAccount? { channel.account }

    /// Updates the counted memory for unhandled input if it has changed. It costs two comparisons if it has not.
    @inline(__always)
    func updateBufferedInput() {
        let bytes = hot.pointee.reader.bufferedBytes &+ (pausedInput?.bufferedBytes ?? 0)
        let counted = bytes < ByteChannel.minimumCountedBytes ? 0 : bytes
        if counted != hot.pointee.bufferedBytes { count(counted) }
    }

    @inline(never)
    private func count(_ bytes: Int) {
        guard machine.role == .server, let account = channel.account else { return }
        let change = bytes - hot.pointee.bufferedBytes
        hot.pointee.bufferedBytes = bytes
        if let excess = account.adjustUsage(by: change) { closeForMemoryLimit(for: excess) }
    }

    func closeForMemoryLimit(for excess: MemoryLimitExceeded) {
        close(code: excess.holder == .connection ? .policyViolation : .tryAgainLater, reason: excess.reason)
    }

    /// Returns whether the message that was incomplete at the last beat is still incomplete.
    private func isMessageOld() -> Bool { hot.pointee.reader.isOlderThanLastBeat() }

    /// True if a compressed or large message is complete and not delivered yet.
    var hasCompleteMessage: Bool { hot.pointee.reader.hasCompleteMessage }

    func takeMessage(atMost limit: Int?) -> MessageReader.Event? { hot.pointee.reader.takeMessage(atMost: limit) }

    @inline(__always)
    func nextEvent(_ bytes: inout UnsafeMutableRawBufferPointer) -> MessageReader.Event {
        hot.pointee.reader.next(&bytes)
    }

    /// True if messages may be compressed in both directions.
    public var isCompressionNegotiated: Bool { compression != nil }
    package var isResumed: Bool { channel.isResumed }
    /// The address of the peer; behind a trusted proxy the address of the client that it names. Nil if the system no longer knows
    /// it.
    public var remoteAddress: SocketAddress? { channel.remoteAddress }
    /// True if messages can be sent: neither side has started to close.
    public var isOpen: Bool { machine.phase == .open }
    /// The number of unsent bytes.
    public var pendingBytes: Int { channel.pendingBytes }
    /// True while fewer bytes than the high watermark are unsent. More can be sent nevertheless, and is buffered.
    public var isWritable: Bool { channel.isWritable }

    // MARK: Closing

    /// Starts the close handshake. Callable from any thread. Earlier messages are sent before it. A reason over 123 bytes is
    /// truncated. Does nothing when the connection is closing already.
    public func close(code: WebSocketCloseCode = .normal, reason: String = "") {
        guard reactor.isCurrent else { return reactor.execute { self.close(code: code, reason: reason) } }
        willEnd(code, reason)
        perform(machine.close(ClosePayload(code: code, reason: reason)))
    }

    /// Runs a beat of the keepalive, from the server's table or a client's timer.
    func beat() {
        guard machine.phase == .open else { return }
        // A paused connection receives nothing, for which the peer is not responsible.
        if isPausedByUser { keepalive.hasReceivedInput = true }
        // A ping is queued behind the output to a slow peer, and so is its pong.
        if keepalive.isOverdue(times.keepalive), channel.isPeerReading() { keepalive.hasReceivedInput = true }
        // Unread input is not the peer's fault either; a client accepts its server's messages at any speed.
        let isUnfinished = machine.role == .server && !isPaused && !isQueued && isMessageOld()
        switch keepalive.beat(times.keepalive, isUnfinished: isUnfinished) {
        case .nothing: break
        case .ping: ping()
        case .drop(let reason):
            willDrop(reason)
            perform(machine.abort(reason))
        case .closeIdle: close(code: .goingAway, reason: "no message was received in time")
        case .closeUnfinished:
            close(code: .policyViolation, reason: "a message was incomplete after \(times.message) (messageTimeout)")
        }
    }

    /// Starts a client's beat timer. A client has no table with a timer.
    func startClientBeat() {
        beatTimer = reactor.schedule(after: times.keepalive.beat, for: self) { socket in
            guard socket.machine.phase == .open else { return }
            socket.beat()
            socket.startClientBeat()
        }
    }

    /// Closes the connection immediately, without a close handshake: the handler receives code 1006. Callable from any thread.
    public func abort() {
        guard reactor.isCurrent else { return reactor.execute { self.abort() } }
        willEnd(.abnormal, "aborted by this side")
        perform(machine.abort("aborted by this side"))
    }

    /// Performs an action of the state machine, except for messages and pongs.
    func perform(_ action: WebSocketStateMachine.Action) {
        switch action {
        case .nothing, .deliver, .sendPong: break
        case .sendClose(let payload):
            limitClosing { $0.perform($0.machine.closeTimedOut()) }
            outgoing?.sendUncompressed()
            sendControl(.close, payload.encoded)
        case .finish(let ending): finish(ending)
        }
    }

    private func finish(_ ending: WebSocketStateMachine.Ending) {
        stopTimers()
        pausedInput = nil
        unreportedClose = (ending.code, ending.reason)
        if ending.transport == .drop { outgoing?.drop() } else { outgoing?.sendUncompressed() }
        if let reply = ending.reply { sendControl(.close, reply.encoded) }
        switch ending.transport {
        case .end: channel.closeAfterFlush()
        case .drop: channel.close()
        case .awaitPeer:
            channel.resumeReading()
            limitClosing { $0.channel.close() }
        }
        // The caller may be the handler; it is notified of the end after it has returned.
        if !isReading { reactor.execute { self.notifyEnd() } }
    }

    /// Sets the action for a peer that takes too long to end the connection.
    private func limitClosing(_ end: @escaping (WebSocket) -> Void) {
        closeTimer?.cancel()
        closeTimer = reactor.schedule(after: times.close, for: self, end)
    }

    private func stopTimers() {
        closeTimer?.cancel()
        closeTimer = nil
        beatTimer?.cancel()
        beatTimer = nil
    }

    func notifyEnd() {
        guard let (code, reason) = unreportedClose, let handler else { return }
        unreportedClose = nil
        self.handler = nil
        handler.webSocketDidClose(self, code: code, reason: reason)
    }

    /// Handles the end of the TCP connection. Every closed channel calls it, after all operations on it.
    func transportDidClose(_ error: TransportError?) {
        stopTimers()
        if let error { willEnd(with: error) }
        perform(machine.abort(error?.message ?? "the peer ended the connection without a close frame"))
        // After the notification of the handler, so that no notification is pending when a server's shutdown completes.
        guard let table else { return }
        self.table = nil
        let bound = LoopBound(table, on: reactor)
        reactor.execute { bound.value.remove(self) }
    }
}
