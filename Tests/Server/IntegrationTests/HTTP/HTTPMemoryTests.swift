import Bytes
import Platform
import TestSupport
import Testing
import Transports
import Trebuchet
import TrebuchetTesting

/// The memory of HTTP requests counts for their principals, over real sockets.
@Suite(.timeLimit(.minutes(5))) struct HTTPMemoryTests {
    private static let size = 100_000
    private static let text = String(repeating: "x", count: size)

    /// Runs a test with room for one body of a principal, and with a route that answers its size.
    private static func withServer(
        _ journal: Journal = Journal(), clock: TestTime? = nil, _ body: (TestServer) async throws -> Void
    ) async throws {
        var limits = ServerLimits()
        limits.memory.perPrincipal = 150_000
        var access = AccessPolicy(authenticate: AccessTests.keys)
        access.acceptsHTTPCalls = true
        try await withTestServer(reactors: 2, limits: limits, access: access, clock: clock) { server in
            await server.expose(HTTPTestActor(actorSystem: server.actorSystem), as: "desk")
            try server.http { routes in
                routes.post("/size", authenticated: true) { .text("\($0.body.count)") }
                routes.post("/anyone") { .text("\($0.body.count)") }
                routes.post("/wait", authenticated: true, timeout: .seconds(3_600)) { request in
                    journal.record("began")
                    // A task that the cancellation does not reach.
                    await Task { await journal.wait(for: "go") }.value
                    return .text("\(request.body.count)")
                }
            }
        } body: { (test: TestServer) in
            try await body(test)
            #expect(await eventually { test.server.context.memory.usedBytes == 0 })
        }
    }

    private static func key(_ name: String) -> [String: String] {
        ["X-API-Key": "\(name)-key", "Content-Type": "application/json"]
    }

    private static func status(
        _ path: String, of name: String, _ test: TestServer, body: String = text
    ) async throws -> Int {
        try await PageClient(test.address).post(path, body, key(name)).status
    }

    /// Sends a request without its last ten bytes, which it returns. The body follows when the server has admitted the request, since
    /// what arrives before is in doubt between two requests of one principal.
    private static func begin(
        _ path: String, _ body: String, of name: String, _ client: PageClient
    ) async throws -> String {
        let request = PageClient.request(path, body, key(name).merging(["Expect": "100-continue"]) { $1 })
        try client.write(String(request.dropLast(body.count)))
        #expect(try await client.head().status == 100)
        try client.write(String(body.dropLast(10)))
        return String(body.suffix(10))
    }

    @Test(
        "a body counts for its principal while it arrives",
        arguments: ["/size", "/call/desk/join(first:second:)"])
    func receiving(path: String) async throws {
        let call = "[\"\(Self.text)\",[]]"
        try await Self.withServer { (test) async throws in
            let first = try PageClient(test.address)
            let rest = try await Self.begin(path, call, of: "ada", first)
            #expect(await eventually { test.server.context.memory.usedBytes >= Self.size - 10 })
            let refused = try await PageClient(test.address).post(path, call, Self.key("ada"))
            #expect(
                refused.status == 503 && refused.text.contains("memory.perPrincipal"), "\(refused.text.prefix(300))")
            #expect(refused.fields["connection"] == "close")
            #expect(try await Self.status(path, of: "bob", test, body: call) == 200)
            // What arrived of the refused request counts until its connection has ended.
            #expect(await eventually { test.server.context.memory.usedBytes < Self.size + 1_000 })
            try first.write(rest)
            #expect(try await first.reply().status == 200)
            let isFree = try await eventually { try await Self.status(path, of: "ada", test, body: call) == 200 }
            #expect(isFree)
        }
    }

    @Test("requests of one connection count for their own principals, or for none")
    func principals() async throws {
        try await Self.withServer { (test) async throws in
            let client = try PageClient(test.address)
            #expect(try await client.post("/size", Self.text, Self.key("ada")).text == "\(Self.size)")
            for path in ["/size", "/anyone"] {
                let rest = try await Self.begin(path, Self.text, of: "bob", client)
                #expect(await eventually { test.server.context.memory.usedBytes >= Self.size - 10 })
                #expect(try await Self.status("/size", of: "ada", test) == 200)
                #expect(try await Self.status("/size", of: "bob", test) == (path == "/size" ? 503 : 200))
                // As above: of the refused request.
                #expect(await eventually { test.server.context.memory.usedBytes < Self.size + 1_000 })
                try client.write(rest)
                #expect(try await client.reply().text == "\(Self.size)")
            }
        }
    }

    @Test(
        "the body of a handler that outlives its request counts until the handler has ended", arguments: [true, false])
    func outliving(isTimeout: Bool) async throws {
        let (journal, clock) = (Journal(), TestTime())
        try await Self.withServer(journal, clock: clock) { (test) async throws in
            let client = try PageClient(test.address)
            try client.write(PageClient.request("/wait", Self.text, Self.key("ada")))
            await journal.wait(for: "began")
            if isTimeout {
                await clock.advance(by: .seconds(3_601))
                let reply = try await client.reply()
                #expect(reply.status == 504 && reply.fields["connection"] == "close")
                #expect(await client.ends())
            } else {
                client.disconnect()
            }
            // Nothing else is left of the connection.
            #expect(await eventually { test.server.context.memory.usedBytes == Self.size })
            #expect(try await Self.status("/size", of: "ada", test) == 503)
            #expect(try await Self.status("/size", of: "bob", test) == 200)
            journal.record("go")
            let isFree = try await eventually { try await Self.status("/size", of: "ada", test) == 200 }
            #expect(isFree)
        }
    }
}
