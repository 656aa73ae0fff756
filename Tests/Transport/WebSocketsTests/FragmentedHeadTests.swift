import Glibc
import Networking
import TestSupport
import Testing

import Transports
@testable import WebSockets

/// Input after a header that arrives in pieces is still valid when the memory of the pieces is freed.
@Suite("Headers in pieces, and the following input", .serialized, .dedicatedThreads, .timeLimit(.minutes(5)))
struct FragmentedHeadTests {
    /// More than the allocator leaves unchanged when it is freed.
    private static let padding = "X-Padding: " + String(repeating: "p", count: 3_000) + "\r\n"
    private static let behind = String(repeating: "abcdefgh", count: 250)

    /// `mallopt` of malloc.h.
    private typealias Option = @convention(c) (Int32, Int32) -> Int32

    /// Freed memory is overwritten with this byte; 0 leaves it unchanged (`M_PERTURB`).
    private static func overwriteFreed(with byte: Int32) throws {
        // The function's type in C.
        let option = unsafeBitCast(try #require(dlsym(nil, "mallopt")), to: Option.self)
        #expect(option(-6, byte) == 1)
    }

    init() throws { try Self.overwriteFreed(with: 0x5A) }

    /// Sends a request in two pieces, the second one with the following input.
    private static func send(
        _ head: [UInt8], _ behind: [UInt8], to peer: RawPeer, of server: WebSocketServer
    ) async throws {
        let table = try #require(server.tables.first)
        try peer.send(Array(head.prefix(2_000)))
        #expect(await eventually { await table.reactor.perform { table.table.count } == 1 })
        // Another turn of its reactor: earlier bytes have been read.
        for _ in 0..<2 { await table.reactor.perform {} }
        try peer.send(Array(head.dropFirst(2_000)) + behind)
    }

    @Test("another request after a split header is answered", arguments: 0..<5)
    func pages(_: Int) async throws {
        let server = try WebSocketServer(
            port: 0, reactors: .servers(count: 1), memory: nil,
            plain: { request in
                let answer = HTTPResponse(status: 200, headers: ["Content-Type": "text/plain"])
                return .page(StreamedResponse(answer, body: Array(request.head.path.utf8)))
            },
            accept: { _ in .accept(EchoHandler()) })
        let peer = try RawPeer(port: server.address.port)
        let head = Array("GET /first HTTP/1.1\r\nHost: localhost\r\n\(Self.padding)\r\n".utf8)
        let next = Array("GET /\(Self.behind) HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        try await Self.send(head, next, to: peer, of: server)
        for path in ["/first", "/" + Self.behind] {
            let head = try peer.receiveHead()
            #expect(head.hasPrefix("HTTP/1.1 200 "))
            #expect(try peer.receive(path.utf8.count) == Array(path.utf8))
        }
        await server.shutdown()
        try Self.overwriteFreed(with: 0)
    }

    @Test("frames after a split header are handled, when admission takes a while", arguments: 0..<5)
    func frames(_: Int) async throws {
        let server = try WebSocketServer(
            port: 0, reactors: .servers(count: 1), admit: { _ in .admitted(nil) },
            accept: { _ in .accept(EchoHandler()) })
        let peer = try RawPeer(port: server.address.port)
        try await Self.send(RawPeer.upgrade("/", Self.padding), text(Self.behind), to: peer, of: server)
        #expect(try peer.receiveHead().hasPrefix("HTTP/1.1 101 "))
        #expect(try peer.receiveFrame().payload == Array(Self.behind.utf8))
        await server.shutdown()
        try Self.overwriteFreed(with: 0)
    }
}
