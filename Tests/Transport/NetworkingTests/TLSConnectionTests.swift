import Bytes
import COpenSSL
import Glibc
import TestCertificates
import Testing

@testable import Networking
import Transports

/// Two sessions over a pair of sockets, without a reactor.
struct TLSPair {
    let (server, client): (TLSConnection, TLSConnection)
    let (here, there): (Socket, Socket)
    private let plain = UnsafeMutableRawBufferPointer.allocate(byteCount: 512 << 10, alignment: 64)

    static func server(asksForClients: Bool = false) throws -> TLSContext {
        try TLSContext.server(
            TLSServerSettings(
                certificateChainFile: TestCertificate.path("server.pem"),
                privateKeyFile: TestCertificate.path("server.key"),
                clientAuthorityFile: asksForClients ? TestCertificate.path("ca.pem") : nil))
    }

    static func client(hasCertificate: Bool = false, _ change: (inout TLSClientSettings) -> Void = { _ in }) throws
        -> TLSContext
    {
        var settings = TLSClientSettings(trust: .file(TestCertificate.path("ca.pem")))
        if hasCertificate {
            settings.certificateChainFile = TestCertificate.path("client.pem")
            settings.privateKeyFile = TestCertificate.path("client.key")
        }
        change(&settings)
        return try TLSContext.client(settings)
    }

    init(_ serving: TLSContext? = nil, _ asking: TLSContext? = nil, host: String = "localhost") throws {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, kind, 0, &ends) == 0)
        (here, there) = (Socket(descriptor: ends[0]), Socket(descriptor: ends[1]))
        server = try TLSConnection(
            try serving ?? Self.server(), host: nil, name: "the client", buffers: TLSBuffers(),
            answerToPlainText: Array("speak TLS".utf8))
        client = try TLSConnection(
            try asking ?? Self.client(), host: host, name: "the server", buffers: TLSBuffers())
    }

    func close() {
        for socket in [here, there] { socket.close() }
        plain.deallocate()
    }

    func receive(_ session: TLSConnection, atMost most: Int = 256 << 10) -> (count: Int, bytes: [UInt8]) {
        let count = session.receive(from: session === server ? here : there, atMost: most, into: plain)
        return (count, Array(plain.prefix(max(0, count))))
    }

    func send(_ bytes: [UInt8], from session: TLSConnection) -> Int {
        bytes.withUnsafeBytes { session.send($0, to: session === server ? here : there) }
    }

    /// Completes the handshakes; nothing is pending afterwards.
    func startHandshakes() {
        server.startHandshake(on: here)
        client.startHandshake(on: there)
        for _ in 0..<3 {
            _ = receive(server)
            _ = receive(client)
        }
    }
}

@Suite("A TLS session over a pair of sockets")
struct TLSConnectionTests {
    @Test("a client starts, a server waits, and both detect the end of the handshake")
    func handshake() throws {
        let pair = try TLSPair()
        defer { pair.close() }
        pair.server.startHandshake(on: pair.here)
        #expect(pair.receive(pair.client).count == -Int(EAGAIN))
        #expect(pair.client.receivedBytes == 0)
        pair.client.startHandshake(on: pair.there)
        #expect(!pair.client.isEstablished && !pair.server.isEstablished)
        // None of it is plain text, but something arrived.
        #expect(pair.receive(pair.server).count == -Int(EAGAIN))
        #expect(pair.server.receivedBytes > 100)
        pair.startHandshakes()
        #expect(pair.client.isEstablished && pair.server.isEstablished)
        #expect(!pair.client.isResumed && !pair.server.isResumed)
        #expect(pair.client.failure == nil && pair.server.failure == nil)
        #expect(pair.client.unsentBytes == 0 && pair.server.unsentBytes == 0)
    }

    @Test("before the handshake ends no output is accepted")
    func early() throws {
        let pair = try TLSPair()
        defer { pair.close() }
        pair.client.startHandshake(on: pair.there)
        #expect(pair.send([1, 2, 3], from: pair.client) == -Int(EAGAIN))
        #expect(pair.send([], from: pair.client) == 0)
    }

    @Test("output arrives in one read, in any number of records", arguments: [1, 3, 16_384, 16_385, 100_000])
    func plainText(count: Int) throws {
        let pair = try TLSPair()
        defer { pair.close() }
        pair.startHandshakes()
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        for (from, to) in [(pair.client, pair.server), (pair.server, pair.client)] {
            #expect(pair.send(bytes, from: from) == count)
            #expect(from.unsentBytes == 0)
            let (got, received) = pair.receive(to)
            #expect(got == count)
            #expect(received == bytes)
            #expect(to.receivedBytes > count)
            #expect(pair.receive(to).count == -Int(EAGAIN))
            #expect(to.receivedBytes == 0)
        }
    }

