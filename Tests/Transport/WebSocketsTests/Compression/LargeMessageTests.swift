import Bytes
import Networking
import Platform
import Synchronization
import Testing

@testable import WebSockets

/// The compression of messages that take longer than one step, over real sockets.
@Suite(.timeLimit(.minutes(5)), .dedicatedThreads) struct LargeMessageTests {
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

    private static func compression(keeping: Bool = false) -> WebSocketCompression {
        var compression = WebSocketCompression()
        compression.serverNoContextTakeover = !keeping
        return compression
    }

    private func server(
        keeping: Bool = false, _ greet: @escaping @Sendable (WebSocket) -> Void
    ) throws -> WebSocketServer {
        try WebSocketServer(port: 0, compression: Self.compression(keeping: keeping)) { _ in .accept(Greeter(greet)) }
    }

    private func connect(
        _ server: WebSocketServer, keeping: Bool = false, windowBits: Int = 15
    ) async throws -> (WebSocket, AsyncStream<[UInt8]>.Iterator) {
        let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        var limits = WebSocketLimits()
        (limits.messageBytes, limits.frameBytes) = (8 << 20, 8 << 20)
        var compression = Self.compression(keeping: keeping)
        compression.serverMaxWindowBits = windowBits
        let socket = try await WebSocketClient.connect(
            to: "ws://127.0.0.1:\(server.address.port)/", limits: limits, compression: compression
        ) { _ in Collector(continuation) }
        return (socket, stream.makeAsyncIterator())
    }

    private static func sample(_ count: Int, seed: UInt64 = 7) -> [UInt8] {
        var random = RandomSource(seed: seed)
        return (0..<count).map { _ in UInt8.random(in: 0x61...0x68, using: &random) }
    }

    /// The state of the compression when the handler of a server returns.
    private struct Work: Sendable {
        var pieces = 0
        var isQueued = false
        var isWritable = true
    }

    @Test(
        "a large message is compressed in pieces in later steps; the messages and pings behind it keep their order",
        arguments: [false, true], [false, true])
    func order(keeping: Bool, closes: Bool) async throws {
        let large = Self.sample(2 << 20)
        let own = Self.sample(300_000, seed: 8)
        let shared = large.withUnsafeBytes { SharedBytes($0) }
        let (works, reported) = AsyncStream.makeStream(of: Work.self)
        let opened = Mutex<WebSocket?>(nil)
        let server = try server(keeping: keeping) { socket in
            opened.withLock { $0 = socket }
            socket.send(text: "first")
            socket.sendShared(.text, headCount: 5, head: { $0.append("head:") }, shared: shared)
            socket.send(text: "second")
            socket.send(binary: own)
            socket.send(text: "third")
            let codecs = socket.compression!.codecs
            reported.yield(
                Work(
                    pieces: codecs.pieceCount, isQueued: socket.outgoing != nil, isWritable: socket.isWritable))
            if closes { socket.close(code: .normal, reason: "") }
        }
        var (client, messages) = try await connect(server, keeping: keeping)
        #expect(await messages.next() == Array("first".utf8))
        #expect(await messages.next() == Array("head:".utf8) + large)
        #expect(await messages.next() == Array("second".utf8))
        #expect(await messages.next() == own)
        #expect(await messages.next() == Array("third".utf8))
        let socket = try #require(opened.withLock { $0 })
        let (pieces, isQueued) = await socket.reactor.perform {
            (socket.compression!.codecs.pieceCount, socket.outgoing != nil)
        }
        // The close frame does not wait for compression.
        let least = (2 << 20) / (32 << 10) + 300_000 / (32 << 10)
        #expect(closes ? pieces == 0 : pieces >= least, "\(pieces) pieces")
        #expect(!isQueued)
        if !closes { client.close() }
        #expect(await messages.next() == nil)
        var iterator = works.makeAsyncIterator()
        let work = try #require(await iterator.next())
        #expect(work.pieces == 0, "the step of the handler compresses no piece")
        #expect(work.isQueued)
        #expect(!work.isWritable, "waiting bytes count as unsent output")
    }

    @Test(
        "the pieces of shared bytes are compressed once for all connections with the same window", arguments: [15, 9])
    func shared(windowBits: Int) async throws {
        let large = Self.sample(1 << 20)
        let shared = large.withUnsafeBytes { SharedBytes($0) }
        let sockets = Mutex<[WebSocket]>([])
        let server = try server { socket in
            sockets.withLock { $0.append(socket) }
            socket.sendShared(.text, headCount: 5, head: { $0.append("head:") }, shared: shared)
        }
        for _ in 0..<4 {
            var (_, messages) = try await connect(server, windowBits: windowBits)
            #expect(await messages.next() == Array("head:".utf8) + large)
        }
        var counts: [ObjectIdentifier: Int] = [:]
        for socket in sockets.withLock({ $0 }) {
            let count = await socket.reactor.perform { socket.compression!.codecs.pieceCount }
            counts[ObjectIdentifier(socket.compression!.codecs)] = count
        }
        #expect(counts.values.reduce(0, +) == (1 << 20) / (32 << 10), "\(counts)")
    }

    @Test("a large message is one compressed frame, and small on the wire")
    func oneFrame() throws {
        let text = Array(String(repeating: "{\"title\":\"Milk\"},", count: 100_000).utf8)
        let shared = text.withUnsafeBytes { SharedBytes($0) }
        let server = try server {
            $0.sendShared(.text, headCount: 5, head: { $0.append("head:") }, shared: shared)
            $0.ping()
        }
        let peer = try RawPeer(port: server.address.port)
        try peer.send(RawPeer.upgrade("/", "Sec-WebSocket-Extensions: permessage-deflate\r\n"))
        _ = try peer.receiveHead()
        let head = try peer.receive(2)
        #expect(head[0] == 0xC1)
        let length = try peer.receive(head[1] == 126 ? 2 : 8).reduce(0) { $0 << 8 | Int($1) }
        #expect(length < text.count / 20)
        _ = try peer.receive(length)
        #expect(try peer.receiveFrame().opcode == 9, "a ping follows earlier messages")
    }

    @Test("a reactor compresses few bytes in place in one step, whatever the number of messages")
    func inPlace() async throws {
        let message = Self.sample(20_000)
        let (works, reported) = AsyncStream.makeStream(of: Work.self)
        let server = try server { socket in
            for _ in 0..<20 { socket.send(binary: message) }
            reported.yield(Work(isQueued: socket.outgoing != nil))
        }
        var (_, messages) = try await connect(server)
        for _ in 0..<20 { #expect(await messages.next() == message) }
        var iterator = works.makeAsyncIterator()
        #expect(await iterator.next()?.isQueued == true)
        // Without a large message each step sends at once.
        let codecs = CompressionCodecs()
        #expect(codecs.takeRoom(for: 40 << 10, in: 1))
        #expect(!codecs.takeRoom(for: 40 << 10, in: 1))
        #expect(codecs.takeRoom(for: 40 << 10, in: 2))
    }

    @Test("more waiting bytes than the limit are sent uncompressed")
    func overflow() async throws {
        let large = Self.sample(1 << 20)
        let shared = large.withUnsafeBytes { SharedBytes($0) }
        let server = try server { socket in
            for _ in 0..<20 { socket.sendShared(.text, headCount: 0, head: { _ in }, shared: shared) }
        }
        var (_, messages) = try await connect(server)
        for _ in 0..<20 { #expect(await messages.next()?.count == large.count) }
        #expect(!shared.hasDerived(1 << 8 | 15))
    }

    @Test("a caller does not wait for another one that creates a derived form of shared bytes")
    func derived() {
        let shared = [1, 2, 3].withUnsafeBytes { SharedBytes($0) }
        let made = shared.derived(1) { bytes in
            // As another reactor would, in the middle of a long computation.
            let other = shared.derived(1) { _ in SharedBytes(bytes) }
            #expect(shared.derived(1) { _ in SharedBytes(bytes) } === other)
            return SharedBytes(bytes)
        }
        #expect(shared.derived(1) { _ in made } === made)
    }
}
