package import Bytes
public import Networking
public import Transports

/// An open WebSocket connection, of either role.
///
/// It is confined to its reactor: the handler is called there, and what is not marked otherwise is called there. While
/// more than the high watermark waits to be sent, a server reads nothing from its peer: who does not take answers cannot
/// make more of them. A connection has a share of each turn of its reactor, about 100 µs and at most 256 messages; when it
/// is used up, what is left of its input is handled in a later turn, after that of others.
///
/// `@unchecked Sendable`: apart from `let`s its state is touched on the reactor's thread alone; the methods that may be
/// called from anywhere go there first.
public final class WebSocket: @unchecked Sendable {
    /// The loop that the connection lives on: its handler is called there.
    public let reactor: Reactor
    /// What both sides agreed on in the handshake; nil when they did not.
    public let subprotocol: String?
    /// Fields of the server's answer in the handshake; none at a server. They are set before the handler is made and do not change.
    public internal(set) var responseHeaders: HTTPHeaders = [:]
    let channel: ByteChannel
    /// Nil once it was told of the end.
    var handler: (any WebSocketHandler)?
    /// What every message touches. Behind a pointer, so that messages cost no exclusivity checks (9 % of an echo):
    /// `reader` is used by `read` alone, which `isReading` keeps from being entered twice; the rest is plain values that
    /// nobody holds on to. Freed in `deinit`.
    private let hot: UnsafeMutablePointer<HotState>
    /// Bytes that came while reading was paused.
    var held: HeldInput?
    /// Nil when it was not agreed on.
    let compression: MessageCompression?
    /// A client masks what it sends; a server has no keys.
    let maskingKeys: MaskingKeys?

    /// Events are being read: what the handler is to be told waits until it has returned.
    var isReading = false
    var isPausedByUser = false
    /// It has used up its share of a turn; what is left of its input is handled in a later one.
    var isInLine = false
    /// What the peer did wrong, when this side has ended the connection for it.
    package internal(set) var violation: ProtocolViolation?
    /// Why this side ends it.
    var endings: Endings?
    /// How it ended, until the handler has been told.
    var untold: (code: WebSocketCloseCode, reason: String)?

    let times: ConnectionTimes
    private var closeTimer: LoopTimer?
    private var beatTimer: LoopTimer?
    /// The server's list that this is in, and where.
    var table: ConnectionTable?
    var tableIndex = 0
    /// Counts for its address as long as the socket is there.
    var addressEntry: AddressEntry?
    /// The host at the other end; nil for this machine itself, and at a client.
    package var addressKey: AddressKey? { addressEntry.flatMap { $0.key.isLoopback ? nil : $0.key } }
    package var representedAddress: SocketAddress? { addressEntry?.client }

