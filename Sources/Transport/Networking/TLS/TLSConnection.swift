internal import Bytes
internal import COpenSSL
internal import Glibc
internal import Transports

/// Buffers that the TLS connections of a reactor share, one at a time.
final class TLSBuffers {
    /// The size of the buffer for network input.
    static let inputSize = 128 << 10

    let input = UnsafeMutableRawBufferPointer.allocate(byteCount: inputSize, alignment: 64)
    /// Records on their way to the socket. Behind a pointer, so that OpenSSL's callback can reach them.
    let output = UnsafeMutablePointer<ByteBuffer>.allocate(capacity: 1)

    init() { output.initialize(to: ByteBuffer()) }

    deinit {
        input.deallocate()
        output.deinitialize(count: 1)
        output.deallocate()
    }
}

/// The TLS state of one connection, between socket and plain text.
///
/// OpenSSL never accesses the socket: it reads records from the receive buffer and writes them to the reactor's buffer. A turn
/// costs one `recv` and one `send` for any number of records. The connection keeps only incomplete records and unsent output.
/// Only on the reactor.
final class TLSConnection {
    /// The maximum plain text in a record (RFC 8446 §5.1).
    private static let largestRecord = 16 << 10
    /// The maximum plain text that is encrypted before records are passed to the socket.
    private static let largestBatch = 256 << 10

    /// Flags of `X509_NAME_print_ex`, which are macros: RFC 2253 with quotes, in UTF-8, ", " between the parts.
    private static let oneLineInUTF8: UInt = 0x31B | 2 << 16

    private let context: TLSContext
    private let ssl: OpaquePointer
    private let host: String?
    private let name: String
    private let buffers: TLSBuffers
    /// Records that the socket did not accept.
    private var unsent = WriteQueue()
    /// Received input that OpenSSL has not read yet.
    fileprivate var input = UnsafeRawBufferPointer(start: nil, count: 0)
    fileprivate var output: UnsafeMutablePointer<ByteBuffer> { buffers.output }
    /// The error after which nothing can be read or written.
    private(set) var failure: TransportError?
    /// True after the peer's close notification.
    private(set) var isEnded = false
    /// True until the name in the certificate of a cluster node was compared.
    private var isNameUnknown: Bool
    /// True until the first input arrives from the peer.
    private var isFirst = true
    private let answerToPlainText: [UInt8]
    /// The number of bytes that the last `receive` read from the socket.
    private(set) var receivedBytes = 0

    /// Creates the TLS state.
    ///
    /// - Parameter answer: at a server, the response to a client that sends plain text.
    init(
        _ context: TLSContext, host: String?, name: String, buffers: TLSBuffers, answerToPlainText answer: [UInt8] = []
    ) throws(TransportError) {
        self.context = context
        answerToPlainText = answer
        isNameUnknown = context.requiresExactName
        self.host = host
        self.name = name
        self.buffers = buffers
        ssl = try context.makeConnection(to: host)
        let bio = TLSMemoryBIO.make(Unmanaged.passUnretained(self).toOpaque())
        SSL_set_bio(ssl, bio, bio)
        SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit {
        // A connection that ends without a close notification keeps its session; one that failed does not.
        if failure == nil { SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN) }
        SSL_free(ssl)
    }

    var isEstablished: Bool { SSL_is_init_finished(ssl) == 1 }
    /// True during the handshake of an accepted connection.
    var isAccepting: Bool { context.isServer && !isEstablished }
    /// True if an earlier session was resumed.
    var isResumed: Bool { SSL_session_reused(ssl) == 1 }
    var unsentBytes: Int { unsent.count }

    /// The name of the peer's certificate that was verified; nil if none was required.
    var peerName: String? { SSL_get0_peername(ssl).map { String(cString: $0) } }

