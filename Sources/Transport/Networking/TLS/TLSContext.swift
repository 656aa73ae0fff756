internal import COpenSSL
internal import Glibc
internal import Synchronization
package import Transports

/// Certificates, keys and settings that many TLS connections share. Immutable after its creation.
package final class TLSContext: Sendable {
    /// A session that a later connection may resume.
    private struct ResumableSession: Sendable {
        // `nonisolated(unsafe)`: OpenSSL counts its references, so it can move between threads.
        nonisolated(unsafe) let session: OpaquePointer
    }

    private static let clients = Mutex<[TLSClientSettings: TLSContext]>([:])
    private static let maximumClients = 16
    /// The maximum number of servers for which a client keeps a session, one for each.
    private static let maximumSessions = 64
    // Constants that are macros in OpenSSL.
    static let setMode: Int32 = 33
    static let setSessionCacheMode: Int32 = 44
    static let setMinimumVersion: Int32 = 123
    private static let modes = 0x1 | 0x2 | 0x10  // partial writes, moving buffers, buffers released when idle
    private static let version12 = 0x0303
    private static let setGroups: Int32 = 92
    /// The permitted key exchanges. OpenSSL's default includes groups of up to 8,192 bits, whose exchange takes 240 ms of processor
    /// time for a first message of 1 KiB; these take less than 1 ms.
    private static let groups = "X25519:P-256:P-384"
    private static let noCompression: UInt64 = 1 << 17
    private static let noRenegotiation: UInt64 = 1 << 30

    // `nonisolated(unsafe)`: OpenSSL counts references to an `SSL_CTX` and locks the state that connections change in it.
    nonisolated(unsafe) let pointer: OpaquePointer
    let isServer: Bool
    private let verifiesHost: Bool
    private let serverName: String?
    private let sendsServerName: Bool
    /// True when the name in the peer's certificate must have the same bytes as the host.
    var requiresExactName: Bool { !isServer && !sendsServerName }
    private let sessions = Mutex<[String: ResumableSession]>([:])

    init(
        isServer: Bool, verifiesHost: Bool, serverName: String? = nil, sendsServerName: Bool = true
    ) throws(TransportError) {
        guard let pointer = SSL_CTX_new(isServer ? TLS_server_method() : TLS_client_method()) else {
            throw TLSFailure.current("starting TLS")
        }
        self.pointer = pointer
        self.isServer = isServer
        self.verifiesHost = verifiesHost
        self.serverName = serverName
        self.sendsServerName = sendsServerName
        SSL_CTX_ctrl(pointer, Self.setMode, Self.modes, nil)
        SSL_CTX_ctrl(pointer, Self.setMinimumVersion, Self.version12, nil)
        SSL_CTX_set_options(pointer, Self.noRenegotiation | Self.noCompression)
        var groups = Array(Self.groups.utf8CString)
        guard SSL_CTX_ctrl(pointer, Self.setGroups, 0, &groups) == 1 else {
            SSL_CTX_free(pointer)
            throw TLSFailure.current("starting TLS")
        }
        // OpenSSL's default callback prompts at the terminal and blocks there.
        SSL_CTX_set_default_passwd_cb(pointer) { _, _, _, wasPasswordRequested in
            wasPasswordRequested?.storeBytes(of: 1, as: Int32.self)
            return -1
        }
    }

    deinit {
        sessions.withLock { for resumable in $0.values { SSL_SESSION_free(resumable.session) } }
        SSL_CTX_free(pointer)
    }

    // MARK: The two sides

    /// Creates a server's context. Throws `TransportError` of code `.tls` that names the file.
    package static func server(_ settings: TLSServerSettings) throws(TransportError) -> TLSContext {
        let context = try TLSContext(isServer: true, verifiesHost: false)
        try context.loadCertificates(certificates: settings.certificateChainFile, key: settings.privateKeyFile)
        SSL_CTX_set_alpn_select_cb(context.pointer, TLSProtocol.select, nil)
        if let file = settings.clientAuthorityFile {
            try context.trust(file)
            SSL_CTX_set_client_CA_list(context.pointer, SSL_load_client_CA_file(file))
            let required = settings.requiresClientCertificate ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0
            SSL_CTX_set_verify(context.pointer, SSL_VERIFY_PEER | required, nil)
        }
        // Clients keep their sessions in tickets. OpenSSL would cache up to 20,480 TLS 1.2 sessions.
        SSL_CTX_ctrl(context.pointer, setSessionCacheMode, Int(SSL_SESS_CACHE_OFF), nil)
        // Without an id context, sessions of clients with certificates could not be resumed.
        let name = Array("trebuchet".utf8)
        SSL_CTX_set_session_id_context(context.pointer, name, UInt32(name.count))
        return context
    }

    /// Returns the shared context for these settings: reading the system's roots takes milliseconds, and sessions are resumed
    /// within a context. Throws `TransportError` of code `.tls` that names the file.
    package static func client(_ settings: TLSClientSettings) throws(TransportError) -> TLSContext {
        if let known = clients.withLock({ $0[settings] }) { return known }
        let made = try makeClient(settings)
        clients.withLock { clients in
            if clients.count >= maximumClients { clients.removeAll() }
            clients[settings] = made
        }
        return made
    }

    private static func makeClient(_ settings: TLSClientSettings) throws(TransportError) -> TLSContext {
        var verifies = true
        if case .insecure = settings.trust { verifies = false }
        let context = try TLSContext(isServer: false, verifiesHost: verifies, serverName: settings.serverName)
        switch settings.trust {
        case .system:
            guard SSL_CTX_set_default_verify_paths(context.pointer) == 1 else {
                throw TLSFailure.current("the system's certificate authorities")
            }
        case .file(let file): try context.trust(file)
        case .insecure: break
        }
        SSL_CTX_set_verify(context.pointer, verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nil)
        if let file = settings.certificateChainFile {
            try context.loadCertificates(certificates: file, key: settings.privateKeyFile ?? file)
        }
        SSL_CTX_set_alpn_protos(context.pointer, TLSProtocol.offered, UInt32(TLSProtocol.offered.count))
        // This class stores sessions by server name; OpenSSL does not.
        SSL_CTX_ctrl(
            context.pointer, setSessionCacheMode, Int(SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE), nil)
        SSL_CTX_sess_set_new_cb(context.pointer, TLSConnection.didReceiveSession)
        return context
    }

    func loadCertificates(certificates: String, key: String) throws(TransportError) {
        try Self.check(certificates, "certificate file")
        guard SSL_CTX_use_certificate_chain_file(pointer, certificates) == 1 else {
            throw TLSFailure.current("certificate file '\(certificates)'")
        }
        try Self.check(key, "private key file")
        var isEncrypted: Int32 = 0
        let isRead = withUnsafeMutablePointer(to: &isEncrypted) { wasPasswordRequested in
            SSL_CTX_set_default_passwd_cb_userdata(pointer, wasPasswordRequested)
            defer { SSL_CTX_set_default_passwd_cb_userdata(pointer, nil) }
            return SSL_CTX_use_PrivateKey_file(pointer, key, SSL_FILETYPE_PEM) == 1
        }
        guard isRead else {
            guard isEncrypted == 0 else {
                ERR_clear_error()
                throw TransportError(
                    .tls,
                    "private key file '\(key)' has a passphrase, which is not supported; write the key without one: "
                        + "openssl pkey -in '\(key)' -out NEWFILE, readable only by the server's user")
            }
            throw TLSFailure.current("private key file '\(key)'")
        }
        guard SSL_CTX_check_private_key(pointer) == 1 else {
            throw TLSFailure.current("private key file '\(key)' does not belong to certificate file '\(certificates)'")
        }
    }

    /// Throws for an unreadable file and for one that would block, such as a pipe: certificates are reloaded on a thread that
    /// handles signals.
    private static func check(_ path: String, _ what: String) throws(TransportError) {
        let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw TransportError(.tls, "\(what) '\(path)': \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw TransportError(.tls, "\(what) '\(path)' is not a regular file")
        }
    }

    func trust(_ file: String) throws(TransportError) {
        try Self.check(file, "certificate authority file")
        guard SSL_CTX_load_verify_locations(pointer, file, nil) == 1 else {
            throw TLSFailure.current("certificate authority file '\(file)'")
        }
    }

    // MARK: Connections

    /// Creates the state of a new connection; a client names its host.
    func makeConnection(to host: String?) throws(TransportError) -> OpaquePointer {
        guard let ssl = SSL_new(pointer) else { throw TLSFailure.current("starting TLS") }
        guard !isServer else {
            SSL_set_accept_state(ssl)
            return ssl
        }
        SSL_set_connect_state(ssl)
        guard let name = serverName ?? host else { return ssl }
        let isLiteral = SocketAddress(literal: name, port: 0) != nil
        if isLiteral {
            if verifiesHost { X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) }
        } else {
            // A literal address must not be a server name (RFC 6066 §3).
            if sendsServerName {
                var text = Array(name.utf8CString)
                SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name), &text)
            }
            if verifiesHost { SSL_set1_host(ssl, name) }
        }
        // Inside the lock: otherwise another connection may replace this session, which frees it.
        sessions.withLock { if let known = $0[name] { SSL_set_session(ssl, known.session) } }
        return ssl
    }

    /// Stores a session for the next connection to that server, and takes ownership of it.
    func storeSession(_ session: OpaquePointer, for host: String?) {
        guard let name = serverName ?? host else { return SSL_SESSION_free(session) }
        let resumable = ResumableSession(session: session)
        let replaced = sessions.withLock { sessions in
            if sessions[name] == nil, sessions.count >= Self.maximumSessions { return resumable as ResumableSession? }
            return sessions.updateValue(resumable, forKey: name)
        }
        if let replaced { SSL_SESSION_free(replaced.session) }
    }
}