    @Test("partial records are buffered until the rest arrives", arguments: [1, 7, 100])
    func inParts(size: Int) throws {
        let pair = try TLSPair()
        defer { pair.close() }
        pair.startHandshakes()
        let bytes = [UInt8](repeating: 3, count: 500)
        #expect(pair.send(bytes, from: pair.client) == 500)
        var received: [UInt8] = []
        for _ in 0..<1_000 where received.count < 500 { received += pair.receive(pair.server, atMost: size).bytes }
        #expect(received == bytes)
    }

    @Test("output that the socket does not accept is buffered, and sent before other output")
    func unsent() throws {
        let pair = try TLSPair()
        defer { pair.close() }
        pair.startHandshakes()
        let block = [UInt8](repeating: 6, count: 200_000)
        var taken = 0
        while pair.client.unsentBytes == 0 { taken += max(0, pair.send(block, from: pair.client)) }
        #expect(pair.send([1], from: pair.client) == -Int(EAGAIN))
        #expect(pair.client.flush(to: pair.there) == 0)
        var received = 0
        while pair.client.unsentBytes > 0 {
            received += max(0, pair.receive(pair.server).count)
            #expect(pair.client.flush(to: pair.there) == 0)
        }
        #expect(pair.send([1], from: pair.client) == 1)
        var last: UInt8?
        while case let (count, bytes) = pair.receive(pair.server), count > 0 {
            received += count
            last = bytes.last
        }
        #expect(received == taken + 1)
        #expect(last == 1)
    }

    @Test("at most 256 KiB plus one record of a large text is encrypted at once")
    func batch() throws {
        let pair = try TLSPair()
        defer { pair.close() }
        pair.startHandshakes()
        let taken = pair.send([UInt8](repeating: 6, count: 1 << 20), from: pair.client)
        #expect(taken >= 240 << 10 && taken <= 272 << 10)
    }