    /// The subject of the peer's certificate, as `CN=ada, O=Example`; nil without a certificate.
    var peerSubject: String? {
        guard let certificate = SSL_get1_peer_certificate(ssl) else { return nil }
        defer { X509_free(certificate) }
        guard let bio = BIO_new(BIO_s_mem()) else { return nil }
        defer { BIO_free(bio) }
        X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0, Self.oneLineInUTF8)
        var text = [UInt8](repeating: 0, count: 1024)
        let count = BIO_read(bio, &text, Int32(text.count))
        return count > 0 ? String(decoding: text[..<Int(count)], as: UTF8.self) : nil
    }

    /// Starts the handshake on the client side.
    func startHandshake(on socket: Socket) {
        guard !context.isServer else { return }
        ERR_clear_error()
        recordFailure(SSL_do_handshake(ssl))
        sendOutput(to: socket)
    }

    /// Returns the number of plain-text bytes read, 0 at the end, or the negated error (EAGAIN when there is none yet).
    ///
    /// All plain text of the received input is returned at once, so that no input waits for a call that the socket would not
    /// trigger. Therefore `plain` has room for `most` bytes of records plus one record, of which OpenSSL may have kept a part.
    func receive(from socket: Socket, atMost most: Int, into plain: UnsafeMutableRawBufferPointer) -> Int {
        let most = min(most, buffers.input.count, plain.count - Self.largestRecord)
        let count = socket.receive(into: UnsafeMutableRawBufferPointer(rebasing: buffers.input[..<most]))
        receivedBytes = max(0, count)
        guard count > 0 else { return count }
        input = UnsafeRawBufferPointer(rebasing: buffers.input[..<count])
        if isFirst {
            isFirst = false
            if Self.isPlainText(input) {
                refusePlainText(on: socket)
                return -Int(EPROTO)
            }
        }
        var filled = 0
        ERR_clear_error()
        while filled < plain.count {
            let read = SSL_read(ssl, plain.baseAddress! + filled, Int32(clamping: plain.count - filled))
            guard read > 0 else {
                recordFailure(read)
                break
            }
            filled += Int(read)
            // Another read would only report, expensively, that there is no more.
            if input.isEmpty, SSL_has_pending(ssl) == 0 { break }
        }
        if !input.isEmpty, failure == nil, !isEnded {
            // Unread input would leave a gap in the stream; this cannot happen, but must not stay undetected.
            failure = TransportError(.tls, "TLS with \(name): \(input.count) received bytes were not read")
        }
        if isNameUnknown, isEstablished, failure == nil { compareName() }
        // Sends handshake output.
        let status = sendOutput(to: socket)
        if failure?.code == .tls, isNameUnknown { return -Int(EPROTO) }
        if filled > 0 { return filled }
        if failure != nil { return -Int(EPROTO) }
        if status != 0 { return -Int(status) }
        return isEnded ? 0 : -Int(EAGAIN)
    }

    /// OpenSSL compares names as those of hosts, without regard to case, and accepts any of several.
    private func compareName() {
        guard peerName == host else {
            failure = TransportError(
                .tls, "TLS with \(name): the certificate is that of '\(peerName ?? "")', expected '\(host ?? "")'")
            return
        }
        isNameUnknown = false
    }

    /// Returns whether the first bytes of a peer are uppercase ASCII, like the start of HTTP. TLS records start with 20 to 23.
    private static func isPlainText(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.prefix(3).allSatisfy { (0x41...0x5A).contains($0) }
    }

    private func refusePlainText(on socket: Socket) {
        if context.isServer {
            _ = answerToPlainText.withUnsafeBytes { socket.send($0) }
            failure = TransportError(.tls, "TLS with \(name): the client does not use TLS")
        } else {
            failure = TransportError(
                .tls,
                "TLS with \(name): the server does not use TLS at this port; connect with ws:, or configure the server with a "
                    + "certificate and its key")
        }
        input = UnsafeRawBufferPointer(start: nil, count: 0)
    }

    /// Encrypts and sends bytes. Returns the number of accepted plain-text bytes, or the negated error.
    func send(_ bytes: UnsafeRawBufferPointer, to socket: Socket) -> Int {
        let error = flush(to: socket)
        if error != 0 { return -Int(error) }
        guard unsent.isEmpty else { return -Int(EAGAIN) }
        var taken = 0
        ERR_clear_error()
        while taken < bytes.count, output.pointee.count < Self.largestBatch {
            let written = SSL_write(ssl, bytes.baseAddress! + taken, Int32(clamping: bytes.count - taken))
            guard written > 0 else {
                recordFailure(written)
                break
            }
            taken += Int(written)
        }
        let status = sendOutput(to: socket)
        if status != 0 { return -Int(status) }
        if taken > 0 || bytes.isEmpty { return taken }
        return failure == nil ? -Int(EAGAIN) : -Int(EPROTO)
    }

    /// Encrypts and sends several pieces, like `send(_:to:)`.
    func send(_ pieces: UnsafeMutableBufferPointer<iovec>, to socket: Socket) -> Int {
        var taken = 0
        for piece in pieces {
            let bytes = UnsafeRawBufferPointer(start: piece.iov_base, count: piece.iov_len)
            let sent = send(bytes, to: socket)
            if sent < 0 { return taken > 0 ? taken : sent }
            taken += sent
            if sent < bytes.count { break }
        }
        return taken
    }

    /// Sends pending records. Returns 0, or the error.
    func flush(to socket: Socket) -> Int32 { unsent.flush { socket.send($0) } }

    /// Sends the close notification.
    func sendCloseNotify(on socket: Socket) {
        guard failure == nil, isEstablished else { return }
        ERR_clear_error()
        SSL_shutdown(ssl)
        sendOutput(to: socket)
    }

    @discardableResult
    private func sendOutput(to socket: Socket) -> Int32 {
        let bytes = output.pointee.bytes
        guard bytes.count > 0 else { return 0 }
        defer { output.pointee.reset(keepingAtMost: 1 << 20) }
        var sent = 0
        if unsent.isEmpty {
            sent = socket.send(bytes)
            if sent < 0 {
                guard sent == -Int(EAGAIN) || sent == -Int(EINTR) else { return Int32(-sent) }
                sent = 0
            }
        }
        if sent < bytes.count { unsent.append(UnsafeRawBufferPointer(rebasing: bytes[sent...])) }
        return 0
    }

    /// Records the reason for which OpenSSL could not continue.
    private func recordFailure(_ result: Int32) {
        guard result <= 0 else { return }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: break
        case SSL_ERROR_ZERO_RETURN: isEnded = true
        default: if failure == nil { failure = TLSFailure.current("TLS with \(name)", ssl) }
        }
    }

    /// OpenSSL's callback for a client's resumable sessions.
    static let didReceiveSession: @convention(c) (OpaquePointer?, OpaquePointer?) -> Int32 = { ssl, session in
        guard let session, let raw = SSL_get_ex_data(ssl, 0) else { return 0 }
        // Called from `receive`, while the object is alive.
        let connection = Unmanaged<TLSConnection>.fromOpaque(raw).takeUnretainedValue()
        connection.context.storeSession(session, for: connection.host)
        return 1
    }
}

