import Bytes
import COpenSSL
import Glibc
import TestCertificates
import Testing
import Transports

@testable import Networking

@Suite("Properties of a TLS context")
struct TLSContextTests {
    @Test("TLS 1.2 or later, no compression, no renegotiation, memory released when idle", arguments: [true, false])
    func options(isServer: Bool) throws {
        let context = try isServer ? TLSPair.server() : TLSPair.client()
        #expect(context.isServer == isServer)
        let options = SSL_CTX_get_options(context.pointer)
        #expect(options & (1 << 17) != 0)  // SSL_OP_NO_COMPRESSION
        #expect(options & (1 << 30) != 0)  // SSL_OP_NO_RENEGOTIATION
        #expect(SSL_CTX_ctrl(context.pointer, 130, 0, nil) == 0x0303)  // SSL_CTRL_GET_MIN_PROTO_VERSION
        // Partial writes, moving buffers, buffers released when idle.
        #expect(SSL_CTX_ctrl(context.pointer, 33, 0, nil) & 0x13 == 0x13)
        // SSL_CTRL_GET_SESS_CACHE_MODE: none at a server; at a client an external cache, and no internal one.
        #expect(SSL_CTX_ctrl(context.pointer, 45, 0, nil) == (isServer ? 0 : 0x201))
    }

    @Test("a client's context is shared for equal settings")
    func shared() throws {
        // Other tests may have requested so many in between that it was evicted.
        let isSame = try (0..<5).contains { _ in try TLSPair.client() === TLSPair.client() }
        #expect(isSame)
        #expect(try TLSPair.client() !== TLSPair.client { $0.serverName = "other" })
    }

