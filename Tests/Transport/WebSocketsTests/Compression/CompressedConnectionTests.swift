import Bytes
import Networking
import Platform
import Testing

import Transports
@testable import WebSockets

/// permessage-deflate over real sockets, both roles.
@Suite(.timeLimit(.minutes(5)), .dedicatedThreads) struct CompressedConnectionTests {
    private final class Collector: WebSocketHandler {
        private let messages: AsyncStream<[UInt8]>.Continuation
        init(_ messages: AsyncStream<[UInt8]>.Continuation) { self.messages = messages }
        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {
            messages.yield(Array(message))
        }
        func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) { messages.finish() }
    }

    private final class Greeter: WebSocketHandler {
        private let greet: (WebSocket) -> Void
        init(_ greet: @escaping (WebSocket) -> Void) { self.greet = greet }
        func webSocketDidOpen(_ socket: WebSocket) { greet(socket) }
        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {}
    }

    private static func compression(keeping: Bool = false, threshold: Int = 1) -> WebSocketCompression {
        var compression = WebSocketCompression()
        compression.threshold = threshold
        compression.serverNoContextTakeover = !keeping
        compression.clientNoContextTakeover = !keeping
        return compression
    }

    private static let offer = "Sec-WebSocket-Extensions: permessage-deflate\r\n"

    private func server(
        _ compression: WebSocketCompression? = compression(), limits: WebSocketLimits = WebSocketLimits(),
        _ makeHandler: @escaping @Sendable () -> any WebSocketHandler = { EchoHandler() }
    ) throws -> WebSocketServer {
        try WebSocketServer(port: 0, limits: limits, compression: compression) { _ in .accept(makeHandler()) }
    }

    private func connect(
        _ server: WebSocketServer, _ compression: WebSocketCompression?
    ) async throws -> (WebSocket, AsyncStream<[UInt8]>.Iterator) {
        let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        let socket = try await WebSocketClient.connect(
            to: "ws://127.0.0.1:\(server.address.port)/", compression: compression
        ) { _ in Collector(continuation) }
        return (socket, stream.makeAsyncIterator())
    }

    @Test("messages of all lengths are echoed, with and without context takeover", arguments: [false, true])
    func echo(keeping: Bool) async throws {
        let compression = Self.compression(keeping: keeping)
        var (socket, messages) = try await connect(try server(compression), compression)
        #expect(socket.isCompressionNegotiated)
        var random = RandomSource(seed: 1)
        for length in [0, 1, 125, 126, 1000, 65_536, 400_000] {
            let message = (0..<length).map { _ in UInt8.random(in: 0...7, using: &random) }
            socket.send(binary: message)
            #expect(await messages.next() == message)
            let text = String(repeating: "é", count: length / 2)
            socket.send(text: text)
            #expect(await messages.next() == Array(text.utf8))
        }
        let sender = socket
        sender.reactor.execute { sender.fragmentBytes = 100 }
        let long = String(repeating: "in fragments ", count: 2000)
        socket.send(text: long)
        #expect(await messages.next() == Array(long.utf8))
        socket.close()
        #expect(await messages.next() == nil)
    }

    @Test(
        "without an offer, or with compression off at the server, messages are not compressed",
        arguments: [true, false])
    func oneSided(serverWants: Bool) async throws {
        let server = try server(serverWants ? Self.compression() : nil)
        var (socket, messages) = try await connect(server, serverWants ? nil : Self.compression())
        #expect(!socket.isCompressionNegotiated)
        socket.send(text: String(repeating: "a", count: 5000))
        #expect(await messages.next()?.count == 5000)
    }

    @Test("a broadcast of a header and shared bytes is compressed once, and arrives as one message")
    func broadcast() async throws {
        let text = Array(String(repeating: "{\"title\":\"Milk\"},", count: 1000).utf8)
        let shared = text.withUnsafeBytes { SharedBytes($0) }
        let server = try server {
            Greeter { $0.sendShared(.text, headCount: 5, head: { $0.append("head:") }, shared: shared) }
        }
        for _ in 0..<3 {
            var (_, messages) = try await connect(server, Self.compression())
            #expect(await messages.next() == Array("head:".utf8) + text)
        }
        var made = 0
        _ = shared.derived(1 << 8 | 15) { _ in
            made += 1
            return shared
        }
        #expect(made == 0, "it is there, from the first of the three")

        // It is small on the wire as well.
        let peer = try RawPeer(port: server.address.port)
        try peer.send(RawPeer.upgrade("/", Self.offer))
        #expect(try peer.receiveHead().contains("permessage-deflate; server_no_context_takeover"))
        let head = try peer.receive(4)
        #expect(head[0] == 0xC1)
        #expect(Int(head[2]) << 8 | Int(head[3]) < 500)
    }

    @Test("subscribers with context takeover receive a broadcast, too")
    func broadcastWithTakeover() async throws {
        let text = Array(String(repeating: "{\"title\":\"Milk\"},", count: 1000).utf8)
        let shared = text.withUnsafeBytes { SharedBytes($0) }
        let compression = Self.compression(keeping: true)
        let server = try server(compression) {
            Greeter { socket in
                for _ in 0..<2 {
                    socket.sendShared(.text, headCount: 5, head: { $0.append("head:") }, shared: shared)
                }
            }
        }
        var (_, messages) = try await connect(server, compression)
        for _ in 0..<2 { #expect(await messages.next() == Array("head:".utf8) + text) }
    }

    /// Invalid frames of a client to a server with a limit of 1 MiB, and the code that it closes with.
    static let violating: [(what: String, frames: [UInt8], code: UInt16)] = [
        ("RFC 7692 §6.1: RSV1 on a continuation", frame(1, [0x61], fin: false) + reserved(0, [0x62]), 1002),
        ("RFC 7692 §6.1: RSV1 on a ping", reserved(9, []), 1002),
        ("RSV2", [0xA1, 0x80, 0, 0, 0, 0], 1002),
        ("not DEFLATE data", reserved(1, [0xFF, 0xFF, 0xFF]), 1007),
        ("text that is not UTF-8 after inflating", reserved(1, [0, 1, 0, 0xFE, 0xFF, 0xC0, 0]), 1007),
        ("16 MiB of zeros in 16 KiB", reserved(2, bomb), 1009),
    ]

    /// A frame with RSV1.
    private static func reserved(_ opcode: UInt8, _ payload: [UInt8]) -> [UInt8] {
        var bytes = frame(opcode, payload)
        bytes[0] |= 0x40
        return bytes
    }

    private static var bomb: [UInt8] {
        var buffer = ByteBuffer()
        [UInt8](repeating: 0, count: 16 << 20).withUnsafeBytes {
            Deflater(level: 9, windowBits: 15).deflate($0, resetting: true, into: &buffer)
        }
        return Array(buffer.bytes)
    }

    @Test("invalid compressed frames end the connection with the matching code", arguments: violating)
    func violations(_ what: String, _ frames: [UInt8], _ code: UInt16) async throws {
        let server = try server()
        let peer = try RawPeer(port: server.address.port)
        try peer.send(RawPeer.upgrade("/", Self.offer))
        _ = try peer.receiveHead()
        try peer.send(frames)
        let close = try peer.receiveFrame()
        #expect(close.opcode == 8, "\(what)")
        #expect(close.payload.prefix(2).elementsEqual([UInt8(code >> 8), UInt8(code & 0xFF)]), "\(what)")
    }

    @Test("a server that compresses without agreement, or agrees to more than was offered, is disconnected")
    func badServers() async throws {
        for (answer, bytes, code) in [
            ("", Self.reserved(1, [0]), UInt16(1002)), ("Sec-WebSocket-Extensions: permessage-deflate; x\r\n", [], 0),
        ] {
            let server = try RawServer()
            let url = server.url
            let (stream, continuation) = AsyncStream.makeStream(of: EchoHandler.Ending.self)
            // On a reactor: the server blocks its thread of the pool.
            let connecting = Task(executorPreference: try ReactorGroup.clients().reactors[0].tasks) {
                try await WebSocketClient.connect(to: url, compression: WebSocketCompression()) { _ in
                    EchoHandler(endings: continuation)
                }
            }
            let (peer, request) = try server.accept()
            try peer.send(RawServer.answer(request, answer) + bytes)
            if code == 0 {
                await #expect(throws: TransportError.self) { try await connecting.value }
            } else {
                _ = try await connecting.value
                var endings = stream.makeAsyncIterator()
                #expect(await endings.next()?.code.rawValue == code)
            }
            withExtendedLifetime(peer) {}
        }
    }
}
