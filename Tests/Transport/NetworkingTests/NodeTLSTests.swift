import COpenSSL
import Foundation
import Glibc
import TestSupport
import Testing
import Transports

@testable import Networking

/// A folder that is removed with the object.
private final class TemporaryFolder {
    private let root: String

    init() throws {
        var template = Array("/tmp/trebuchet-node-tls-XXXXXX".utf8CString)
        root = String(cString: try #require(mkdtemp(&template)))
    }

    deinit {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? [] { unlink(path(name)) }
        rmdir(root)
    }

    func path(_ name: String) -> String { "\(root)/\(name)" }

    func write(_ name: String, _ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(fileURLWithPath: path(name))) }
}

@Suite("Certificates of cluster nodes")
struct NodeTLSTests {
    private static let year = Duration.seconds(365 * 86_400)

    private static func tls(
        _ node: String, _ authority: CertifiedKey, validFor lifetime: Duration? = year, trusting: CertifiedKey? = nil
    ) throws -> NodeTLS {
        try NodeTLS(authority.issue(to: node, validFor: lifetime), authority: trusting ?? authority)
    }

    /// Handshakes between a node that connects and one that accepts. Returns the errors of both.
    private static func handshake(
        _ client: TLSContext, _ server: TLSContext, to name: NodeCertificateName
    ) throws -> (client: String?, server: String?, peerName: String?) {
        let pair = try TLSPair(server, client, host: name.text)
        defer { pair.close() }
        pair.startHandshakes()
        return (pair.client.failure?.message, pair.server.failure?.message, pair.server.peerName)
    }

    @Test("nodes of one authority verify each other and know each other's names", arguments: ["b", "b.2", "b_3-x"])
    func accepted(name: String) throws {
        let authority = try CertifiedKey.makeAuthority(validFor: nil)
        let (a, b) = (try Self.tls("a", authority), try Self.tls(name, authority))
        #expect(a.name.cluster == b.name.cluster && b.name.node == name)
        let pair = try TLSPair(b.server, a.client, host: a.name(of: name).text)
        defer { pair.close() }
        pair.startHandshakes()
        #expect(pair.client.isEstablished && pair.server.isEstablished)
        #expect(pair.client.peerName == b.name.text && pair.server.peerName == a.name.text)
        #expect(pair.send([1, 2, 3], from: pair.client) == 3)
        #expect(pair.receive(pair.server).bytes == [1, 2, 3])
    }

    @Test(
        "the connecting end compares the node's name exactly",
        arguments: [("two", "TWO"), (".x", "evil.x"), ("two", "evil")])
    func exactNames(expected: String, actual: String) throws {
        let authority = try CertifiedKey.makeAuthority(validFor: nil)
        let (a, other) = (try Self.tls("a", authority), try Self.tls(actual, authority))
        let pair = try TLSPair(other.server, a.client, host: a.name(of: expected).text)
        defer { pair.close() }
        pair.startHandshakes()
        #expect(pair.client.failure?.code == .tls)
        // Nothing that the peer has sent is delivered.
        _ = pair.send([1, 2, 3], from: pair.server)
        #expect(pair.receive(pair.client).bytes.isEmpty)
    }

    @Test(
        "a key exchange that takes long is refused: it would cost a stranger 1 KiB",
        arguments: ["ffdhe2048", "ffdhe8192", "P-521"])
    func expensiveGroups(group: String) throws {
        let authority = try CertifiedKey.makeAuthority(validFor: nil)
        let node = try Self.tls("a", authority)
        let certified = try authority.issue(to: "b", validFor: nil)
        let lone = try TLSContext(isServer: true, verifiesHost: false)
        #expect(SSL_CTX_use_certificate(lone.pointer, certified.certificate) == 1)
        #expect(SSL_CTX_use_PrivateKey(lone.pointer, certified.key) == 1)
        for server in [node.server, lone] {
            let stranger = try TLSContext(isServer: false, verifiesHost: false)
            var list = Array(group.utf8CString)
            #expect(SSL_CTX_ctrl(stranger.pointer, 92, 0, &list) == 1)  // SSL_CTRL_SET_GROUPS_LIST
            let ends = try Self.handshake(stranger, server, to: node.name)
            #expect(ends.server?.contains("no suitable key share") == true, "\(ends)")
        }
    }