/// The BIO through which OpenSSL accesses the memory of a `TLSConnection` in place of a network.
private enum TLSMemoryBIO {
    private static let shouldRetry: Int32 = 0x08
    private static let retryRead: Int32 = 0x01
    private static let allRetryFlags: Int32 = 0x0F
    private static let controlFlush: Int32 = 11

    /// OpenSSL's function table, created once and never changed, so any thread can read it.
    private nonisolated(unsafe) static let method: OpaquePointer = {
        guard let method = BIO_meth_new(BIO_get_new_index() | Int32(BIO_TYPE_SOURCE_SINK), "trebuchet") else {
            fatalError("BIO_meth_new: out of memory")
        }
        BIO_meth_set_create(method) { bio in
            BIO_set_init(bio, 1)
            return 1
        }
        BIO_meth_set_ctrl(method) { _, command, _, _ in command == controlFlush ? 1 : 0 }
        BIO_meth_set_read(method) { bio, target, count in
            BIO_clear_flags(bio, allRetryFlags)
            let session = TLSMemoryBIO.session(of: bio)
            guard let target, session.input.count > 0 else {
                BIO_set_flags(bio, retryRead | shouldRetry)
                return -1
            }
            let taken = min(Int(count), session.input.count)
            memcpy(target, session.input.baseAddress!, taken)
            session.input = UnsafeRawBufferPointer(rebasing: session.input[taken...])
            return Int32(taken)
        }
        BIO_meth_set_write(method) { bio, bytes, count in
            BIO_clear_flags(bio, allRetryFlags)
            TLSMemoryBIO.session(of: bio).output.pointee.append(
                UnsafeRawBufferPointer(start: bytes, count: Int(count)))
            return count
        }
        return method
    }()

    static func make(_ session: UnsafeMutableRawPointer) -> OpaquePointer {
        guard let bio = BIO_new(method) else { fatalError("BIO_new: out of memory") }
        BIO_set_data(bio, session)
        return bio
    }

    /// Returns the connection of a BIO. It frees the BIO in its `deinit`, so it is alive during the BIO's callbacks.
    private static func session(of bio: OpaquePointer?) -> TLSConnection {
        Unmanaged<TLSConnection>.fromOpaque(BIO_get_data(bio)!).takeUnretainedValue()
    }
}
