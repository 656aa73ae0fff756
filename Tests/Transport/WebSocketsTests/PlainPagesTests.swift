import Dispatch
import Networking
import Synchronization
import TestSupport
import Testing

@testable import Bytes
import Transports
@testable import WebSockets

/// Pages over real sockets: one request after the other, responses larger than their buffer, and peers that read slowly or request much.
@Suite("Pages beside WebSockets", .dedicatedThreads, .timeLimit(.minutes(5)))
struct PlainPagesTests {
    /// `/small`, `/large` from memory, `/file` in pieces read elsewhere, `/short` that ends too early.
    private struct Site: Sendable {
        static let large = {
            // A prime length, so that it is no multiple of a piece.
            var bytes = (0..<4_093).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 4) }
            while bytes.count < 3_000_000 { bytes += bytes }
            return Array(bytes.prefix(3_000_000))
        }()
        let pieces = Reads()
        /// Blocks the single piece of `/gated` and of `/stuck`.
        let gate = DispatchSemaphore(value: 0)
        let other = DispatchSemaphore(value: 0)

        func answer(_ request: PlainRequest) -> PlainResponse? {
            let ok = HTTPResponse(status: 200, headers: ["Content-Type": "text/plain"])
            switch request.head.path {
            case "/small": return .page(StreamedResponse(ok, body: Array("small\n".utf8)))
            case "/large": return .page(StreamedResponse(ok, body: Self.large))
            case "/file":
                let pieces = pieces
                return .blocking {
                    StreamedResponse(
                        ok,
                        remainingBody: StreamedResponse.RemainingBody(count: Self.large.count, blocks: true) {
                            offset, count in
                            pieces.note(count)
                            return Array(Self.large[offset..<min(offset + count, Self.large.count)])
                        })
                }
            case "/gated", "/stuck":
                let (pieces, gate) = (pieces, request.head.path == "/gated" ? gate : other)
                return .page(
                    StreamedResponse(
                        ok,
                        remainingBody: StreamedResponse.RemainingBody(count: 5, blocks: true) { _, count in
                            pieces.note(count)
                            gate.wait()
                            return Array("late\n".utf8)
                        }))
            case "/short":
                return .blocking {
                    StreamedResponse(
                        ok, remainingBody: StreamedResponse.RemainingBody(count: 100, blocks: true) { _, _ in nil })
                }
            case "/healthz": return .last(HTTPResponse(status: 200, text: "ok"))
            default: return nil
            }
        }
    }

    private final class Reads: Sendable {
        private let sizes = Mutex<[Int]>([])
        func note(_ size: Int) { sizes.withLock { $0.append(size) } }
        var count: Int { sizes.withLock { $0.count } }
        var largest: Int { sizes.withLock { $0.max() ?? 0 } }
    }

    private static func server(
        _ limits: WebSocketLimits = WebSocketLimits(), memory: MemoryBudget? = nil, _ site: Site = Site(),
        on reactors: ReactorGroup? = nil
    ) throws -> WebSocketServer {
        // Not created on the reactor.
        _ = Site.large
        return try WebSocketServer(
            port: 0, reactors: reactors ?? .servers(count: 1), limits: limits, memory: memory, plain: site.answer,
            accept: { _ in .accept(EchoHandler()) })
    }

    private static func get(_ path: String, _ more: String = "", method: String = "GET") -> [UInt8] {
        Array("\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n\(more)\r\n".utf8)
    }

    private static func receive(_ peer: RawPeer, isHead: Bool = false) throws -> (head: String, body: [UInt8]) {
        let head = try peer.receiveHead()
        let length = head.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }
            .flatMap { Int($0.dropFirst("Content-Length: ".count)) }
        return (head, isHead ? [] : try peer.receive(length ?? 0))
    }

    @Test("a connection is reused for the next request, and for a WebSocket")
    func keepAlive() throws {
        let server = try Self.server()
        let peer = try RawPeer(port: server.address.port)
        for path in ["/small", "/large", "/file", "/small"] {
            try peer.send(Self.get(path))
            let (head, body) = try Self.receive(peer)
            #expect(head.hasPrefix("HTTP/1.1 200 OK\r\n") && !head.contains("Connection: close"))
            #expect(body == (path == "/small" ? Array("small\n".utf8) : Site.large))
        }
        try peer.send(Self.get("/large", method: "HEAD") + Self.get("/small"))
        #expect(try Self.receive(peer, isHead: true).head.contains("\r\nContent-Length: 3000000\r\n"))
        #expect(try Self.receive(peer).body == Array("small\n".utf8))
        try peer.send(RawPeer.upgrade() + text("after a page"))
        #expect(try peer.receiveHead().hasPrefix("HTTP/1.1 101 "))
        #expect(try peer.receiveFrame().payload == Array("after a page".utf8))
        try peer.send(text(String(repeating: "x", count: 200_000)))
        #expect(try peer.receiveFrame().payload.count == 200_000)
    }

    @Test("pipelined requests are answered in order, however the network splits them", arguments: [1, 50, 1 << 20])
    func pipeline(size: Int) throws {
        let server = try Self.server()
        let peer = try RawPeer(port: server.address.port)
        let paths = ["/small", "/file", "/small", "/small", "/large", "/small"]
        let bytes = paths.flatMap { Self.get($0) } + RawPeer.upgrade() + text("last")
        // They fit into the sockets, whatever the server reads of them.
        for start in stride(from: 0, to: bytes.count, by: size) {
            try peer.send(Array(bytes[start..<min(start + size, bytes.count)]))
        }
        for path in paths { #expect(try Self.receive(peer).body.count == (path == "/small" ? 6 : 3_000_000)) }
        #expect(try peer.receiveHead().hasPrefix("HTTP/1.1 101 "))
        let frame = try peer.receiveFrame()
        #expect(frame.opcode == 1 && frame.payload == Array("last".utf8), "\(frame.opcode) \(frame.payload)")
    }

    @Test("hundreds of pipelined requests are all answered, and their memory is released")
    func longPipeline() async throws {
        let budget = MemoryBudget(limit: 64 << 20)
        let server = try Self.server(memory: budget)
        let peer = try RawPeer(port: server.address.port)
        try peer.send((0..<900).flatMap { _ in Self.get("/small") })
        for _ in 0..<900 { #expect(try Self.receive(peer).body.count == 6) }
        #expect(await eventually { budget.usedBytes == 0 })
    }

    @Test("a stopping server ends idle connections at once, others after their page or at the time limit")
    func shutdown() async throws {
        let site = Site()
        defer { for gate in [site.gate, site.other] { gate.signal() } }
        let server = try Self.server(WebSocketLimits(), memory: nil, site)
        let port = server.address.port
        let (idle, taking, stuck) = try (RawPeer(port: port), RawPeer(port: port), RawPeer(port: port))
        try idle.send(Self.get("/small"))
        #expect(try Self.receive(idle).body.count == 6)
        try taking.send(Self.get("/gated") + Self.get("/small"))
        try stuck.send(Self.get("/stuck"))
        #expect(await eventually { site.pieces.count == 2 })
        await server.stopAccepting()
        await server.refuseUpgrades()
        #expect(try idle.receiveToEnd() == [])
        let end = Task { await server.endPages(within: .seconds(30)) }
        site.gate.signal()
        #expect(try Self.receive(taking).body == Array("late\n".utf8))
        #expect(try taking.receiveToEnd() == [])
        await server.endPages(within: .milliseconds(1))
        await end.value
        let head = try stuck.receiveHead()
        #expect(head.hasPrefix("HTTP/1.1 200 "))
        #expect(try stuck.receiveToEnd() == [])
        await server.shutdown()
    }

    @Test(
        "the connection ends with the response when the client, the path or a limit requires it",
        arguments: [
            (get("/small", "Connection: close\r\n"), 1), (Array("GET /small HTTP/1.0\r\n\r\n".utf8), 1),
            (get("/healthz"), 1),
            (get("/small"), 3),
        ])
    func lastAnswer(_ request: [UInt8], _ count: Int) throws {
        var limits = WebSocketLimits()
        limits.pages.requestsPerConnection = 3
        let server = try Self.server(limits)
        let peer = try RawPeer(port: server.address.port)
        for number in 1...count {
            try peer.send(request)
            let (head, _) = try Self.receive(peer)
            #expect(head.contains("\r\nConnection: close\r\n") == (number == count))
        }
        #expect(try peer.receiveToEnd() == [])
    }

    @Test("a client that has closed its side gets its complete response")
    func halfClosed() throws {
        let server = try Self.server()
        for path in ["/large", "/file"] {
            let peer = try RawPeer(port: server.address.port)
            try peer.send(Self.get("/small") + Self.get(path))
            peer.endWriting()
            #expect(try Self.receive(peer).body.count == 6)
            #expect(try Self.receive(peer).body == Site.large)
            #expect(try peer.receiveToEnd() == [])
        }
    }

    @Test("silence between requests ends the connection, a slow header section is answered 408")
    func silence() async throws {
        let exclusive = ReactorGroup.acquireExclusive(1)
        defer { exclusive.releaseExclusive() }
        /// Timers start in the turn of earlier work.
        func pass(_ seconds: UInt64) async {
            for reactor in exclusive.reactors {
                await reactor.perform {}
                reactor.advance(by: seconds * 1_000_000_000)
            }
        }
        var limits = WebSocketLimits()
        limits.pages.idleTimeout = .seconds(500)
        limits.handshakeTimeout = .seconds(1_000)
        let server = try Self.server(limits, on: exclusive)
        let silent = try RawPeer(port: server.address.port)
        try silent.send(Self.get("/small"))
        #expect(try Self.receive(silent).body.count == 6)
        await pass(500)
        #expect(try silent.receiveToEnd() == [])
        await server.shutdown()
        limits.pages.idleTimeout = .seconds(5_000)
        let patient = try Self.server(limits, on: exclusive)
        let dribbling = try RawPeer(port: patient.address.port)
        try dribbling.send(Self.get("/small") + Array("GET /sm".utf8))
        #expect(try Self.receive(dribbling).body.count == 6)
        await pass(1_000)
        #expect(try dribbling.receiveHead().hasPrefix("HTTP/1.1 408 "))
        await patient.shutdown()
    }

    @Test("a response that is not read costs one piece of memory, and ends with a reset", arguments: [true, false])
    func unread(fromDisk: Bool) async throws {
        var limits = WebSocketLimits()
        limits.pages.transferInterval = .milliseconds(300)
        let budget = MemoryBudget(limit: 64 << 20)
        let pieces = Reads()
        let whole = 1 << 30
        let server = try WebSocketServer(
            port: 0, reactors: .servers(count: 1), limits: limits, memory: budget,
            plain: { _ in
                let rest = StreamedResponse.RemainingBody(count: whole, blocks: fromDisk) { _, count in
                    pieces.note(count)
                    return [UInt8](repeating: 1, count: count)
                }
                return .page(StreamedResponse(HTTPResponse(status: 200), remainingBody: rest))
            },
            accept: { _ in .accept(EchoHandler()) })
        let peer = try RawPeer(port: server.address.port, receiveBuffer: 4096)
        try peer.send(Self.get("/"))
        let table = server.tables[0]
        var most = 0
        #expect(
            await eventually {
                most = max(most, budget.usedBytes)
                // In this order: the connection may have come and gone between two checks, or come between these two.
                guard pieces.count > 0 else { return false }
                return await table.reactor.perform { table.table.count } == 0
            })
        #expect(most <= MemoryAccount.small)
        #expect(await eventually { budget.usedBytes == 0 })
        #expect(throws: RawPeer.Failure.self) { _ = try Self.receive(peer) }
        #expect(pieces.largest <= StreamedResponse.pieceBytes)
        #expect(pieces.count * StreamedResponse.pieceBytes < 32 << 20)
    }

    @Test("a peer that reads slowly, but fast enough, gets the complete response")
    func slowReader() throws {
        var limits = WebSocketLimits()
        limits.pages.transferInterval = .seconds(1)
        limits.pages.minimumBytesPerInterval = 1
        limits.pages.requestsPerConnection = .max
        let server = try Self.server(limits)
        let peer = try RawPeer(port: server.address.port, receiveBuffer: 4096)
        try peer.send(Self.get("/file"))
        _ = try peer.receiveHead()
        // For longer than that, with other work in between.
        let other = try RawPeer(port: server.address.port)
        let start = ContinuousClock.now
        var taken = 0
        while ContinuousClock.now - start < .milliseconds(1_500), taken < 2_500_000 {
            taken += try peer.receive(200).count
            try other.send(Self.get("/small"))
            #expect(try Self.receive(other).body.count == 6)
        }
        #expect(try peer.receive(3_000_000 - taken) == Array(Site.large[taken...]))
    }

    @Test("a page that became shorter ends the connection before its promised length")
    func shorter() throws {
        let server = try Self.server()
        let peer = try RawPeer(port: server.address.port)
        try peer.send(Self.get("/short"))
        #expect(throws: RawPeer.Failure.self) { _ = try Self.receive(peer) }
    }

    @Test("peers that do not read block no others")
    func others() async throws {
        let server = try Self.server()
        var silent: [RawPeer] = []
        for number in 0..<20 {
            let peer = try RawPeer(port: server.address.port, receiveBuffer: 4096)
            try peer.send(Self.get(number % 2 == 0 ? "/file" : "/large"))
            silent.append(peer)
        }
        let peer = try RawPeer(port: server.address.port)
        for _ in 0..<20 {
            try peer.send(Self.get("/file"))
            #expect(try Self.receive(peer).body == Site.large)
        }
        let socket = try RawPeer.upgraded(port: server.address.port)
        try socket.send(text("still there"))
        #expect(try socket.receiveFrame().payload == Array("still there".utf8))
        #expect(silent.count == 20)
    }

    @Test("at the limit of memory or connections pages are answered 503, and health stays available")
    func full() throws {
        let server = try Self.server(memory: MemoryBudget(limit: 0))
        for (path, status) in [("/small", "503"), ("/healthz", "200")] {
            let peer = try RawPeer(port: server.address.port)
            try peer.send(Self.get(path))
            #expect(try Self.receive(peer).head.hasPrefix("HTTP/1.1 \(status) "))
        }
        var limits = WebSocketLimits()
        limits.connections = 1
        let small = try Self.server(limits)
        let first = try RawPeer.upgraded(port: small.address.port)
        let second = try RawPeer(port: small.address.port)
        try second.send(Self.get("/small"))
        #expect(try Self.receive(second).head.hasPrefix("HTTP/1.1 503 "))
        first.endWriting()
    }

    @Test("behind a trusted proxy each request has a separate connection")
    func proxy() throws {
        let server = try WebSocketServer(
            port: 0, memory: nil, proxies: try TrustedProxies(["127.0.0.1"]), plain: Site().answer,
            accept: { _ in .accept(EchoHandler()) })
        let peer = try RawPeer(port: server.address.port)
        try peer.send(Self.get("/small", "X-Forwarded-For: 203.0.113.7\r\n"))
        #expect(try Self.receive(peer).head.contains("\r\nConnection: close\r\n"))
    }
}