    @Test("an accepted connection makes at most four steps of a handshake in a turn")
    func fewHandshakesInATurn() async throws {
        let reactor = try Reactor(name: "handshakes")
        for _ in 0..<2 {
            let counts = await withCheckedContinuation { continuation in
                reactor.execute { continuation.resume(returning: (0..<100).count { _ in reactor.mayHandshake() }) }
            }
            #expect(counts == 4)
        }
    }

    @Test("nodes of different authorities reject each other, and both errors name the cause")
    func otherAuthority() throws {
        let one = try CertifiedKey.makeAuthority(validFor: nil)
        let other = try CertifiedKey.makeAuthority(validFor: nil)
        let (a, b) = (try Self.tls("a", one), try Self.tls("b", other))
        let ends = try Self.handshake(a.client, b.server, to: b.name)
        #expect(ends.client?.contains("the certificate was rejected: unable to get local issuer certificate") == true)
        #expect(ends.server?.contains("the peer does not trust its authority") == true)
        // The accepting end rejects as well, if the connecting end does not.
        let stranger = try TLSContext(isServer: false, verifiesHost: false)
        let certified = try other.issue(to: "a", validFor: nil)
        #expect(SSL_CTX_use_certificate(stranger.pointer, certified.certificate) == 1)
        #expect(SSL_CTX_use_PrivateKey(stranger.pointer, certified.key) == 1)
        let rejected = try Self.handshake(stranger, a.server, to: a.name)
        #expect(rejected.server?.contains("unable to get local issuer certificate") == true)
        #expect(rejected.client?.contains("the peer does not trust its authority") == true)
    }

    @Test("a peer without a certificate, or with TLS 1.2 only, is rejected")
    func noCertificate() throws {
        let node = try Self.tls("a", CertifiedKey.makeAuthority(validFor: nil))
        let stranger = try TLSContext(isServer: false, verifiesHost: false)
        let ends = try Self.handshake(stranger, node.server, to: node.name)
        #expect(ends.server?.contains("peer did not return a certificate") == true)
        #expect(ends.client?.contains("the peer requires a certificate") == true)
        SSL_CTX_ctrl(stranger.pointer, 124, 0x0303, nil)  // SSL_CTRL_SET_MAX_PROTO_VERSION
        let old = try Self.handshake(stranger, node.server, to: node.name)
        #expect(old.server?.contains("unsupported protocol") == true)
    }

    @Test("an expired certificate is rejected at both ends; one of a peer whose clock is ahead is accepted")
    func expired() throws {
        let authority = try CertifiedKey.makeAuthority(validFor: nil)
        let node = try Self.tls("a", authority)
        for isServer in [false, true] {
            let expired = try TLSContext(isServer: isServer, verifiesHost: false)
            let certified = try authority.issue(to: "b", validFor: .seconds(-60))
            #expect(SSL_CTX_use_certificate(expired.pointer, certified.certificate) == 1)
            #expect(SSL_CTX_use_PrivateKey(expired.pointer, certified.key) == 1)
            let ends =
                try isServer
                ? Self.handshake(node.client, expired, to: node.name(of: "b"))
                : Self.handshake(expired, node.server, to: node.name)
            let (rejecting, rejected) = isServer ? (ends.client, ends.server) : (ends.server, ends.client)
            #expect(rejecting?.contains("the certificate was rejected: certificate has expired") == true)
            #expect(rejected?.contains("it has expired, by the peer's clock") == true)
        }
        let error = #expect(throws: TransportError.self) { try Self.tls("b", authority, validFor: .seconds(-60)) }
        #expect(error?.message.contains("certificate has expired") == true)
        let certified = try authority.issue(to: "b", validFor: Self.year)
        #expect(abs((certified.remainingTime - Self.year).components.seconds) < 600)
        var (days, seconds): (Int32, Int32) = (0, 0)
        #expect(ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(certified.certificate), nil) == 1)
        #expect(days == 1)
    }

