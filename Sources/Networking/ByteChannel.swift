package import Bytes
internal import CEpoll
internal import Glibc
package import Transports

/// A connection: bytes in, bytes out, on one reactor for life.
///
/// What is written while an event of this connection is handled gathers in the reactor's buffer and leaves in one
/// `send`; only what the socket does not take is kept here. An idle connection holds no buffer.
///
/// Its methods never call the delegate. A write may find that the connection is lost; the delegate hears of that, and of
/// all else, when the turn ends. So whoever writes, closes or pauses finds everything as it was when the call returns, but
/// perhaps a channel that is no longer open.
///
/// `@unchecked Sendable`: it is touched on its reactor's thread alone; others reach it through `reactor.execute`.
package final class ByteChannel: ReadinessHandler, @unchecked Sendable {
    enum State { case open, flushing, lingering, closed }

    /// Shared bytes below this many are copied: that is cheaper than one more piece in the system call.
    private static let smallestShared = 8 << 10
    /// The same of bytes that are sent from where they were read.
    package static let smallestLent = 4 << 10
    /// Less than this is not counted as held.
    package static let smallestHeld = 4 << 10
    /// Of a peer that is behind with reading, less is read at once: what it asks for may have to be kept.
    private static let smallRead = 64 << 10
    /// More than this in one turn is sent before the turn ends.
    package static let largestTurn = 128 << 10
    /// How long a peer that does not read, or does not end its side, keeps us at the end.
    static let patience = Duration.seconds(5)

    package let reactor: Reactor
    /// Kept until the connection has closed.
    package var delegate: (any ByteChannelDelegate)?
    package var limits = ChannelLimits.standard
    /// How many bytes are taken from the socket at once, at most the size of the reactor's buffer; fewer of a peer from which more
    /// comes than can be handled at once.
    package var mostRead: Int {
        get { Int(mostReadBytes) }
        set { mostReadBytes = UInt32(clamping: min(newValue, Reactor.readBufferSize)) }
    }
    private var mostReadBytes = UInt32(Reactor.readBufferSize)

    let socket: Socket
    /// Set before `start` when the connection is to be secure.
    var tls: TLSConnection?
    var queue = WriteQueue()
    var state = State.open
    var isAboveHigh = false
    var isReadingPaused = false
    /// Whether this is the connection that writes into the reactor's buffer.
    var isCorked = false
    private var isQueuedForFlush = false
    /// What the delegate is to be told when the turn ends.
    private var becameWritable = false
    /// Whether the reactor knows it.
    var isStarted = false
    private var watched: UInt32 = 0
    /// What few connections need; idle ones do not pay for it.
    var extras: Extras?

    final class Extras {
        /// Runs while what is left is being sent at the end.
        var patience: LoopTimer?
        /// Bytes that were thrown away at the end, and how many may be.
        var thrownAway = 0
        var mostThrownAway = 0
        /// Why it ended, until the delegate has been told.
        var error: TransportError?
        /// What is held for the connection, and how much of that is here.
        var account: MemoryAccount?
        var held = 0
        var excess: MemoryExcess?
        /// Runs while many shared bytes wait; what the socket took since it began.
        var slowness: LoopTimer?
        var taken = 0
        /// Bytes that the peer had acknowledged when that was asked last.
        var acknowledged: UInt64?
    }

    /// Takes over a connected socket. Call `start` on the reactor.
    init(_ socket: Socket, on reactor: Reactor) {
        self.socket = socket
        self.reactor = reactor
        super.init()
        socket.disableNagle()
    }

    deinit {
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
        if tls != nil || isReadingPaused { watch() }
    }

    /// Makes the connection speak TLS; before `start`. A client gives the host that it wants to reach.
    ///
    /// - Parameter answer: at a server, what a client gets that sends plain text.
    package func secure(
        with context: TLSContext, host: String? = nil, answerToPlainText answer: [UInt8] = []
    ) throws(TransportError) {
        let name = host ?? remoteAddress?.description ?? "peer"
        tls = try TLSConnection(
            context, host: host, name: name, buffers: reactor.tlsBuffers, answerToPlainText: answer)
    }

    package var isSecure: Bool { tls != nil }
    /// Whether the TLS session is one that was agreed on earlier.
    package var isResumed: Bool { tls?.isResumed ?? false }

    /// The subject of the certificate that the peer showed, as `CN=ada, O=Example`.
    package var peerSubject: String? { tls?.peerSubject }

    package var remoteAddress: SocketAddress? { delegate?.representedAddress ?? socket.remoteAddress }
    /// The end of this machine.
    package var localAddress: SocketAddress? { socket.localAddress }
    package var isOpen: Bool { state == .open }

    /// Bytes that wait for the socket to take them.
    package var pendingBytes: Int {
        waitingBytes + (isCorked ? reactor.output.pointee.count + reactor.borrowed.pointee.count : 0)
    }

    /// The same without what this turn has gathered so far.
    var waitingBytes: Int { queue.count + (tls?.unsentBytes ?? 0) }

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

    /// How much of it the socket takes; nil when the connection is lost.
    @inline(__always)
    func hand(_ bytes: UnsafeRawBufferPointer) -> Int? {
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
        assert(reactor.output.pointee.isEmpty, "what was written is on its way or in the queue")
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

    /// Hands the turn's output to the socket; the rest waits in the queue.
    func sendOutput() {
        guard state == .open || state == .flushing else { return forgetOutput() }
        if queue.isEmpty {
            let bytes = reactor.output.pointee.bytes
            let count = bytes.count + reactor.borrowed.pointee.count
            if count > 0 {
                guard let sent = hand(bytes) else { return forgetOutput() }
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

    /// The reactor's call: here, and where bytes are read, the delegate is told.
    func flushAtEndOfTurn() {
        flush()
        isQueuedForFlush = false
        tellDelegate()
    }

    private func tellDelegate() {
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
        if waiting > 0 || extras != nil { noteHeld(before - queue.count) }
        if waiting > limits.high { isAboveHigh = true }
        watch()
        if isAboveHigh, waiting <= limits.low {
            isAboveHigh = false
            becameWritable = true
            queueForFlush()
        }
        if state == .flushing, waiting == 0 { linger() }
        if waiting > limits.limit {
            end(error: TransportError(.closed, "the peer does not read: \(waiting) bytes wait to be sent"))
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

    /// What TLS has to say by itself, answers to new keys for instance, waits too: a peer that asks for more than it takes is
    /// not read from, whether it sends messages or not.
    private var takesInput: Bool {
        (!isReadingPaused || state != .open) && tls?.unsentBytes ?? 0 <= limits.high
    }

    func watch() {
        guard state != .closed, isStarted else { return }
        var events: UInt32 = takesInput ? EPOLLIN.rawValue : 0
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
        guard takesInput else {
            // A paused connection is told only of its end.
            if events & (EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 { fail("recv", socket.pendingError()) }
            return
        }
        if let tls { return read(tls) }
        let count = socket.receive(into: UnsafeMutableRawBufferPointer(rebasing: reactor.readBuffer[..<readNow]))
        if count > 0 {
            handOn(count)
        } else if count == 0 {
            end(error: nil)
        } else if count != -Int(EAGAIN), count != -Int(EINTR) {
            fail("recv", Int32(-count))
        }
    }

    @inline(__always)
    private var readNow: Int { queue.isEmpty ? mostRead : min(mostRead, Self.smallRead) }

    @inline(__always)
    private func handOn(_ count: Int) {
        guard state == .open, let delegate else { return throwAway(count) }
        cork()
        delegate.channel(self, didRead: UnsafeMutableRawBufferPointer(rebasing: reactor.readBuffer[..<count]))
        uncork()
    }

    private func read(_ tls: TLSConnection) {
        let count = tls.receive(from: socket, atMost: readNow, into: reactor.readBuffer)
        if count > 0 { handOn(count) } else if state != .open { throwAway(tls.receivedBytes) }
        if let failure = tls.failure { return end(error: failure) }
        if tls.isEnded || count == 0 { return end(error: nil) }
        if count < 0, count != -Int(EAGAIN), count != -Int(EINTR) { return fail("recv", Int32(-count)) }
        // The handshake may have ended, for which what was written waited; or it has something to say.
        if !queue.isEmpty || tls.unsentBytes > 0 { flush() }
    }

    /// Our side has ended: what still comes has no use, and there is a limit to how much of it we take.
    private func throwAway(_ count: Int) {
        guard let extras, state != .closed else { return }
        extras.thrownAway += count
        if extras.thrownAway > extras.mostThrownAway { end(error: nil) }
    }

    func makeExtras() -> Extras {
        if let extras { return extras }
        let made = Extras()
        extras = made
        return made
    }
}