    init(
        _ channel: ByteChannel, role: WebSocketRole, subprotocol: String?, limits: WebSocketLimits,
        times: ConnectionTimes, compression: MessageCompression?, handler: (any WebSocketHandler)? = nil
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

    private struct HotState: ~Copyable {
        var reader: MessageReader
        var machine: WebSocketStateMachine
        var fragmentBytes = 0
        var keepalive = Keepalive()
        /// What was counted of the memory for input.
        var heldBytes = 0
        /// Of a connection of which nothing is known yet, the first pieces may be long ones.
        var stride: UInt8 = 1
    }

    var keepalive: Keepalive {
        @inline(__always) get { hot.pointee.keepalive }
        @inline(__always) _modify { yield &hot.pointee.keepalive }
    }

    /// Messages between two looks at the clock: fewer for a connection whose messages cost more.
    var stride: Int {
        get { Int(hot.pointee.stride) }
        set { hot.pointee.stride = UInt8(truncatingIfNeeded: newValue) }
    }

    var machine: WebSocketStateMachine {
        @inline(__always) get { hot.pointee.machine }
        @inline(__always) _modify { yield &hot.pointee.machine }
    }

    /// Messages of more bytes leave in several frames; 0 for never. For peers and proxies with small buffers.
    package var fragmentBytes: Int {
        get { hot.pointee.fragmentBytes }
        set { hot.pointee.fragmentBytes = newValue }
    }

    /// What is held for this connection, to count with, and to share with its principal; made at the first call. Nil at a client,
    /// and when the connection is gone.
    package var memoryAccount: MemoryAccount? { channel.account }

    /// Counts the memory for input that is not handled, when it has changed. Costs two comparisons when it has not.
    @inline(__always)
    func noteHeldInput() {
        let bytes = hot.pointee.reader.heldBytes &+ (held?.heldBytes ?? 0)
        let counted = bytes < ByteChannel.smallestHeld ? 0 : bytes
        if counted != hot.pointee.heldBytes { count(counted) }
    }

    @inline(never)
    private func count(_ bytes: Int) {
        guard machine.role == .server, let account = channel.account else { return }
        let change = bytes - hot.pointee.heldBytes
        hot.pointee.heldBytes = bytes
        if let excess = account.hold(change) { end(for: excess) }
    }

    func end(for excess: MemoryExcess) {
        close(code: excess.holder == .connection ? .policyViolation : .tryAgainLater, reason: excess.reason)
    }

    /// Whether the message that was not whole at the last beat still is not.
    private func isMessageOld() -> Bool { hot.pointee.reader.isOlderThanLastBeat() }

    @inline(__always)
    func nextEvent(_ bytes: inout UnsafeMutableRawBufferPointer) -> MessageReader.Event {
        hot.pointee.reader.next(&bytes)
    }

    /// Messages and their frames may have so many bytes from the next frame on. On the connection's reactor.
    package func takeMessages(upTo bytes: Int) { hot.pointee.reader.take(upTo: bytes) }

    /// Whether messages may be compressed in both directions.
    public var isCompressionAgreed: Bool { compression != nil }
    package var isResumed: Bool { channel.isResumed }
    /// Who the peer is; behind a trusted proxy the client that it names. Nil when the system does not know it any more.
    public var remoteAddress: SocketAddress? { channel.remoteAddress }
    /// Whether messages may be sent: neither side has begun to close.
    public var isOpen: Bool { machine.phase == .open }
    /// Bytes that wait for the network.
    public var pendingBytes: Int { channel.pendingBytes }
    /// Whether less than the high watermark waits. More may be sent all the same, and is kept in memory.
    public var isWritable: Bool { channel.isWritable }

    // MARK: Closing

    /// Begins the close handshake; may be called from anywhere. What was sent before arrives before it. A reason over
    /// 123 bytes is cut. Does nothing when the connection is closing already.
    public func close(code: WebSocketCloseCode = .normal, reason: String = "") {
        guard reactor.isCurrent else { return reactor.execute { self.close(code: code, reason: reason) } }
        willEnd(code, reason)
        perform(machine.close(ClosePayload(code: code, reason: reason)))
    }

    /// A beat of the connection's keepalive: of the server's table, or of a client's own timer.
    func beat() {
        guard machine.phase == .open else { return }
        // Who has stopped reading hears nothing; that is not the peer's fault.
        if isPausedByUser { keepalive.wasHeard = true }
        // A ping goes behind what waits for a peer that reads slowly, and so does its answer.
        if keepalive.isOverdue(times.keepalive), channel.isPeerTaking() { keepalive.wasHeard = true }
        // What is not read is not the peer's fault either; a client takes what its server sends, however slow the way.
        let isUnfinished = machine.role == .server && !isPaused && !isInLine && isMessageOld()
        switch keepalive.beat(times.keepalive, isUnfinished: isUnfinished) {
        case .nothing: break
        case .ping: ping()
        case .giveUp(let reason):
            willGiveUp(reason)
            perform(machine.abort(reason))
        case .closeIdle: close(code: .goingAway, reason: "no message came for too long")
        case .closeUnfinished:
            close(code: .policyViolation, reason: "a message was not whole after \(times.message) (messageTimeout)")
        }
    }

    /// A client has no table whose timer beats for it.
    func beatAlone() {
        beatTimer = reactor.schedule(after: times.keepalive.beat, for: self) { socket in
            guard socket.machine.phase == .open else { return }
            socket.beat()
            socket.beatAlone()
        }
    }

    /// Ends the connection at once, without a close handshake: the handler hears code 1006. May be called from anywhere.
    public func abort() {
        guard reactor.isCurrent else { return reactor.execute { self.abort() } }
        willEnd(.abnormal, "aborted by this side")
        perform(machine.abort("aborted by this side"))
    }

    /// Does what the state machine says, messages and pongs aside.
    func perform(_ action: WebSocketStateMachine.Action) {
        switch action {
        case .nothing, .deliver, .sendPong: break
        case .sendClose(let payload):
            limitClosing { $0.perform($0.machine.closeTimedOut()) }
            sendControl(.close, payload.encoded)
        case .finish(let ending): finish(ending)
        }
    }

    private func finish(_ ending: WebSocketStateMachine.Ending) {
        stopTimers()
        held = nil
        untold = (ending.code, ending.reason)
        if let reply = ending.reply { sendControl(.close, reply.encoded) }
        switch ending.transport {
        case .end: channel.closeAfterFlush()
        case .drop: channel.close()
        case .awaitPeer:
            channel.resumeReading()
            limitClosing { $0.channel.close() }
        }
        // The caller may be the handler, in the middle of something: it hears of the end when it has returned.
        if !isReading { reactor.execute { self.tellEnd() } }
    }

    /// What happens when the peer takes too long to end the connection.
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

    func tellEnd() {
        guard let (code, reason) = untold, let handler else { return }
        untold = nil
        self.handler = nil
        handler.webSocketDidClose(self, code: code, reason: reason)
    }

    /// The TCP connection is gone. Every channel that ends comes here, after all that was begun on it.
    func transportDidClose(_ error: TransportError?) {
        stopTimers()
        if let error { willEnd(with: error) }
        perform(machine.abort(error?.message ?? "the peer ended the connection without a close frame"))
        // After the handler has been told, so that a server's shutdown ends with nothing left to tell.
        guard let table else { return }
        self.table = nil
        reactor.execute { table.remove(self) }
    }
}
