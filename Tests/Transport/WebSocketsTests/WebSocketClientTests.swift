import Bytes
import Networking
import Synchronization
import Testing

import Transports
@testable import WebSockets

@Suite("WebSocketClient over real sockets", .dedicatedThreads)
struct WebSocketClientTests {
    enum Event: Equatable, Sendable {
        case open
        case message(WebSocketOpcode, [UInt8])
        case pong([UInt8])
        case close(WebSocketCloseCode, String)
    }

    /// Records all events.
    private final class Listener: WebSocketHandler {
        let events: AsyncStream<Event>.Continuation

        init(_ events: AsyncStream<Event>.Continuation) { self.events = events }

        func webSocketDidOpen(_ socket: WebSocket) { events.yield(.open) }
        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {
            events.yield(.message(opcode, Array(message)))
        }
        func webSocket(_ socket: WebSocket, didReceivePong payload: UnsafeMutableRawBufferPointer) {
            events.yield(.pong(Array(payload)))
        }
        func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
            events.yield(.close(code, reason))
            events.finish()
        }
    }

    private func connect(
        _ port: Int, subprotocols: [String] = [], limits: WebSocketLimits = WebSocketLimits()
    ) async throws -> (WebSocket, AsyncStream<Event>.Iterator) {
        let (stream, continuation) = AsyncStream.makeStream(of: Event.self)
        let socket = try await WebSocketClient.connect(
            to: "ws://127.0.0.1:\(port)/", subprotocols: subprotocols, limits: limits
        ) { _ in Listener(continuation) }
        return (socket, stream.makeAsyncIterator())
    }

    @Test("a client and a server exchange text, binary of every length class, pings and close frames")
    func talk() async throws {
        var server = try EchoServer()
        var (socket, events) = try await connect(server.port, subprotocols: ["v1", "v3"])
        #expect(socket.subprotocol == "v1")
        #expect(await events.next() == .open)
        socket.send(text: "héllo 🚀")
        #expect(await events.next() == .message(.text, Array("héllo 🚀".utf8)))
        for length in [0, 125, 126, 65_535, 65_536, 400_000] {
            let payload = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 17) }
            socket.send(binary: payload)
            #expect(await events.next() == .message(.binary, payload))
        }
        socket.ping([1, 2])
        #expect(await events.next() == .pong([1, 2]))
        socket.close(code: .normal, reason: "done")
        #expect(await events.next() == .close(.normal, ""))
        #expect(await events.next() == nil)
        #expect(await server.nextEnding() == EchoHandler.Ending(code: .normal, reason: "done"))
    }

    @Test("a client receives the code and the reason of a server's close")
    func serverCloses() async throws {
        var server = try EchoServer()
        var (socket, events) = try await connect(server.port)
        #expect(await events.next() == .open)
        socket.send(text: "please close")
        #expect(await events.next() == .close(.policyViolation, "as you wish"))
        #expect(await server.nextEnding()?.code == .policyViolation)
    }

    /// Sends one message at the opening, of shared bytes or in fragments.
    private final class Greeter: WebSocketHandler {
        let greet: (WebSocket) -> Void

        init(_ greet: @escaping (WebSocket) -> Void) { self.greet = greet }

        func webSocketDidOpen(_ socket: WebSocket) { greet(socket) }
        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {}
    }

    @Test(
        "a message of a header and shared bytes arrives as one, whatever its size",
        arguments: [0, 10, 200, 9000, 200_000])
    func shared(_ count: Int) async throws {
        let payload = [UInt8](repeating: 0x62, count: count)
        let shared = payload.withUnsafeBytes { SharedBytes($0) }
        let server = try WebSocketServer(port: 0) { _ in
            .accept(
                Greeter { socket in
                    for _ in 0..<2 {
                        socket.sendShared(.text, headCount: 5, head: { $0.append("head:") }, shared: shared)
                    }
                    socket.send(text: "end")
                })
        }
        var (_, events) = try await connect(server.address.port)
        #expect(await events.next() == .open)
        for _ in 0..<2 { #expect(await events.next() == .message(.text, Array("head:".utf8) + payload)) }
        #expect(await events.next() == .message(.text, Array("end".utf8)))
    }

    @Test("a peer that does not read unlimited output is disconnected at the limit")
    func writeQueueLimit() async throws {
        var limits = WebSocketLimits()
        limits.writeQueueBytes = 1 << 20
        let (stream, continuation) = AsyncStream.makeStream(of: EchoHandler.Ending.self)
        let server = try WebSocketServer(port: 0, limits: limits) { _ in
            .accept(Flood(endings: continuation))
        }
        let peer = try RawPeer.upgraded(port: server.address.port, receiveBuffer: 4096)
        var endings = stream.makeAsyncIterator()
        let ending = try #require(await endings.next())
        #expect(ending.code.rawValue == 1006)
        #expect(ending.reason.contains("reads too slowly"))
        withExtendedLifetime(peer) {}
    }

    /// Sends 64 MiB at once, without flow control.
    private final class Flood: WebSocketHandler {
        private let endings: AsyncStream<EchoHandler.Ending>.Continuation

        init(endings: AsyncStream<EchoHandler.Ending>.Continuation) { self.endings = endings }

        func webSocketDidOpen(_ socket: WebSocket) {
            for _ in 0..<64 { socket.send(binary: [UInt8](repeating: 1, count: 1 << 20)) }
        }
        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {}
        func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
            endings.yield(EchoHandler.Ending(code: code, reason: reason))
        }
    }

    @Test(
        "a head and shared bytes arrive in fragments, which all connections share", arguments: [0, 8192, 8193, 100_000])
    func sharedFragments(_ count: Int) async throws {
        let shared = [UInt8](repeating: 0x62, count: count).withUnsafeBytes { SharedBytes($0) }
        let server = try WebSocketServer(port: 0) { _ in
            .accept(
                Greeter { socket in
                    socket.fragmentBytes = 8192
                    for head in ["head:", String(repeating: "h", count: 9_000)] {
                        socket.sendShared(
                            .binary, headCount: head.utf8.count, head: { $0.append(utf8: head) }, shared: shared)
                    }
                })
        }
        for _ in 0..<2 {
            var (_, events) = try await connect(server.address.port)
            #expect(await events.next() == .open)
            for head in ["head:", String(repeating: "h", count: 9_000)] {
                #expect(await events.next() == .message(.binary, Array(head.utf8) + Array(shared.bytes)))
            }
        }
        #expect(shared.hasDerived(-1 - 8192))
        let peer = try RawPeer.upgraded(port: server.address.port)
        #expect(try peer.receiveFrame().payload == Array("head:".utf8))
        while true {
            let frame = try peer.receiveFrame()
            #expect(frame.payload.count <= 8192 && frame.opcode == 0)
            if frame.isFinal { break }
        }
    }

    @Test("a message sent in fragments arrives complete", arguments: [0, 8192, 8193, 100_000])
    func fragments(_ count: Int) async throws {
        let payload = [UInt8](repeating: 0x62, count: count)
        let server = try WebSocketServer(port: 0) { _ in
            .accept(
                Greeter { socket in
                    socket.fragmentBytes = 8192
                    socket.send(binary: payload)
                })
        }
        var (_, events) = try await connect(server.address.port)
        #expect(await events.next() == .open)
        #expect(await events.next() == .message(.binary, payload))

        let peer = try RawPeer.upgraded(port: server.address.port)
        var total = 0
        while true {
            let frame = try peer.receiveFrame()
            #expect(frame.payload.count <= 8192)
            #expect(frame.opcode == (total == 0 ? 2 : 0))
            total += frame.payload.count
            if frame.isFinal { break }
        }
        #expect(total == count)
    }

    @Test("a message whose writing fails is not sent, and the next one is")
    func throwingBody() async throws {
        struct Refusal: Error {}
        let server = try WebSocketServer(port: 0) { _ in
            .accept(
                Greeter { socket in
                    #expect(throws: Refusal.self) {
                        try socket.send(.text) { buffer in
                            buffer.append("half of it")
                            throw Refusal()
                        }
                    }
                    socket.send(text: "next")
                })
        }
        var (_, events) = try await connect(server.address.port)
        #expect(await events.next() == .open)
        #expect(await events.next() == .message(.text, Array("next".utf8)))
    }

    private func error(_ url: String, limits: WebSocketLimits = WebSocketLimits()) async -> TransportError? {
        do {
            _ = try await WebSocketClient.connect(to: url, limits: limits) { _ in EchoHandler() }
            return nil
        } catch {
            return error as? TransportError
        }
    }

    @Test("a refused connection, a rejected upgrade and a silent server are errors with their codes")
    func errors() async throws {
        let server = try EchoServer()
        let rejected = await error("ws://127.0.0.1:\(server.port)/nowhere")
        #expect(rejected?.code == .handshake)
        #expect(rejected?.message.contains("404") == true)
        let port = server.port
        await server.server.shutdown()
        #expect(await error("ws://127.0.0.1:\(port)/")?.code == .refused)
        #expect(await error("ftp://127.0.0.1/")?.code == .addressInvalid)

        // A listener that retains connections and never answers.
        let accepted = Mutex<[ByteChannel]>([])
        let silent = try Networking.Listener.bind(host: "127.0.0.1", port: 0, reactors: ReactorGroup.clients().reactors)
        {
            channel in accepted.withLock { $0.append(channel) }
        }
        var limits = WebSocketLimits()
        limits.handshakeTimeout = .milliseconds(30)
        #expect(await error("ws://127.0.0.1:\(silent.address.port)/", limits: limits)?.code == .timedOut)
        await silent.close()
    }
}