/// The negotiated application protocol (ALPN, RFC 7301): HTTP/1.1, from which a WebSocket is upgraded.
private enum TLSProtocol {
    /// The protocol name, prefixed with its length.
    static let offered = [UInt8(8)] + Array("http/1.1".utf8)

    static let select:
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, UnsafeMutablePointer<UInt8>?,
            UnsafePointer<UInt8>?, UInt32, UnsafeMutableRawPointer?
        ) -> Int32 = { _, chosen, chosenCount, offers, count, _ in
            guard let offers, let chosen, let chosenCount else { return SSL_TLSEXT_ERR_ALERT_FATAL }
            var at = 0
            while at < Int(count) {
                let length = Int(offers[at])
                guard at + 1 + length <= Int(count) else { break }
                if length == 8, memcmp(offers + at + 1, "http/1.1", 8) == 0 {
                    chosen.pointee = offers + at + 1
                    chosenCount.pointee = 8
                    return SSL_TLSEXT_ERR_OK
                }
                at += 1 + length
            }
            return SSL_TLSEXT_ERR_ALERT_FATAL
        }
}

/// Initialization that must precede any other use of OpenSSL.
package enum OpenSSL {
    private static let withoutExitHandler: UInt64 = 0x80000  // OPENSSL_INIT_NO_ATEXIT, a macro

    /// Prevents OpenSSL's cleanup at process exit, because reactors still run then and would use freed state. It is evaluated
    /// before every first use of OpenSSL, since only the first initialization counts.
    package static let isInitialized: Bool = OPENSSL_init_crypto(withoutExitHandler, nil) == 1
}
