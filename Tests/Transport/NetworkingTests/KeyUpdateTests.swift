import COpenSSL
import Glibc
import Platform
import TestCertificates
import Testing

@testable import Networking
import Transports

/// A TLS 1.3 client that requests new keys endlessly and reads nothing.
@Suite(.timeLimit(.minutes(5))) struct KeyUpdateTests {
    private final class SilentDelegate: ByteChannelDelegate, @unchecked Sendable {
        let ended: AsyncStream<TransportError?>.Continuation
        init(_ ended: AsyncStream<TransportError?>.Continuation) { self.ended = ended }
        func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {}
        func channelDidBecomeWritable(_ channel: ByteChannel) {}
        func channelDidClose(_ channel: ByteChannel, error: TransportError?) { ended.yield(error) }
    }

    /// The connection that the server sees; used on its reactor alone.
    private final class AcceptedConnection: @unchecked Sendable { var channel: ByteChannel? }

    /// Completes the handshake, then requests new keys `most` times, or until the socket accepts nothing for a while. Returns the socket.
    private static func flood(_ address: SocketAddress, most: Int) -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        // Small, so that responses soon wait at the server.
        var size: Int32 = 8 << 10
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, 4)
        var limit = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        guard Socket(descriptor: descriptor).connect(to: address) == 0 else { return descriptor }
        let context = SSL_CTX_new(TLS_client_method())
        defer { SSL_CTX_free(context) }
        let ssl = SSL_new(context)
        defer { SSL_free(ssl) }
        SSL_set_fd(ssl, descriptor)
        guard SSL_connect(ssl) == 1 else { return descriptor }
        for _ in 0..<most {
            // 1: SSL_KEY_UPDATE_REQUESTED. The peer has to answer each.
            guard SSL_key_update(ssl, 1) == 1, SSL_do_handshake(ssl) == 1 else { return descriptor }
        }
        return descriptor
    }

    private func flood(
        limits: ChannelLimits, _ body: (Reactor, AcceptedConnection, AsyncStream<TransportError?>) async throws -> Void
    ) async throws {
        let context = try TLSContext.server(
            TLSServerSettings(
                certificateChainFile: TestCertificate.path("server.pem"),
                privateKeyFile: TestCertificate.path("server.key")))
        let reactor = try ReactorGroup.servers().reactors[0]
        let (stream, ended) = AsyncStream.makeStream(of: TransportError?.self)
        let seen = AcceptedConnection()
        let listener = try Listener.bind(host: "127.0.0.1", port: 0, reactors: [reactor]) { channel in
            channel.limits = limits
            // Small too, so that few responses fill it.
            channel.socket.set(SO_SNDBUF, to: 4 << 10)
            try? channel.secure(with: context)
            try? channel.start(SilentDelegate(ended))
            seen.channel = channel
        }
        let address = listener.address
        let peer = await onThread { Self.flood(address, most: 30_000) }
        defer { Glibc.close(peer) }
        try await body(reactor, seen, stream)
        await listener.close()
    }

    @Test("a client that requests keys is not read from while it does not receive the responses")
    func pauses() async throws {
        try await flood(limits: ChannelLimits(high: 64 << 10, low: 16 << 10)) { reactor, seen, _ in
            func pending() async -> Int { await reactor.perform { seen.channel?.pendingBytes ?? -1 } }
            while await pending() <= 64 << 10 { await Task.yield() }
            // Each of these calls follows a turn, in which the reactor could read more.
            for _ in 0..<50 { _ = await pending() }
            // At most one read above the watermark; all responses are over 700 KiB.
            #expect(await pending() < 300 << 10)
        }
    }

    @Test("a client that requests keys is disconnected at the limit of pending output")
    func ends() async throws {
        try await flood(limits: ChannelLimits(high: 16 << 20, low: 64 << 10, limit: 128 << 10)) { _, _, ended in
            for await error in ended {
                #expect(error?.message.contains("the peer reads too slowly") == true)
                break
            }
        }
    }
}
