package import Bytes
internal import CEpoll
internal import Glibc

/// Who handles the bytes of a connection; called on the connection's reactor.
package protocol ByteChannelDelegate: AnyObject {
    /// Bytes have come. They lie in the reactor's read buffer, may be changed in place and are gone after the call:
    /// the delegate consumes all of them.
    func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer)
    /// What waits to be sent fell below the low watermark after having been above the high one.
    func channelDidBecomeWritable(_ channel: ByteChannel)
    /// The connection is gone; the last call. `error` is nil when the peer ended it in order or we closed it.
    func channelDidClose(_ channel: ByteChannel, error: TransportError?)
}

/// A connection: bytes in, bytes out, on one reactor for life.
///
/// What is written while an event of this connection is handled gathers in the reactor's buffer and leaves in one
/// `send`; only what the socket does not take is kept here. An idle connection holds no buffer.
///
/// `@unchecked Sendable`: it is touched on its reactor's thread alone; others reach it through `reactor.execute`.
package final class ByteChannel: ReadinessHandler, @unchecked Sendable {
    /// Marks of how much may wait to be sent, in bytes.
    package struct Watermarks: Sendable {
        /// Above this the connection is not writable. Default 256 KiB.
        package var high = 256 << 10
        /// Below this it is again. Default 64 KiB.
        package var low = 64 << 10
        /// Above this the connection is ended. Default 64 MiB.
        package var limit = 64 << 20

        package init() {}
    }

    private enum State { case open, flushing, lingering, closed }

    /// Shared bytes below this many are copied: that is cheaper than one more piece in the system call.
    private static let smallestShared = 8 << 10
    /// Of a peer that is behind with reading, less is read at once: what it asks for may have to be kept.
    private static let smallRead = 64 << 10
    /// More than this in one turn is sent before the turn ends.
    private static let largestTurn = 128 << 10

    package let reactor: Reactor
    /// Kept until the connection has closed.
    package var delegate: (any ByteChannelDelegate)?
    package var watermarks = Watermarks()

    private let socket: Socket
    /// Set before `start` when the connection is to be secure.
    private var tls: TLSSession?
    private var queue = WriteQueue()
    private var state = State.open
    private var isAboveHigh = false
    private var isReadingPaused = false
    /// Whether this is the connection that writes into the reactor's buffer.
    private var isCorked = false
    private var isQueuedForFlush = false
    /// Whether the reactor knows it.
    private var isStarted = false
    private var watched: UInt32 = 0
    /// Runs while what is left is being sent at the end.
    private var patience: Timer?

    /// Takes over a connected socket. Call `start` on the reactor.
    init(_ socket: Socket, on reactor: Reactor) {
        self.socket = socket
        self.reactor = reactor
        super.init()
        socket.disableNagle()
    }

    deinit {
        patience?.cancel()
        if state != .closed { socket.close() }
    }

    /// Begins to read; on the reactor.
    package func start(_ delegate: any ByteChannelDelegate) throws(TransportError) {
        self.delegate = delegate
        watched = EPOLLIN.rawValue
        do {
            try reactor.add(socket.descriptor, self, events: watched)
        } catch {
            self.delegate = nil
            throw error
        }
        isStarted = true
        tls?.begin(on: socket)
        if tls != nil { watch() }
    }

    /// Makes the connection speak TLS; before `start`. A client gives the host that it wants to reach.
    package func secure(with context: TLSContext, host: String? = nil) throws(TransportError) {
        let name = host ?? remoteAddress?.description ?? "peer"
        tls = try TLSSession(context, host: host, name: name, buffers: reactor.tlsBuffers)
    }

    package var isSecure: Bool { tls != nil }
    /// Whether the TLS session is one that was agreed on earlier.
    package var isResumed: Bool { tls?.isResumed ?? false }

    /// The subject of the certificate that the peer showed, as `CN=ada, O=Example`.
    package var peerSubject: String? { tls?.peerSubject }

    package var remoteAddress: SocketAddress? { socket.remoteAddress }
    /// The end of this machine.
    package var localAddress: SocketAddress? { socket.localAddress }
    package var isOpen: Bool { state == .open }

    /// Bytes that wait for the socket to take them.
    package var pendingBytes: Int {
        queue.count + (tls?.unsentBytes ?? 0) + (isCorked ? reactor.output.pointee.count : 0)
    }

    /// Whether less than the high watermark waits to be sent.
    package var isWritable: Bool { !isAboveHigh }

    // MARK: Writing

    /// Appends to the output; it leaves when the event or the turn ends. Nothing is written to a closed connection, but
    /// `body` runs all the same.
    @inlinable
    package func write<R>(_ body: (inout ByteBuffer) throws -> R) rethrows -> R {
        // In two halves, so that the middle is specialised where it is used.
        let buffer = beginWriting()
        defer { endWriting() }
        return try body(&buffer.pointee)
    }

    /// The buffer that takes what is written now. Nobody else writes to it before `endWriting`.
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

    /// Appends bytes that many connections share; large ones are not copied.
    package func write(shared: SharedBytes) {
        if shared.count < Self.smallestShared { return write { $0.append(shared.bytes) } }
        guard state == .open else { return }
        if isCorked { moveOutputToQueue() }
        queue.append(shared)
        queueForFlush()
    }

    /// Gathers all that `body` writes to this connection in the reactor's buffer and sends it at once.
    package func corked(_ body: () -> Void) {
        guard reactor.corked == nil else { return body() }
        cork()
        body()
        uncork()
    }

    private func cork() {
        reactor.corked = self
        isCorked = true
    }

    private func uncork() {
        sendOutput()
        isCorked = false
        reactor.corked = nil
        reactor.output.pointee.reset(keepingAtMost: 4 << 20)
    }

    private func moveOutputToQueue() {
        guard !reactor.output.pointee.isEmpty else { return }
        queue.append(reactor.output.pointee.bytes)
        reactor.output.pointee.removeAll()
    }

    /// Hands the turn's output to the socket; the rest waits in the queue.
    private func sendOutput() {
        guard state == .open || state == .flushing else { return reactor.output.pointee.removeAll() }
        if queue.isEmpty {
            let bytes = reactor.output.pointee.bytes
            if bytes.count > 0 {
                var sent = transmit(bytes)
                if sent == -Int(EINTR) { sent = transmit(bytes) }
                if sent < 0 {
                    if sent != -Int(EAGAIN) { return fail("send", Int32(-sent)) }
                    sent = 0
                }
                if sent < bytes.count { queue.append(UnsafeRawBufferPointer(rebasing: bytes[sent...])) }
                reactor.output.pointee.removeAll()
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
        return socket.send(bytes)
    }

    private func queueForFlush() {
        if queue.count > watermarks.high { isAboveHigh = true }
        guard !isQueuedForFlush else { return }
        isQueuedForFlush = true
        reactor.flushAtEndOfTurn(self)
    }

    func flushAtEndOfTurn() {
        isQueuedForFlush = false
        flush()
    }

    private func flush() {
        guard state == .open || state == .flushing else { return }
        let error = flushQueue()
        if error != 0 { return fail("send", error) }
        if queue.count > watermarks.high { isAboveHigh = true }
        watch()
        if isAboveHigh, queue.count <= watermarks.low {
            isAboveHigh = false
            if state == .open { delegate?.channelDidBecomeWritable(self) }
        }
        if state == .flushing, queue.isEmpty, tls?.unsentBytes ?? 0 == 0 { linger() }
        if queue.count > watermarks.limit {
            end(error: TransportError(.closed, "the peer does not read: \(queue.count) bytes wait to be sent"))
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

    private func watch() {
        guard state != .closed else { return }
        var events: UInt32 = isReadingPaused && state == .open ? 0 : EPOLLIN.rawValue
        if waitsForSocket { events |= EPOLLOUT.rawValue }
        guard events != watched else { return }
        watched = events
        reactor.change(socket.descriptor, self, events: events)
    }

    /// Whether something waits that the socket could take. Before the end of the TLS handshake plain text waits for the
    /// peer, not for the socket.
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
        if isReadingPaused, state == .open {
            // A paused connection is told only of its end.
            if events & (EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 { fail("recv", socket.pendingError()) }
            return
        }
        if let tls { return read(tls) }
        let count = socket.receive(into: readTarget)
        if count > 0 {
            guard state == .open, let delegate else { return }
            cork()
            delegate.channel(self, didRead: UnsafeMutableRawBufferPointer(rebasing: reactor.readBuffer[..<count]))
            uncork()
        } else if count == 0 {
            end(error: nil)
        } else if count != -Int(EAGAIN), count != -Int(EINTR) {
            fail("recv", Int32(-count))
        }
    }

    @inline(__always)
    private var readTarget: UnsafeMutableRawBufferPointer {
        let buffer = reactor.readBuffer
        return queue.isEmpty ? buffer : UnsafeMutableRawBufferPointer(rebasing: buffer[..<Self.smallRead])
    }

    private func read(_ tls: TLSSession) {
        let count = tls.receive(from: socket, into: readTarget)
        if count > 0, state == .open, let delegate {
            cork()
            delegate.channel(self, didRead: UnsafeMutableRawBufferPointer(rebasing: reactor.readBuffer[..<count]))
            uncork()
        }
        if let failure = tls.failure { return end(error: failure) }
        if tls.isEnded || count == 0 { return end(error: nil) }
        if count < 0, count != -Int(EAGAIN), count != -Int(EINTR) { return fail("recv", Int32(-count)) }
        // The handshake may have ended, for which what was written waited.
        if !queue.isEmpty || tls.unsentBytes > 0 { flush() }
    }

    // MARK: The end

    /// Sends what waits, then ends the connection; what still comes is thrown away.
    package func closeAfterFlush() {
        guard state == .open else { return }
        state = .flushing
        isReadingPaused = false
        // A peer that does not read keeps us at most this long.
        patience = reactor.schedule(after: .seconds(5)) { [unowned self] in end(error: nil) }
        if !isCorked { queueForFlush() }
    }

    /// Ends the connection at once; what waits is lost.
    package func close() { end(error: nil) }

    /// Ends the connection at once with a reset: the peer loses what it has not read yet, and gets an error.
    package func reset() {
        guard state != .closed else { return }
        socket.resetWhenClosed()
        end(error: nil)
    }

    /// Our side has said all; the peer's end of the stream follows, or a time limit. A socket closed with bytes unread
    /// would reset the connection, and the peer would lose what we sent last.
    private func linger() {
        state = .lingering
        tls?.end(on: socket)
        socket.shutdownWriting()
        watch()
    }

    private func fail(_ call: String, _ number: Int32) {
        if let failure = tls?.failure { return end(error: failure) }
        guard number != 0 else { return end(error: nil) }
        end(error: .system(call, number, "connection to \(remoteAddress?.description ?? "peer")"))
    }

    private func end(error: TransportError?) {
        guard state != .closed else { return }
        state = .closed
        patience?.cancel()
        patience = nil
        if isStarted { reactor.remove(socket.descriptor, self) }
        socket.close()
        queue = WriteQueue()
        tls = nil
        let delegate = self.delegate
        self.delegate = nil
        delegate?.channelDidClose(self, error: error)
    }
}