    @Test("several pieces are sent until one is not fully accepted")
    func pieces() throws {
        let pair = try TLSPair()
        defer { pair.close() }
        func send(_ parts: [[UInt8]]) -> Int {
            let all = parts.flatMap(\.self)
            return all.withUnsafeBytes { bytes in
                var at = 0
                var pieces = parts.map { part in
                    defer { at += part.count }
                    return iovec(
                        iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress! + at), iov_len: part.count)
                }
                return pieces.withUnsafeMutableBufferPointer { pair.client.send($0, to: pair.there) }
            }
        }
        #expect(send([[1], [2]]) == -Int(EAGAIN))
        pair.startHandshakes()
        #expect(send([[1], [], [2, 3]]) == 3)
        #expect(pair.receive(pair.server).bytes == [1, 2, 3])
        // One batch of the first piece is accepted, and nothing of the second.
        let large = [UInt8](repeating: 6, count: 1 << 20)
        let taken = send([large, [9]])
        #expect(taken > 0 && taken < large.count)
        #expect(send([[9]]) == -Int(EAGAIN))
    }

    @Test("a closed socket is an error, for new and for buffered output")
    func closedSocket() throws {
        let pair = try TLSPair()
        defer { pair.close() }
        pair.startHandshakes()
        pair.there.shutdownWriting()
        #expect(pair.send([1], from: pair.client) == -Int(EPIPE))

        let waiting = try TLSPair()
        defer { waiting.close() }
        waiting.startHandshakes()
        while waiting.client.unsentBytes == 0 {
            _ = waiting.send([UInt8](repeating: 6, count: 200_000), from: waiting.client)
        }
        waiting.there.shutdownWriting()
        #expect(waiting.send([1], from: waiting.client) == -Int(EPIPE))
        #expect(waiting.client.flush(to: waiting.there) == EPIPE)
    }

    @Test("an orderly TLS close is distinguished from the end of the bytes")
    func end() throws {
        let pair = try TLSPair()
        defer { pair.close() }
        // Before the handshake there is no close message.
        pair.client.sendCloseNotify(on: pair.there)
        #expect(pair.receive(pair.server).count == -Int(EAGAIN))
        #expect(pair.server.receivedBytes == 0)
        pair.startHandshakes()
        #expect(pair.send([1, 2], from: pair.client) == 2)
        pair.client.sendCloseNotify(on: pair.there)
        #expect(pair.receive(pair.server).bytes == [1, 2])
        #expect(pair.server.isEnded)
        pair.server.sendCloseNotify(on: pair.here)
        #expect(pair.receive(pair.client).count == 0)
        #expect(pair.client.isEnded)
        #expect(pair.client.failure == nil && pair.server.failure == nil)
        // The end of the socket as well.
        pair.there.shutdownWriting()
        #expect(pair.receive(pair.server).count == 0)
    }

    @Test("a server answers plain text with its configured response", arguments: ["GET / HTTP/1.1\r\n", "ABC", "ZAZ"])
    func plainTextToServer(text: String) throws {
        let pair = try TLSPair()
        defer { pair.close() }
        _ = Array(text.utf8).withUnsafeBytes { pair.there.send($0) }
        #expect(pair.receive(pair.server).count == -Int(EPROTO))
        #expect(pair.server.failure == TransportError(.tls, "TLS with the client: the client does not use TLS"))
        var answer = [UInt8](repeating: 0, count: 100)
        let count = answer.withUnsafeMutableBytes { pair.there.receive(into: $0) }
        #expect(answer.prefix(max(0, count)) == Array("speak TLS".utf8)[...])
        // No more bytes travel in either direction.
        pair.server.sendCloseNotify(on: pair.here)
        #expect(pair.send([1], from: pair.server) < 0)
        #expect(answer.withUnsafeMutableBytes { pair.there.receive(into: $0) } == -Int(EAGAIN))
    }

    @Test("a client reports that the server does not use TLS, and sends nothing")
    func plainTextToClient() throws {
        let pair = try TLSPair()
        defer { pair.close() }
        _ = Array("HTTP/1.1 400".utf8).withUnsafeBytes { pair.here.send($0) }
        #expect(pair.receive(pair.client).count == -Int(EPROTO))
        #expect(pair.client.failure?.message.contains("the server does not use TLS at this port") == true)
        var answer = [UInt8](repeating: 0, count: 100)
        #expect(answer.withUnsafeMutableBytes { pair.here.receive(into: $0) } == -Int(EAGAIN))
    }

    @Test(
        "bytes that are neither TLS nor HTTP are a TLS error",
        arguments: [[0, 1, 2, 3, 4, 5], [0x41, 0x42, 0x5B, 1, 2]])
    func noise(bytes: [UInt8]) throws {
        let pair = try TLSPair()
        defer { pair.close() }
        _ = bytes.withUnsafeBytes { pair.there.send($0) }
        #expect(pair.receive(pair.server).count == -Int(EPROTO))
        let failure = try #require(pair.server.failure)
        #expect(failure.message.hasPrefix("TLS with the client: ") && !failure.message.contains("not use TLS"))
        #expect(!failure.message.contains("were not read"))
        // The first reason stays.
        _ = bytes.withUnsafeBytes { pair.there.send($0) }
        _ = pair.receive(pair.server)
        #expect(pair.server.failure == failure)
    }

    @Test("plain text is recognized only at the start")
    func wordsLater() throws {
        let pair = try TLSPair()
        defer { pair.close() }
        pair.startHandshakes()
        _ = Array("GET / HTTP/1.1".utf8).withUnsafeBytes { pair.there.send($0) }
        #expect(pair.receive(pair.server).count == -Int(EPROTO))
        #expect(pair.server.failure?.message.contains("does not use TLS") == false)
    }

    @Test("a certificate for another host is rejected by name, unless verification is off")
    func otherHost() throws {
        let pair = try TLSPair(host: "example.org")
        defer { pair.close() }
        pair.startHandshakes()
        #expect(pair.client.failure?.message.contains("the certificate was rejected: ") == true)
        #expect(!pair.client.isEstablished)

        let trusting = try TLSPair(nil, TLSPair.client { $0.trust = .insecure }, host: "example.org")
        defer { trusting.close() }
        trusting.startHandshakes()
        #expect(trusting.client.isEstablished && trusting.client.failure == nil)

        let named = try TLSPair(nil, TLSPair.client { $0.serverName = "localhost" }, host: "example.org")
        defer { named.close() }
        named.startHandshakes()
        #expect(named.client.isEstablished && named.client.failure == nil)

        let literal = try TLSPair(host: "192.0.2.1")
        defer { literal.close() }
        literal.startHandshakes()
        #expect(literal.client.failure?.message.contains("the certificate was rejected: ") == true)
    }

    @Test("the subject of a peer is available when it presents a certificate")
    func subject() throws {
        let pair = try TLSPair(TLSPair.server(asksForClients: true), TLSPair.client(hasCertificate: true))
        defer { pair.close() }
        #expect(pair.server.peerSubject == nil)
        pair.startHandshakes()
        #expect(pair.server.peerSubject == "CN=client")
        #expect(pair.client.peerSubject == "CN=server")
        let anonymous = try TLSPair()
        defer { anonymous.close() }
        anonymous.startHandshakes()
        #expect(anonymous.server.isEstablished && anonymous.server.peerSubject == nil)
    }

    @Test("a second connection to a host resumes the session of the first; one to another host does not")
    func resumed() throws {
        let serving = try TLSPair.server()
        let asking = try TLSPair.client { $0.serverName = nil }
        for (host, isResumed) in [("localhost", false), ("localhost", true), ("127.0.0.1", false)] {
            let pair = try TLSPair(serving, asking, host: host)
            defer { pair.close() }
            pair.startHandshakes()
            #expect(pair.client.isEstablished)
            if host != "localhost" || isResumed { #expect(pair.client.isResumed == isResumed) }
        }
    }
}
