import Networking
import TestCertificates
import Testing
import Transports
import WebSockets

/// `WebSocketClient` against a server of PyPI's `websockets`, plain and over TLS.
@Suite(.timeLimit(.minutes(5))) struct ForeignServerTests {
    private enum Event: Equatable, Sendable {
        case text(String)
        case binary([UInt8])
        case pong([UInt8])
        case close(UInt16, String)
    }

    private final class Listener: WebSocketHandler {
        private let events: AsyncStream<Event>.Continuation

        init(_ events: AsyncStream<Event>.Continuation) { self.events = events }

        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {
            events.yield(
                opcode == .text ? .text(String(decoding: message, as: UTF8.self)) : .binary(Array(message)))
        }

        func webSocket(_ socket: WebSocket, didReceivePong payload: UnsafeMutableRawBufferPointer) {
            events.yield(.pong(Array(payload)))
        }

        func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
            events.yield(.close(code.rawValue, reason))
        }
    }

    private struct Server {
        let peer: PythonPeer
        let url: String

        init(secure: Bool) async throws {
            let files = secure ? [TestCertificate.path("server.pem"), TestCertificate.path("server.key")] : []
            peer = try PythonPeer("echo_server", files)
            let port = try #require(await peer.nextLine())
            try #require(Int(port) != nil, "the server did not start: \(port)")
            url = "\(secure ? "wss" : "ws")://localhost:\(port)"
        }

        func connect(
            _ path: String = "/", trust: TLSClientSettings.Trust = .file(TestCertificate.path("ca.pem")),
            compression: WebSocketCompression? = nil
        ) async throws -> (WebSocket, AsyncStream<Event>.Iterator) {
            let (stream, continuation) = AsyncStream.makeStream(of: Event.self)
            let socket = try await WebSocketClient.connect(
                to: url + path, subprotocols: ["first", "third"], tls: TLSClientSettings(trust: trust),
                compression: compression
            ) { _ in Listener(continuation) }
            return (socket, stream.makeAsyncIterator())
        }
    }

    /// With a context for each message, and with one for all.
    private static let compressions: [WebSocketCompression?] = [false, true].map { keepsContext in
        var compression = WebSocketCompression()
        compression.serverNoContextTakeover = !keepsContext
        compression.clientNoContextTakeover = !keepsContext
        return compression
    }

    @Test(
        "texts and binary messages of every length class are echoed, compressed or not", arguments: [false, true],
        [nil] + compressions)
    func echo(secure: Bool, compression: WebSocketCompression?) async throws {
        let server = try await Server(secure: secure)
        var (socket, events) = try await server.connect("/chat?room=%C3%A9", compression: compression)
        #expect(socket.isCompressionNegotiated == (compression != nil))
        #expect(socket.subprotocol == "first")
        socket.send(text: "path")
        #expect(await events.next() == .text("/chat?room=%C3%A9"))
        for length in [0, 1, 125, 126, 65_535, 65_536, 1_000_000] {
            let payload = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 17) }
            socket.send(binary: payload)
            #expect(await events.next() == .binary(payload))
            let text = String(repeating: "é", count: length / 2)
            socket.send(text: text)
            #expect(await events.next() == .text(text))
        }
        socket.close(code: WebSocketCloseCode(rawValue: 4002), reason: "bye")
        // `websockets` responds with the code and the reason that it received.
        #expect(await events.next() == .close(4002, "bye"))
        let line = await server.peer.nextLine()
        #expect(line == "closed 4002 bye")
    }

    @Test("fragments are joined, pings answered in both directions, and a close is received", arguments: [false, true])
    func control(secure: Bool) async throws {
        let server = try await Server(secure: secure)
        var (socket, events) = try await server.connect()
        socket.send(text: "fragments")
        #expect(await events.next() == .text("fragments"))
        socket.send(text: "ping")
        #expect(await events.next() == .text("ponged"))
        socket.ping([1, 2, 3])
        #expect(await events.next() == .pong([1, 2, 3]))
        socket.send(text: "close")
        #expect(await events.next() == .close(4001, "as asked"))
        let line = await server.peer.nextLine()
        // RFC 6455 §5.5.1: a close is answered with its code.
        #expect(line == "closed 4001 ")
    }

    @Test("the server receives the host's name in the TLS handshake (RFC 6455 §4.1, server name indication)")
    func serverName() async throws {
        let server = try await Server(secure: true)
        var (socket, events) = try await server.connect()
        socket.send(text: "name")
        #expect(await events.next() == .text("localhost"))
    }

    @Test("a server with an untrusted certificate is rejected")
    func untrusted() async throws {
        let server = try await Server(secure: true)
        let error = await #expect(throws: TransportError.self) {
            _ = try await server.connect(trust: .file(TestCertificate.path("other.pem")))
        }
        #expect(error?.code == .tls)
    }
}