    @Test("64 hosts' sessions are stored, and a new session of a known host replaces the old one")
    func sessions() throws {
        let context = try TLSPair.client { $0.serverName = nil }
        // Settings that no other test uses.
        let fresh = try TLSPair.client {
            $0.trust = .insecure
            $0.privateKeyFile = "no certificate, so it is not read"
        }
        #expect(context !== fresh)
        func hasSession(_ host: String) throws -> Bool {
            let ssl = try fresh.makeConnection(to: host)
            defer { SSL_free(ssl) }
            return SSL_get_session(ssl) != nil
        }
        func session() throws -> OpaquePointer {
            let session = try #require(SSL_SESSION_new())
            SSL_SESSION_set_protocol_version(session, 0x0304)
            return session
        }
        for number in 0..<65 { fresh.storeSession(try session(), for: "host\(number).example") }
        for number in [0, 63] { #expect(try hasSession("host\(number).example")) }
        #expect(try !hasSession("host64.example"))
        fresh.storeSession(try session(), for: "host1.example")
        #expect(try hasSession("host1.example"))
        fresh.storeSession(try session(), for: nil)
        #expect(try !hasSession("other.example"))
    }

    @Test("a replaced session is not freed while a connection resumes it")
    func replacedMeanwhile() async throws {
        let context = try TLSPair.client {
            $0.trust = .insecure
            $0.privateKeyFile = "no certificate either"
        }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    for _ in 0..<50_000 {
                        guard let session = SSL_SESSION_new() else { continue }
                        SSL_SESSION_set_protocol_version(session, 0x0304)
                        context.storeSession(session, for: "busy.example")
                    }
                }
                group.addTask {
                    for _ in 0..<50_000 {
                        if let ssl = try? context.makeConnection(to: "busy.example") { SSL_free(ssl) }
                    }
                }
            }
        }
        let ssl = try context.makeConnection(to: "busy.example")
        defer { SSL_free(ssl) }
        #expect(SSL_get_session(ssl) != nil)
    }

    /// The protocol that a server chooses of these, in the form of RFC 7301 §3.1; nil when it rejects.
    private static func chosen(of offers: [UInt8]) throws -> String? {
        let context = SSL_CTX_new(TLS_client_method())
        defer { SSL_CTX_free(context) }
        #expect(SSL_CTX_set_alpn_protos(context, offers, UInt32(offers.count)) == 0)
        return try chosen(by: try #require(SSL_new(context)))
    }

    /// The protocol that a connection chooses; the connection is freed.
    private static func chosen(by ssl: OpaquePointer) throws -> String? {
        let pair = try TLSPair()
        defer { pair.close() }
        defer { SSL_free(ssl) }
        SSL_set_fd(ssl, pair.there.descriptor)
        for _ in 0..<5 {
            _ = SSL_connect(ssl)
            _ = pair.receive(pair.server)
        }
        guard SSL_is_init_finished(ssl) == 1 else { return nil }
        var text: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &text, &count)
        return String(decoding: UnsafeBufferPointer(start: text, count: Int(count)), as: UTF8.self)
    }

    @Test("a client offers HTTP/1.1")
    func offered() throws {
        let ssl = try TLSPair.client { $0.trust = .insecure }.makeConnection(to: "offered.example")
        // The session stores its received settings, and this connection has no session.
        #expect(try Self.chosen(by: ssl) == "http/1.1")
    }

    @Test(
        "a server speaks HTTP/1.1, at any position among the offers, and rejects clients that do not",
        arguments: [
            (["http/1.1"], "http/1.1"), (["h2", "http/1.1"], "http/1.1"), (["h2", "http/1.1", "x"], "http/1.1"),
            (["http/1.0", "http/1.1"], "http/1.1"), (["h2"], nil), (["http/1.0"], nil), (["http/1.1x"], nil),
            (["http/1."], nil), (["xhttp/1.1"], nil), ([], ""),
        ] as [([String], String?)])
    func protocols(offers: [String], chosen: String?) throws {
        let bytes = offers.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        #expect(try Self.chosen(of: bytes) == chosen)
    }

    /// The server's key as a file with a passphrase.
    private static func encryptedKey(in folder: String) throws -> String {
        let file = try #require(BIO_new_file(TestCertificate.path("server.key"), "r"))
        defer { BIO_free(file) }
        let key = try #require(PEM_read_bio_PrivateKey(file, nil, nil, nil))
        defer { EVP_PKEY_free(key) }
        let path = folder + "/encrypted.key"
        let encrypted = try #require(BIO_new_file(path, "w"))
        defer { BIO_free(encrypted) }
        var passphrase = Array("secret".utf8)
        try #require(
            PEM_write_bio_PKCS8PrivateKey(encrypted, key, EVP_aes_256_cbc(), &passphrase, 6, nil, nil) == 1)
        return path
    }

    @Test("an invalid certificate or key file is named with its fault, and loading does not block")
    func badFiles() throws {
        let folder = "/tmp/trebuchet-\(getpid())-\(UInt64.random(in: 0 ... .max))"
        try #require(mkdir(folder, 0o700) == 0)
        let fifo = folder + "/fifo"
        try #require(mkfifo(fifo, 0o600) == 0)
        let key = try Self.encryptedKey(in: folder)
        defer {
            for path in [fifo, key] { unlink(path) }
            rmdir(folder)
        }
        let (good, goodKey) = (TestCertificate.path("server.pem"), TestCertificate.path("server.key"))
        func problem(_ certificate: String, _ key: String, authority: String? = nil) -> String? {
            let settings = TLSServerSettings(
                certificateChainFile: certificate, privateKeyFile: key, clientAuthorityFile: authority)
            let error = #expect(throws: TransportError.self) { try TLSContext.server(settings) }
            #expect(error?.code == .tls)
            return error?.message
        }
        let text = problem(good, key)
        #expect(text?.hasPrefix("private key file '\(key)' has a passphrase, which is not supported; ") == true)
        #expect(text?.contains("openssl pkey -in '\(key)' -out NEWFILE") == true)
        #expect(problem(fifo, goodKey) == "certificate file '\(fifo)' is not a regular file")
        #expect(problem(good, fifo) == "private key file '\(fifo)' is not a regular file")
        #expect(problem(good, folder) == "private key file '\(folder)' is not a regular file")
        #expect(problem(good, goodKey, authority: fifo) == "certificate authority file '\(fifo)' is not a regular file")
        let missing = folder + "/missing"
        #expect(problem(missing, goodKey) == "certificate file '\(missing)': No such file or directory")
        let other = TestCertificate.path("other.key")
        #expect(problem(good, other)?.contains(other) == true)
        // No state is left for the next one.
        _ = try TLSContext.server(TLSServerSettings(certificateChainFile: good, privateKeyFile: goodKey))
        // Those of clients are read in the same way.
        let error = #expect(throws: TransportError.self) {
            try TLSPair.client {
                $0.certificateChainFile = good
                $0.privateKeyFile = key
            }
        }
        #expect(error?.message == text)
    }

    @Test("invalid certificates in a reload leave the old ones in use")
    func reload() throws {
        let folder = "/tmp/trebuchet-\(getpid())-\(UInt64.random(in: 0 ... .max))"
        try #require(mkdir(folder, 0o700) == 0)
        let (link, encrypted) = (folder + "/link.key", try Self.encryptedKey(in: folder))
        defer {
            for path in [link, encrypted] { unlink(path) }
            rmdir(folder)
        }
        try #require(symlink(TestCertificate.path("server.key"), link) == 0)
        let identity = try TLSServerIdentity(
            TLSServerSettings(certificateChainFile: TestCertificate.path("server.pem"), privateKeyFile: link))
        let before = identity.context
        try #require(unlink(link) == 0 && symlink(encrypted, link) == 0)
        let error = #expect(throws: TransportError.self) { try identity.reload() }
        #expect(error?.message.contains("has a passphrase") == true)
        #expect(identity.context === before)
    }
}
