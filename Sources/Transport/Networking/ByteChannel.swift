package import Bytes
internal import CEpoll
internal import Glibc
package import Transports

/// A connection's byte stream, bound to one reactor.
///
/// Output written while an event of this connection is handled is gathered in the reactor's buffer and sent with one `send`. The
/// channel keeps only the part that the socket does not accept. An idle connection has no buffer.
///
/// Its methods never call the delegate. If a write finds that the connection is lost, the delegate is called at the end of the
/// turn, as for all other events. A caller therefore finds its state unchanged after a write, close or pause; only the channel
/// may have closed.
///
/// `@unchecked Sendable`: it is accessed only on its reactor's thread; other threads use `reactor.execute`.
package final class ByteChannel: ReadinessHandler, @unchecked Sendable {
    /// The lifecycle states of a channel.
    enum State { case open, flushing, lingering, closed }

    /// The size below which shared bytes are copied, because that costs less than another element in the system call.
    private static let smallestShared = 8 << 10
    /// The size below which received bytes are copied instead of sent from the read buffer.
    package static let smallestLent = 4 << 10
    /// The size below which buffered memory is not counted.
    package static let minimumCountedBytes = 4 << 10
    /// The number of bytes read at once from a peer that is behind with reading, because its responses may have to be buffered.
    private static let smallRead = 64 << 10
    /// The number of output bytes after which they are sent before the turn ends.
    package static let largestTurn = 128 << 10
    /// The time limit for sending the rest and for the peer's end of stream.
    static let closeTimeout = Duration.seconds(5)

    package let reactor: Reactor
    /// The delegate, retained until the connection has closed.
    package var delegate: (any ByteChannelDelegate)?
    package var limits = ChannelLimits.standard
    /// The maximum number of bytes per read, at most the size of the reactor's buffer. It is reduced for a peer that sends more
    /// than can be handled at once.
    package var maximumReadBytes: Int {
        get { Int(maximumReadSize) }
        set { maximumReadSize = UInt32(clamping: min(newValue, Reactor.readBufferSize)) }
    }
    private var maximumReadSize = UInt32(Reactor.readBufferSize)

    let socket: Socket
    /// The TLS state, set before `start` for a secure connection.
    var tls: TLSConnection?
    var queue = WriteQueue()
    var state = State.open
    var isAboveHigh = false
    var isReadingPaused = false
    /// True while this connection writes into the reactor's buffer.
    var isCorked = false
    private var isQueuedForFlush = false
    /// True if the delegate must be notified of writability at the end of the turn.
    private var becameWritable = false
    /// True if the channel is registered with the reactor.
    var isStarted = false
    private var watched: UInt32 = 0
    /// State that few connections need, allocated on demand.
    var extras: Extras?

    /// Rarely needed state of a channel.
    final class Extras {
        /// The timer that runs while the rest of the output is sent at the end.
        var closeTimer: LoopTimer?
        /// The number of input bytes discarded at the end, and its limit.
        var discardedBytes = 0
        var maximumDiscarded = 0
        /// The reason of the end, until the delegate is called.
        var error: TransportError?
        /// The memory account of the connection, the part of it that is counted here, and the bytes that the delegate writes later.
        var account: MemoryAccount?
        var (bufferedBytes, deferredBytes, deferredOwnBytes) = (0, 0, 0)
        var excess: MemoryLimitExceeded?
        /// The timer that runs while many shared bytes are pending, and the bytes that the socket accepted since its start.
        var slowness: LoopTimer?
        var acceptedBytes = 0
        /// The number of acknowledged bytes at the last check.
        var acknowledged: UInt64?
    }

    /// Creates a channel that owns a connected socket. Call `start` on the reactor.
    init(_ socket: Socket, on reactor: Reactor) {
        self.socket = socket
        self.reactor = reactor
        super.init()
        socket.disableNagle()
        socket.limitUnsentBytes()
    }

    deinit {
        if state != .closed { socket.close() }
    }

    /// Starts to read. Only on the reactor.
    package func start(_ delegate: any ByteChannelDelegate) throws(TransportError) {
        self.delegate = delegate
        watched = EPOLLIN.rawValue
        do {
            try reactor.watchDescriptor(socket.descriptor, self, events: watched)
        } catch {
            self.delegate = nil
            throw error
        }
        isStarted = true
        tls?.startHandshake(on: socket)
        if tls != nil || isReadingPaused { watch() }
    }

    /// Enables TLS, before `start`. A client passes the host that it connects to.
    ///
    /// - Parameter answer: at a server, the response to a client that sends plain text.
    package func secure(
        with context: TLSContext, host: String? = nil, answerToPlainText answer: [UInt8] = []
    ) throws(TransportError) {
        let name = host ?? remoteAddress?.description ?? "peer"
        tls = try TLSConnection(
            context, host: host, name: name, buffers: reactor.tlsBuffers, answerToPlainText: answer)
    }

    package var isSecure: Bool { tls != nil }
    /// Indicates whether the TLS session was resumed.
    package var isResumed: Bool { tls?.isResumed ?? false }

    /// True when the handshake is complete, and without TLS.
    package var isEstablished: Bool { tls?.isEstablished ?? true }

    /// The name of the peer's certificate that was verified; nil if none was required.
    package var peerName: String? { tls?.peerName }

    /// The subject of the peer's certificate, as `CN=ada, O=Example`.
    package var peerSubject: String? { tls?.peerSubject }

    package var remoteAddress: SocketAddress? { delegate?.representedAddress ?? socket.remoteAddress }
    /// The local address.
    package var localAddress: SocketAddress? { socket.localAddress }
    package var isOpen: Bool { state == .open }

    /// The number of output bytes that are not sent yet.
    package var pendingBytes: Int {
        waitingBytes + (isCorked ? reactor.output.pointee.count + reactor.borrowed.pointee.count : 0)
    }

    /// Indicates whether sending the output takes long, because the kernel copies it.
    var hasLargeOutput: Bool { queue.count > 16 << 10 }

    /// The number of unsent output bytes, without those gathered in this turn.
    var waitingBytes: Int { queue.count + (tls?.unsentBytes ?? 0) + (extras?.deferredBytes ?? 0) }

    /// True while fewer bytes than the high watermark are unsent.
    package var isWritable: Bool { !isAboveHigh }

    // MARK: Writing

    /// Appends to the output, which is sent when the event or the turn ends. On a closed connection the output is discarded, but
    /// `body` is called.
    @inlinable
    package func write<R>(_ body: (inout ByteBuffer) throws -> R) rethrows -> R {
        // Split in two halves, so that the code between them is specialized at the call site.
        let buffer = beginWriting()
        defer { endWriting() }
        return try body(&buffer.pointee)
    }

    /// Returns the buffer for the next output. Other code does not write to it before `endWriting`.
    @usableFromInline
    func beginWriting() -> UnsafeMutablePointer<ByteBuffer> {
        if isCorked { return reactor.output }
        guard state == .open else {
            reactor.nowhere.pointee.removeAll()
            return reactor.nowhere
        }
        return queue.beginAppending()
    }

    @usableFromInline
    func endWriting() {
        if isCorked {
            if reactor.output.pointee.count > Self.largestTurn { sendOutput() }
        } else if state == .open {
            queue.endAppending()
            queueForFlush()
        }
    }

    /// Appends bytes that many connections share. Large ones are not copied.
    package func write(shared: SharedBytes) {
        if shared.count < Self.smallestShared { return write { $0.append(shared.bytes) } }
        guard state == .open else { return }
        if isCorked { moveOutputToQueue() }
        queue.append(shared)
        queueForFlush()
    }

    /// Gathers all output that `body` writes to this connection in the reactor's buffer, and sends it at once.
    package func corked(_ body: () -> Void) {
        guard reactor.corked == nil else { return body() }
        cork()
        body()
        uncork()
    }

    /// Passes bytes to the socket. Returns the number of accepted bytes, or nil if the connection is lost.
    @inline(__always)
    func writeToSocket(_ bytes: UnsafeRawBufferPointer) -> Int? {
        var sent = transmit(bytes)
        if sent == -Int(EINTR) { sent = transmit(bytes) }
        guard sent < 0 else { return sent }
        if sent == -Int(EAGAIN) { return 0 }
        fail("send", Int32(-sent))
        return nil
    }

    func cork() {
        reactor.corked = self
        isCorked = true
    }

    func uncork() {
        sendOutput()
        assert(reactor.output.pointee.isEmpty, "the shared output buffer must be empty after sending")
        isCorked = false
        reactor.corked = nil
        reactor.output.pointee.reset(keepingAtMost: 512 << 10)
    }

    private func moveOutputToQueue() {
        reactor.borrowed.pointee.copy(with: reactor.output.pointee.bytes, to: &queue)
        forgetOutput()
    }

    private func forgetOutput() {
        reactor.output.pointee.removeAll()
        if !reactor.borrowed.pointee.isEmpty { reactor.borrowed.pointee.removeAll() }
    }

    /// Sends the output of the turn; the unsent rest is queued.
    func sendOutput() {
        guard state == .open || state == .flushing else { return forgetOutput() }
        if queue.isEmpty {
            let bytes = reactor.output.pointee.bytes
            let count = bytes.count + reactor.borrowed.pointee.count
            if count > 0 {
                guard let sent = writeToSocket(bytes) else { return forgetOutput() }
                if sent < count { reactor.borrowed.pointee.copy(with: bytes, from: sent, to: &queue) }
                forgetOutput()
            }
            if queue.isEmpty && !isAboveHigh && state == .open && tls?.unsentBytes ?? 0 == 0 { return }
        } else {
            moveOutputToQueue()
        }
        flush()
    }

    @inline(__always)
    private func transmit(_ bytes: UnsafeRawBufferPointer) -> Int {
        if let tls { return tls.send(bytes, to: socket) }
        return reactor.borrowed.pointee.isEmpty
            ? socket.send(bytes) : reactor.borrowed.pointee.send(with: bytes, to: socket)
    }

    func queueForFlush() {
        if queue.count > limits.high { isAboveHigh = true }
        guard !isQueuedForFlush else { return }
        isQueuedForFlush = true
        reactor.flushAtEndOfTurn(self)
    }

    /// Flushes the output; called by the reactor. The delegate is called only here and where bytes are read.
    func flushAtEndOfTurn() {
        flush()
        isQueuedForFlush = false
        notifyDelegate()
    }

    private func notifyDelegate() {
        guard let delegate else { return }
        if state == .closed {
            self.delegate = nil
            return delegate.channelDidClose(self, error: extras?.error)
        }
        if let excess = extras?.excess {
            extras?.excess = nil
            delegate.channel(self, exceeds: excess)
        }
        guard becameWritable else { return }
        becameWritable = false
        if state == .open, !isAboveHigh { delegate.channelDidBecomeWritable(self) }
    }

    func flush() {
        guard state == .open || state == .flushing else { return }
        let before = queue.count
        let error = flushQueue()
        if error != 0 { return fail("send", error) }
        let waiting = waitingBytes
        if waiting > 0 || extras != nil { updateBufferedBytes(before - queue.count) }
        if waiting > limits.high { isAboveHigh = true }
        watch()
        if isAboveHigh, waiting <= limits.low {
            isAboveHigh = false
            becameWritable = true
            queueForFlush()
        }
        if state == .flushing, waiting == 0 { linger() }
        if waiting > limits.limit {
            close(error: TransportError(.closed, "the peer reads too slowly: \(waiting) bytes are queued"))
        }
    }

    private func flushQueue() -> Int32 {
        guard let tls else { return queue.flush { socket.send($0) } }
        let error = tls.flush(to: socket)
        return error != 0 ? error : queue.flush { tls.send($0, to: socket) }
    }

    // MARK: Reading

    package func pauseReading() {
        guard !isReadingPaused else { return }
        isReadingPaused = true
        watch()
    }

    package func resumeReading() {
        guard isReadingPaused else { return }
        isReadingPaused = false
        watch()
    }

    /// True if input is read. Pending TLS records count too, such as responses to key updates. A peer that requests more than it
    /// accepts is not read from, whether or not it sends messages.
    private var readsInput: Bool {
        (!isReadingPaused || state != .open) && tls?.unsentBytes ?? 0 <= limits.high
    }

    func watch() {
        guard state != .closed, isStarted else { return }
        var events: UInt32 = readsInput ? EPOLLIN.rawValue : 0
        if waitsForSocket { events |= EPOLLOUT.rawValue }
        guard events != watched else { return }
        watched = events
        reactor.change(socket.descriptor, self, events: events)
    }

    /// True if there is output that the socket could accept. Plain text before the end of the TLS handshake waits for the peer.
    private var waitsForSocket: Bool {
        guard let tls else { return !queue.isEmpty }
        return tls.unsentBytes > 0 || !queue.isEmpty && tls.isEstablished
    }

    override func ready(_ events: UInt32) {
        if events & EPOLLOUT.rawValue != 0 { flush() }
        if events & (EPOLLIN.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 { read(events) }
    }

    private func read(_ events: UInt32) {
        guard state != .closed else { return }
        guard readsInput else {
            // A paused connection only reacts to its end.
            if events & (EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 { fail("recv", socket.pendingError()) }
            return
        }
        if let tls {
            // Otherwise epoll reports the input again in the next turn.
            if !tls.isAccepting || reactor.mayHandshake() { read(tls) }
            return
        }
        let count = socket.receive(into: UnsafeMutableRawBufferPointer(rebasing: reactor.readBuffer[..<readNow]))
        if count > 0 {
            deliverInput(count)
        } else if count == 0 {
            close(error: nil)
        } else if count != -Int(EAGAIN), count != -Int(EINTR) {
            fail("recv", Int32(-count))
        }
    }

    @inline(__always)
    private var readNow: Int { queue.isEmpty ? maximumReadBytes : min(maximumReadBytes, Self.smallRead) }

    @inline(__always)
    private func deliverInput(_ count: Int) {
        guard state == .open, let delegate else { return discardInput(count) }
        cork()
        delegate.channel(self, didRead: UnsafeMutableRawBufferPointer(rebasing: reactor.readBuffer[..<count]))
        uncork()
    }

    private func read(_ tls: TLSConnection) {
        let count = tls.receive(from: socket, atMost: readNow, into: reactor.readBuffer)
        if count > 0 { deliverInput(count) } else if state != .open { discardInput(tls.receivedBytes) }
        if let failure = tls.failure { return close(error: failure) }
        if tls.isEnded || count == 0 { return close(error: nil) }
        if count < 0, count != -Int(EAGAIN), count != -Int(EINTR) { return fail("recv", Int32(-count)) }
        // The handshake, for which output waited, may be complete, or TLS has records to send.
        if !queue.isEmpty || tls.unsentBytes > 0 { flush() }
    }

    /// Discards input after the local side has ended, up to a limit.
    private func discardInput(_ count: Int) {
        guard let extras, state != .closed else { return }
        extras.discardedBytes += count
        if extras.discardedBytes > extras.maximumDiscarded { close(error: nil) }
    }

    func makeExtras() -> Extras {
        if let extras { return extras }
        let made = Extras()
        extras = made
        return made
    }
}

/// Closing a connection.
extension ByteChannel {
    /// Sends the queued output, then closes the connection. Further input is discarded, for at most 5 s and `limit` bytes
    /// (default 16 MiB).
    package func closeAfterFlush(throwingAwayAtMost limit: Int = 16 << 20) {
        guard state == .open else { return }
        state = .flushing
        isReadingPaused = false
        let extras = makeExtras()
        extras.maximumDiscarded = limit
        extras.closeTimer = reactor.schedule(after: Self.closeTimeout, for: self) { $0.close(error: nil) }
        if !isCorked { queueForFlush() }
    }

    /// Closes the connection immediately; queued output is lost.
    package func close() { close(error: nil) }

    /// Closes the connection immediately with a TCP reset: the peer loses unread data and gets an error. The delegate receives
    /// `error`.
    package func reset(_ error: TransportError? = nil) {
        guard state != .closed else { return }
        socket.resetWhenClosed()
        close(error: error)
    }

    /// Shuts down the write side and waits, with a time limit, for the peer's end of stream. Closing a socket with unread input
    /// would reset the connection, and the peer would lose the last output.
    func linger() {
        state = .lingering
        tls?.sendCloseNotify(on: socket)
        socket.shutdownWriting()
        watch()
    }

    func fail(_ call: String, _ number: Int32) {
        if let failure = tls?.failure { return close(error: failure) }
        guard number != 0 else { return close(error: nil) }
        close(error: .system(call, number, "connection to \(remoteAddress?.description ?? "peer")"))
    }

    /// Closes the connection; every path to the end uses this method. Resources are released immediately; the delegate is called
    /// at the end of the turn.
    func close(error: TransportError?) {
        guard state != .closed else { return }
        state = .closed
        extras?.closeTimer?.cancel()
        extras?.slowness?.cancel()
        if let account = extras?.account {
            account.release(extras?.bufferedBytes ?? 0)
            extras?.account = nil
        }
        if let error { makeExtras().error = error }
        if isStarted { reactor.remove(socket.descriptor, self) }
        socket.close()
        queue = WriteQueue()
        tls = nil
        if delegate != nil { queueForFlush() }
    }
}

/// Delivery information from the kernel.
extension ByteChannel {
    /// The number of bytes that the peer's system has acknowledged, or nil if the kernel does not report it.
    package var acknowledgedBytes: UInt64? { socket.delivery?.acknowledged }

    /// Returns whether the peer has acknowledged part of the pending output since the last call, but not all of it. Then the peer
    /// is alive.
    package func isPeerReading() -> Bool {
        guard state == .open, let delivery = socket.delivery, delivery.isWaiting || waitingBytes > 0 else {
            extras?.acknowledged = nil
            return false
        }
        let extras = makeExtras()
        defer { extras.acknowledged = delivery.acknowledged }
        return extras.acknowledged.map { delivery.acknowledged > $0 } ?? false
    }
}

/// Sending the same bytes to many connections.
extension ByteChannel {
    /// Works like `corked(_:)`, and passes the buffered output to `observer` before it is sent. The output may be incomplete: large
    /// output is sent in parts or queued elsewhere.
    package func corked(_ body: () -> Void, observing observer: (UnsafeRawBufferPointer) -> Void) {
        guard reactor.corked == nil else { return body() }
        cork()
        body()
        observer(reactor.output.pointee.bytes)
        uncork()
    }

    /// Immediately sends bytes that were passed to `observer` for another connection, without a copy unless this connection has
    /// queued output.
    package func writeShared(_ bytes: UnsafeRawBufferPointer) {
        guard state == .open, reactor.corked == nil, queue.isEmpty else { return write { $0.append(bytes) } }
        guard let sent = writeToSocket(bytes) else { return }
        if sent < bytes.count {
            queue.append(UnsafeRawBufferPointer(rebasing: bytes[sent...]))
        } else if !isAboveHigh && tls?.unsentBytes ?? 0 == 0 {
            return
        }
        flush()
    }
}