    @Test("a certificate of the authority for another cluster or another node is rejected")
    func otherNames() throws {
        let authority = try CertifiedKey.makeAuthority(validFor: nil)
        let (a, b) = (try Self.tls("a", authority), try Self.tls("b", authority))
        let ends = try Self.handshake(a.client, b.server, to: a.name(of: "c"))
        #expect(ends.client?.contains("hostname mismatch, expected c.\(a.name.cluster).trebuchet-node") == true)
        #expect(ends.server?.contains("the peer rejected the certificate of this side") == true)
        // Clusters whose authorities trust each other: the name of the cluster in the certificate still differs.
        let other = try CertifiedKey.makeAuthority(validFor: nil)
        let stranger = try TLSContext(isServer: false, verifiesHost: false)
        let certified = try other.issue(to: "a", validFor: nil)
        #expect(SSL_CTX_use_certificate(stranger.pointer, certified.certificate) == 1)
        #expect(SSL_CTX_use_PrivateKey(stranger.pointer, certified.key) == 1)
        #expect(X509_STORE_add_cert(SSL_CTX_get_cert_store(b.server.pointer), other.certificate) == 1)
        let rejected = try Self.handshake(stranger, b.server, to: b.name)
        #expect(rejected.server?.contains("hostname mismatch, expected .\(b.name.cluster).trebuchet-node") == true)
        // The authority itself is no node.
        let posing = try TLSContext(isServer: false, verifiesHost: false)
        #expect(SSL_CTX_use_certificate(posing.pointer, authority.certificate) == 1)
        #expect(SSL_CTX_use_PrivateKey(posing.pointer, authority.key) == 1)
        #expect(try Self.handshake(posing, b.server, to: b.name).server != nil)
    }

    @Test("files are read, and errors name the file and the cause")
    func files() throws {
        let folder = try TemporaryFolder()
        let (authority, other) = (
            try CertifiedKey.makeAuthority(validFor: Self.year), try CertifiedKey.makeAuthority(validFor: nil)
        )
        func write(_ name: String, _ certified: CertifiedKey) throws {
            try folder.write("\(name).pem", certified.certificateText)
            try folder.write("\(name)-key.pem", certified.keyText)
        }
        func load(_ name: String, key: String? = nil, authority: String = "authority") throws -> NodeTLS {
            try NodeTLS(
                certificateChainFile: folder.path("\(name).pem"), privateKeyFile: folder.path("\(key ?? name)-key.pem"),
                authorityFile: folder.path("\(authority).pem"))
        }
        func problem(_ name: String, key: String? = nil, authority: String = "authority") -> String {
            do {
                _ = try load(name, key: key, authority: authority)
                return ""
            } catch { return "\(error)" }
        }
        try write("authority", authority)
        try write("other", other)
        try write("a", authority.issue(to: "a", validFor: Self.year))
        try write("b", authority.issue(to: "b", validFor: .seconds(-60)))
        let tls = try load("a")
        #expect(tls.name.node == "a" && tls.name.cluster == authority.authorityCluster)
        #expect(tls.remainingTime > .seconds(364 * 86_400))
        #expect(problem("missing").contains("missing.pem': No such file"))
        #expect(problem("a", key: "b").contains("b-key.pem"))
        #expect(problem("a", authority: "missing").contains("missing.pem': No such file"))
        let foreign = problem("a", authority: "other")
        #expect(foreign.contains("a.pem' is not valid for its authority: unable to get local issuer"))
        #expect(problem("b").contains("b.pem' is not valid for its authority: certificate has expired"))
        #expect(problem("authority").contains("is not that of a node"))
    }

    @Test("certificates and keys are read as they were written; invalid text is refused")
    func text() throws {
        let authority = try CertifiedKey.makeAuthority(validFor: nil)
        let both = authority.keyText + authority.certificateText
        let read = try CertifiedKey(certificate: both, key: both)
        #expect(read.certificateText == authority.certificateText && read.keyText == authority.keyText)
        #expect(read.authorityCluster == authority.authorityCluster && read.authorityCluster?.utf8.count == 32)
        #expect(throws: TransportError.self) { try CertifiedKey(certificate: [], key: both) }
        #expect(throws: TransportError.self) { try CertifiedKey(certificate: both, key: Array("-----BEGIN".utf8)) }
        let other = try CertifiedKey.makeAuthority(validFor: nil)
        #expect(throws: TransportError.self) { try CertifiedKey(certificate: both, key: other.keyText) }
        let node = try authority.issue(to: "a", validFor: nil)
        #expect(node.authorityCluster == nil)
        #expect(throws: TransportError.self) { try node.issue(to: "b", validFor: nil) }
        #expect(node.remainingTime > Self.year * 1_000)
        #expect(NodeCertificateName("a.b.c.trebuchet-node") == NodeCertificateName(node: "a.b", cluster: "c"))
        for invalid in ["", "c.trebuchet-node", ".c.trebuchet-node", "a..trebuchet-node", "a.c.example"] {
            #expect(NodeCertificateName(invalid) == nil, "\(invalid)")
        }
    }
}
