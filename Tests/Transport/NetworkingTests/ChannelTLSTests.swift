import Bytes
import Glibc
import TestCertificates
import TestSupport
import Testing

@testable import Networking
import Transports

/// A TLS channel, with a session at the other end of its socket.
@Suite("A channel with TLS", .timeLimit(.minutes(5)), .serialized, .dedicatedReactor)
struct ChannelTLSTests {
    /// The client's end; used by the test alone, while the reactor has the server's.
    private final class Client {
        let rig: ChannelRig
        let session: TLSConnection
        private let plain = UnsafeMutableRawBufferPointer.allocate(byteCount: 512 << 10, alignment: 64)
        private(set) var received: [UInt8] = []
        private(set) var end: Int?

        init(_ rig: ChannelRig, asksForClients: Bool = false) async throws {
            self.rig = rig
            var settings = TLSClientSettings(trust: .file(TestCertificate.path("ca.pem")))
            if asksForClients {
                settings.certificateChainFile = TestCertificate.path("client.pem")
                settings.privateKeyFile = TestCertificate.path("client.key")
            }
            session = try TLSConnection(
                try TLSContext.client(settings), host: "localhost", name: "the server", buffers: TLSBuffers())
            let context = try TLSContext.server(
                TLSServerSettings(
                    certificateChainFile: TestCertificate.path("server.pem"),
                    privateKeyFile: TestCertificate.path("server.key"),
                    clientAuthorityFile: asksForClients ? TestCertificate.path("ca.pem") : nil))
            let (channel, ears) = (rig.channel, rig.ears)
            await rig.on {
                try! channel.secure(with: context, answerToPlainText: Array("speak TLS".utf8))
                try! channel.start(ears)
            }
        }

        deinit { plain.deallocate() }

        func begin() async {
            session.startHandshake(on: rig.peer)
            for _ in 0..<3 { await turn() }
        }

        /// Receives what has arrived, after the other side had a turn.
        func turn() async {
            await rig.settle()
            let count = session.receive(from: rig.peer, atMost: 256 << 10, into: plain)
            if count > 0 { received += plain.prefix(count) } else if count != -Int(EAGAIN) { end = end ?? count }
        }

        func send(_ bytes: [UInt8]) -> Int { bytes.withUnsafeBytes { session.send($0, to: rig.peer) } }
    }

    @Test("output before the handshake is sent after it, and input is decrypted")
    func plainText() async throws {
        let rig = try await ChannelRig(isStarted: false)
        let client = try await Client(rig)
        #expect(await rig.on { rig.channel.isSecure && !rig.channel.isResumed && rig.channel.peerSubject == nil })
        await rig.on { rig.write(1_000) }
        #expect(await rig.on { rig.channel.pendingBytes } == 1_000)
        #expect(rig.take() == [], "it waits for the client, not for the socket")
        await client.begin()
        #expect(client.session.isEstablished)
        #expect(client.received == [UInt8](repeating: 7, count: 1_000))
        #expect(await rig.on { rig.channel.pendingBytes } == 0)
        #expect(client.send([1, 2, 3]) == 3)
        await rig.settle()
        #expect(await rig.on { rig.ears.received } == [1, 2, 3])
        #expect(await rig.on { rig.channel.isOpen && rig.ears.ends.isEmpty })
    }

    @Test("the reactor rests when all output is sent")
    func rests() async throws {
        let rig = try await ChannelRig(isStarted: false)
        let client = try await Client(rig)
        await client.begin()
        await rig.on { rig.write(100) }
        await client.turn()
        #expect(client.received.count == 100)
        #expect(await rig.isAtRest())
    }

    @Test("a broken connection is an error, whatever input is left")
    func interruptedHandshake() async throws {
        let rig = try await ChannelRig(isStarted: false)
        let client = try await Client(rig)
        await client.begin()
        // Unread bytes at the peer turn its end into a reset.
        await rig.on { rig.write(1_000) }
        rig.closePeer()
        #expect(await eventually { await rig.on { rig.ears.ends.count } == 1 })
        #expect(await rig.on { rig.ears.ends.first??.code } == .closed)
        withExtendedLifetime(client) {}
    }

    @Test("a large message arrives complete, through a socket that accepts it in parts")
    func large() async throws {
        let rig = try await ChannelRig(isStarted: false)
        let client = try await Client(rig)
        await client.begin()
        let (channel, ears) = (rig.channel, rig.ears)
        await rig.on { rig.write(3_000_000) }
        #expect(await rig.on { channel.pendingBytes > 0 && !channel.isWritable })
        for _ in 0..<2_000 where client.received.count < 3_000_000 { await client.turn() }
        #expect(client.received.count == 3_000_000 && client.received.allSatisfy { $0 == 7 })
        #expect(await eventually { await rig.on { channel.pendingBytes == 0 && channel.isWritable } })
        #expect(await rig.on { ears.becameWritable } == 1)
    }

    @Test("the local end is signalled in TLS and on the socket, after the output")
    func end() async throws {
        let rig = try await ChannelRig(isStarted: false)
        let client = try await Client(rig)
        await client.begin()
        await rig.on {
            rig.write(5)
            rig.channel.closeAfterFlush()
        }
        for _ in 0..<3 { await client.turn() }
        #expect(client.received == [7, 7, 7, 7, 7])
        #expect(client.session.isEnded && client.end == 0)
        #expect(await rig.on { rig.ears.ends.isEmpty })
        client.session.sendCloseNotify(on: rig.peer)
        await rig.settle()
        await rig.settle()
        #expect(await rig.on { rig.ears.ends } == [nil])
    }

    @Test("a client's TLS close is an orderly end; bytes outside of TLS are an error that says so")
    func otherEnd() async throws {
        let rig = try await ChannelRig(isStarted: false)
        let client = try await Client(rig)
        await client.begin()
        client.session.sendCloseNotify(on: rig.peer)
        await rig.settle()
        #expect(await rig.on { rig.ears.ends } == [nil])

        let noise = try await ChannelRig(isStarted: false)
        let other = try await Client(noise)
        await other.begin()
        noise.send([0x17, 3, 3, 0, 5, 1, 2, 3, 4, 5])
        await noise.settle()
        let error = await noise.on { noise.ears.ends.first ?? nil }
        #expect(error?.code == .tls)

        let words = try await ChannelRig(isStarted: false)
        _ = try await Client(words)
        words.send(Array("GET / HTTP/1.1\r\n\r\n".utf8))
        await words.settle()
        #expect(
            await words.on { words.ears.ends.first ?? nil }?.message == "TLS with peer: the client does not use TLS")
        #expect(words.take() == Array("speak TLS".utf8))
    }

    @Test("a client certificate provides the peer's name")
    func subject() async throws {
        let rig = try await ChannelRig(isStarted: false)
        let client = try await Client(rig, asksForClients: true)
        await client.begin()
        #expect(await rig.on { rig.channel.peerSubject } == "CN=client")
    }

    @Test("a channel without TLS is neither secure nor resumed")
    func plain() async throws {
        let rig = try await ChannelRig()
        #expect(await rig.on { !rig.channel.isSecure && !rig.channel.isResumed && rig.channel.peerSubject == nil })
    }
}
