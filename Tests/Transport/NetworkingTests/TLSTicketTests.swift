import COpenSSL
import Glibc
import Platform
import TestCertificates
import Testing

@testable import Networking
import Transports

/// TLS session tickets, which let clients resume sessions.
@Suite(.timeLimit(.minutes(5))) struct TLSTicketTests {
    private final class SilentDelegate: ByteChannelDelegate {
        func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {}
        func channelDidBecomeWritable(_ channel: ByteChannel) {}
        func channelDidClose(_ channel: ByteChannel, error: TransportError?) {}
    }

    /// Completes a TLS 1.2 handshake `times` times, each with the previous session. Returns the number of resumptions.
    private static func visit(_ address: SocketAddress, times: Int) -> Int {
        let context = SSL_CTX_new(TLS_client_method())
        defer { SSL_CTX_free(context) }
        SSL_CTX_ctrl(context, 124, 0x0303, nil)  // SSL_CTRL_SET_MAX_PROTO_VERSION
        var session: OpaquePointer?
        var resumed = 0
        for _ in 0..<times {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            guard Socket(descriptor: descriptor).connect(to: address) == 0 else { break }
            let ssl = SSL_new(context)
            defer { SSL_free(ssl) }
            SSL_set_fd(ssl, descriptor)
            if let session { SSL_set_session(ssl, session) }
            guard SSL_connect(ssl) == 1 else { break }
            if SSL_session_reused(ssl) == 1 { resumed += 1 }
            SSL_SESSION_free(session)
            session = SSL_get1_session(ssl)
            SSL_shutdown(ssl)
        }
        SSL_SESSION_free(session)
        return resumed
    }

    @Test("sessions are in the clients' tickets alone: the server stores none")
    func keepsNone() async throws {
        let context = try TLSContext.server(
            TLSServerSettings(
                certificateChainFile: TestCertificate.path("server.pem"),
                privateKeyFile: TestCertificate.path("server.key")))
        let reactor = try ReactorGroup.servers().reactors[0]
        let listener = try Listener.bind(host: "127.0.0.1", port: 0, reactors: [reactor]) { channel in
            try? channel.secure(with: context)
            try? channel.start(SilentDelegate())
        }
        let address = listener.address
        let resumed = await onThread { Self.visit(address, times: 5) }
        #expect(resumed == 4)
        #expect(SSL_CTX_ctrl(context.pointer, 20, 0, nil) == 0)  // SSL_CTRL_SESS_NUMBER
        await listener.close()
    }
}
