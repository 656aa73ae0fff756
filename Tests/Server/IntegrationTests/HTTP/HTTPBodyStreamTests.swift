import Bytes
import Platform
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting
import WebSockets

/// Routes whose response is sent while it is made, over real sockets.
@Suite(.timeLimit(.minutes(5))) struct HTTPBodyStreamTests {
    private struct Failure: Error {}

    /// The maximum of the buffered memory.
    private final class Peak: Sendable {
        let bytes = Mutex(0)
    }

    /// The numbers 0 to `count` − 1 as lines of at least `size` bytes, then perhaps an error.
    private struct Lines: AsyncSequence, Sendable {
        var count: Int
        var size = 0
        var fails = false
        var willMake: @Sendable (Int) -> Void = { _ in }

        func makeAsyncIterator() -> Iterator { Iterator(lines: self) }

        struct Iterator: AsyncIteratorProtocol {
            let lines: Lines
            var made = 0

            mutating func next() async throws -> [UInt8]? {
                guard made < lines.count else {
                    if lines.fails { throw HTTPBodyStreamTests.Failure() }
                    return nil
                }
                lines.willMake(made)
                defer { made += 1 }
                return Array("\(made)\n".utf8) + [UInt8](repeating: 0x78, count: lines.size)
            }
        }
    }

    private static func withServer(
        _ lines: @escaping @Sendable (TrebuchetServer) -> Lines, limits: ServerLimits = ServerLimits(),
        _ body: (TestServer) async throws -> Void
    ) async throws {
        try await withTestServer(reactors: 2, limits: limits) { server in
            let made = lines(server)
            try server.http { routes in
                routes.get("/lines") { _ in .stream(made, type: "text/plain") }
                routes.get("/other") { _ in .text("ok") }
            }
        } body: { (test: TestServer) in
            try await body(test)
            #expect(await eventually { test.server.context.memory.usedBytes == 0 })
        }
    }

    @Test("chunks arrive in order, and the connection continues; a HEAD has no body, a client of HTTP/1.0 no chunks")
    func chunks() async throws {
        try await Self.withServer { _ in
            Lines(count: 3)
        } _: { test in
            let client = try PageClient(test.address)
            for _ in 0..<2 {
                let reply = try await client.get("/lines")
                #expect(reply.status == 200 && reply.text == "0\n1\n2\n")
                #expect(reply.fields["transfer-encoding"] == "chunked" && reply.fields["content-type"] == "text/plain")
                #expect(reply.fields["x-content-type-options"] == "nosniff" && reply.fields["content-length"] == nil)
            }
            #expect(try await client.get("/lines", method: "HEAD").body.isEmpty)
            // An unread body ends the connection before its rest could be read as a request.
            #expect(try await client.get("/other").text == "ok")
            try client.write("GET /lines HTTP/1.0\r\nHost: localhost\r\n\r\n")
            let old = try await client.head()
            #expect(old.fields["transfer-encoding"] == nil && old.fields["connection"] == "close")
            #expect(await client.rest() == "0\n1\n2\n")
        }
    }

    @Test("pipelined requests wait for the end of a streamed body")
    func pipelined() async throws {
        try await Self.withServer { _ in
            Lines(count: 2)
        } _: { test in
            let client = try PageClient(test.address)
            let request = "GET /lines HTTP/1.1\r\nHost: localhost\r\n\r\n"
            try client.write(request + request + request.replacing("lines", with: "other"))
            for text in ["0\n1\n", "0\n1\n", "ok"] { #expect(try await client.reply().text == text) }
        }
    }

    @Test("a sequence is read as fast as its client reads, with a bounded amount of memory")
    func backpressure() async throws {
        let peak = Peak()
        try await Self.withServer { server in
            Lines(count: 400, size: 60_000) { _ in
                peak.bytes.withLock { $0 = max($0, server.context.memory.usedBytes) }
            }
        } _: { test in
            let client = try PageClient(test.address, receiveBuffer: 4_096)
            let reply = try await client.get("/lines")
            #expect(reply.body.count > 400 * 60_000)
        }
        #expect(peak.bytes.withLock { $0 } < 512 << 10)
    }

    @Test("an error of the sequence, and a chunk over the limit, reset the connection", arguments: [true, false])
    func failure(isError: Bool) async throws {
        var limits = ServerLimits()
        limits.messages.outboundBytes = 1_000
        try await Self.withServer({ _ in Lines(count: 2, size: isError ? 0 : 1_000, fails: isError) }, limits: limits) {
            (test) async throws in
            let client = try PageClient(test.address)
            await #expect(throws: PageClient.ConnectionEnded.self) { _ = try await client.get("/lines") }
            #expect(try await PageClient(test.address).get("/other").text == "ok")
        }
    }

    @Test("a client that disconnects ends the sequence")
    func disconnect() async throws {
        let journal = Journal()
        try await withTestServer(reactors: 2) { server in
            try server.http { routes in
                routes.get("/ticks") { _ in
                    let (ticks, continuation) = AsyncStream<[UInt8]>.makeStream()
                    continuation.onTermination = { _ in journal.record("ended") }
                    continuation.yield(Array("tick".utf8))
                    return .stream(ticks, type: "text/plain")
                }
            }
        } body: { (test: TestServer) in
            let client = try PageClient(test.address)
            try client.ask("/ticks")
            #expect(try await client.head().status == 200)
            #expect(try await client.chunk() == Array("tick".utf8))
            client.disconnect()
            await journal.wait(for: "ended")
        }
    }
}
