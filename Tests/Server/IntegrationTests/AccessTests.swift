import Networking
import Platform
import Synchronization
import TestSupport
import Testing
import Transports
import Trebuchet
import TrebuchetTesting
import WebSockets

/// Reports its caller, from sync and async methods, on any reactor.
@Trebuchet
distributed actor CallerReportingActor {
    @StreamedState var count: Int = 0

    distributed func caller() -> String? { Caller.current?.principal?.id }
    distributed func callerLater() async -> String? {
        await Task.yield()
        return Caller.current?.principal?.id
    }
    distributed func roles() -> [String] { Caller.current?.principal?.roles.sorted() ?? [] }
    distributed func bump() -> Int {
        count += 1
        return count
    }
}

@Suite(.timeLimit(.minutes(5))) struct AccessTests {
    static let keys = AccessPolicy.apiKeys([
        "ada-key": Principal(id: "ada", roles: ["editor"]), "bob-key": Principal(id: "bob"),
    ])

    func withServer(
        _ access: AccessPolicy, limits: ServerLimits = ServerLimits(),
        _ prepare: (TrebuchetServer) -> Void = { _ in },
        _ body: (SocketAddress) async throws -> Void
    ) async throws {
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2, limits: limits, access: access)
        // Two actors, so that one is on another reactor than the connection.
        await server.expose(CallerReportingActor(actorSystem: server.actorSystem), as: "one")
        await server.expose(CallerReportingActor(actorSystem: server.actorSystem), as: "two")
        prepare(server)
        let address = try await server.start()
        do {
            try await body(address)
        } catch {
            await server.shutdown(drain: .zero)
            throw error
        }
        await server.shutdown(drain: .zero)
    }

    func connect(_ address: SocketAddress, token: String?) async throws -> TrebuchetClient {
        var options = TrebuchetClient.Options()
        if let token { options.token = { token } }
        let client = TrebuchetClient(
            transport: .webSocket(host: "127.0.0.1", port: address.port), options: options)
        try await client.connect()
        return client
    }

    /// The status of the response to an upgrade with these headers; nil when it was accepted.
    private func refusal(_ address: SocketAddress, _ headers: HTTPHeaders, subprotocols: [String] = []) async -> Int? {
        do {
            let socket = try await WebSocketClient.connect(
                to: "ws://127.0.0.1:\(address.port)/", subprotocols: subprotocols, headers: headers
            ) { _ in UnresponsiveServer() }
            socket.abort()
            return nil
        } catch {
            // With the surrounding words: an address may contain the same digits.
            let text = "\(error)"
            return ([401, 403, 503] as [Int]).first { text.contains("responded with \($0) instead of 101") } ?? 0
        }
    }

    @Test("a rejected client receives the reason", arguments: [nil, "ada", "eve-key"])
    func reason(token: String?) async throws {
        try await withServer(AccessPolicy(authenticate: Self.keys)) { address in
            let error = await #expect(throws: TransportError.self) { _ = try await connect(address, token: token) }
            #expect(error?.code == .handshake)
            let reason = token == nil ? "an API key is required" : "unknown API key"
            #expect(
                error?.message.hasSuffix("responded with 401 instead of 101: \(reason)") == true,
                "\(error?.message ?? "")")
        }
    }

    @Test(
        "only the first line of a reason is sent, its printable characters, up to 200 bytes",
        arguments: [
            ("no\u{1B}[31m\nmore", "no[31m"), (String(repeating: "é", count: 300), String(repeating: "é", count: 100)),
        ])
    func longReason(reason: String, shown: String) async throws {
        let policy = AccessPolicy(authenticate: { _ in throw AccessDenied.forbidden(reason) })
        try await withServer(policy) { address in
            let error = await #expect(throws: TransportError.self) { _ = try await connect(address, token: nil) }
            #expect(
                error?.message.hasSuffix("responded with 403 instead of 101: \(shown)") == true,
                "\(error?.message ?? "")")
        }
    }

    @Test("an actor sees its caller in place, in a task and on another reactor, and callers are not mixed up")
    func callers() async throws {
        try await withServer(AccessPolicy(authenticate: Self.keys)) { address in
            let ada = try await connect(address, token: "ada-key")
            let bob = try await connect(address, token: "bob-key")
            for name in ["one", "two"] {
                for (client, id) in [(ada, "ada"), (bob, "bob")] {
                    let mirror = try client.resolve(CallerReportingActor.self, id: name)
                    #expect(try await mirror.caller() == id)
                    #expect(try await mirror.callerLater() == id)
                }
            }
            #expect(try await ada.resolve(CallerReportingActor.self, id: "one").roles() == ["editor"])
            await ada.close()
            await bob.close()
        }
    }

    @Test("a server without authentication has no callers")
    func open() async throws {
        try await withServer(.open) { address in
            let client = try await connect(address, token: "whatever")
            #expect(try await client.resolve(CallerReportingActor.self, id: "one").caller() == nil)
            await client.close()
        }
    }

    @Test("a client without a key gets 401 with either credential form; a failing hook gives 503")
    func credentials() async throws {
        try await withServer(AccessPolicy(authenticate: Self.keys)) { address in
            #expect(await refusal(address, [:]) == 401)
            #expect(await refusal(address, ["X-API-Key": "eve-key"]) == 401)
            #expect(await refusal(address, ["Authorization": "Basic ada-key"]) == 401)
            #expect(await refusal(address, ["X-API-Key": "ada-key"]) == nil)
            #expect(await refusal(address, ["Authorization": "bearer ada-key"]) == nil)
            #expect(await refusal(address, [:], subprotocols: ["trebuchet.v3", "bearer.ada-key"]) == nil)
        }
        struct NoDatabase: Error {}
        let failing = AccessPolicy { request in
            if request.cookie("session") == "banned" { throw AccessDenied.forbidden("banned") }
            await Task.yield()
            throw NoDatabase()
        }
        try await withServer(failing) { address in
            #expect(await refusal(address, [:]) == 503)
            #expect(await refusal(address, ["Cookie": "a=b; session=banned"]) == 403)
        }
    }

    @Test(
        "a TrebuchetError has the status of its code, any other error is logged and not disclosed",
        arguments: TestLink.allCases)
    func hookErrors(link: TestLink) async throws {
        struct NoDatabase: Error { let password = "pa55word" }
        let journal = Journal()
        let access = AccessPolicy { request in
            switch request.bearerToken {
            case "who": throw TrebuchetError(.unauthenticated, "sign in first")
            case "banned": throw TrebuchetError(.unauthorized, "banned for a week")
            case "busy": throw TrebuchetError(.rateLimited, "too many", retryAfter: .milliseconds(2_500))
            case "away": throw TrebuchetError(.unavailable, "the directory is away")
            default: throw NoDatabase()
            }
        }
        let server = TrebuchetServer(
            transport: .webSocket(port: 0), access: access, log: ConsoleLog { journal.record($0) })
        let address = try await server.start()
        let expected = [
            ("who", 401, "sign in first"), ("banned", 403, "banned for a week"), ("busy", 503, "too many"),
            ("away", 503, "the directory is away"), ("x", 503, "authentication is temporarily unavailable"),
        ]
        for (token, status, reason) in expected {
            var options = TrebuchetClient.Options()
            options.token = { token }
            let client = TrebuchetClient(
                transport: link == .local ? .local(server) : .webSocket(port: address.port), options: options)
            let error = await #expect(throws: TransportError.self) { try await client.connect() }
            #expect((error?.cause as? UnexpectedHTTPStatus)?.status == status, "\(token): \(error?.message ?? "")")
            #expect(error?.message.contains(reason) == true, "\(token): \(error?.message ?? "")")
            #expect(error?.message.contains("pa55word") == false)
        }
        // On a busy machine the log also reports blocked reactors.
        let lines = journal.entries.filter { !$0.contains("reactor") }
        let failureLines = lines.filter { !$0.hasPrefix("refused ") }
        #expect(failureLines.count == 1)
        #expect(!lines.contains { $0.hasPrefix("refused ") && $0.contains("pa55word") })
        if link == .webSocket { #expect(lines.contains { $0.hasSuffix(" with 401: sign in first") }) }
        #expect(failureLines.first?.contains("NoDatabase") == true)
        #expect(failureLines.first?.contains("pa55word") == true)
        await server.shutdown(drain: .zero)
    }

    @Test("a rejection with a delay has Retry-After")
    func retryAfter() async throws {
        let access = AccessPolicy { _ in
            throw TrebuchetError(.rateLimited, "too many", retryAfter: .milliseconds(2_500))
        }
        try await withServer(access) { address in
            let socket = PlainSocket(address)
            socket.send(Array(PlainSocket.upgrade.utf8))
            let head = await onThread { socket.head() }
            socket.close(reset: false)
            #expect(head.hasPrefix("HTTP/1.1 503"), "\(head)")
            #expect(head.contains("Retry-After: 3\r\n"), "\(head)")
        }
    }

    @Test("calls and streams are authorized individually")
    func authorization() async throws {
        var access = AccessPolicy { request in
            request.headers["X-API-Key"] == nil && request.bearerToken == nil ? nil : try await Self.keys(request)
        }
        access.authorize = { caller, actorID, target in
            target == "caller()" || actorID == "one" && caller?.principal?.roles.contains("editor") == true
        }
        try await withServer(access) { address in
            let ada = try await connect(address, token: "ada-key")
            let bob = try await connect(address, token: "bob-key")
            let nobody = try await connect(address, token: nil)
            #expect(try await ada.resolve(CallerReportingActor.self, id: "one").bump() == 1)
            #expect(try await nobody.resolve(CallerReportingActor.self, id: "two").caller() == nil)
            for (client, id, code) in [
                (ada, "two", TrebuchetError.Code.unauthorized), (bob, "one", .unauthorized),
                (nobody, "one", .unauthenticated),
            ] {
                let mirror = try client.resolve(CallerReportingActor.self, id: id)
                let error = await #expect(throws: TrebuchetError.self) { try await mirror.bump() }
                #expect(error?.code == code)
                let stream = await mirror.observeCount()
                for await _ in stream { Issue.record("a value arrived without authorization") }
                guard case .failed(let reason) = stream.outcome else {
                    Issue.record("the stream ended without an error")
                    continue
                }
                #expect(reason.code == code)
            }
            let counts = try await ada.resolve(CallerReportingActor.self, id: "one").observeCount()
            for await count in counts {
                #expect(count == 1)
                break
            }
            for client in [ada, bob, nobody] { await client.close() }
        }
    }

    @Test("calls over a rate fail with rateLimited and the wait, by connection, method and principal")
    func rates() async throws {
        var limits = ServerLimits()
        limits.calls.rate.perConnection = RateLimit(callsPerSecond: 0.001, burst: 5)
        limits.calls.rate.perMethod[RatedMethod("bump()", of: CallerReportingActor.self)] = RateLimit(
            callsPerSecond: 0.001, burst: 2)
        limits.calls.rate.perPrincipal = RateLimit(callsPerSecond: 0.001, burst: 7)
        try await withServer(AccessPolicy(authenticate: Self.keys), limits: limits) { address in
            func refused(_ call: () async throws -> Void) async -> String? {
                do {
                    try await call()
                    return nil
                } catch let error as TrebuchetError where error.code == .rateLimited {
                    return error.message
                } catch {
                    return "another error: \(error)"
                }
            }
            let first = try await connect(address, token: "ada-key")
            let mirror = try first.resolve(CallerReportingActor.self, id: "one")
            for _ in 0..<2 { #expect(try await mirror.bump() > 0) }
            let byMethod = await refused { _ = try await mirror.bump() }
            let error = await #expect(throws: TrebuchetError.self) { _ = try await mirror.bump() }
            let retryAfter = try #require(error?.retryAfter)
            #expect((.seconds(900)...(.seconds(1_000))).contains(retryAfter), "one token is added every 1,000 s")
            #expect(error?.message.hasSuffix(" in \(Int((retryAfter / .milliseconds(1)).rounded())) ms") == true)
            #expect(
                byMethod?.hasPrefix("too many calls of bump() (ServerLimits.calls.rate.perMethod); try again in ")
                    == true)
            for _ in 0..<3 { #expect(try await mirror.caller() == "ada") }
            let byConnection = await refused { _ = try await mirror.caller() }
            #expect(byConnection?.hasPrefix("too many calls of this connection") == true)
            // Five of the seven are used up.
            let second = try await connect(address, token: "ada-key")
            let again = try second.resolve(CallerReportingActor.self, id: "two")
            for _ in 0..<2 { #expect(try await again.caller() == "ada") }
            let byPrincipal = await refused { _ = try await again.caller() }
            #expect(byPrincipal?.hasPrefix("too many calls of 'ada'") == true)
            let other = try await connect(address, token: "bob-key")
            #expect(try await other.resolve(CallerReportingActor.self, id: "one").caller() == "bob")
            for client in [first, second, other] { await client.close() }
        }
    }

    @Test("a browser is admitted from the allowed origins, and others get 403")
    func origins() async throws {
        try await withServer(AccessPolicy(origins: ["https://app.example"])) { address in
            #expect(await refusal(address, ["Origin": "https://app.example"]) == nil)
            #expect(await refusal(address, ["Origin": "https://evil.example"]) == 403)
            #expect(await refusal(address, ["Origin": "null"]) == 403)
            #expect(await refusal(address, [:]) == nil)
        }
    }

    @Test("without a list a browser's page must be same-origin, at every server and before any other check")
    func ownPages() async throws {
        let asked = Atomic<Int>(0)
        let asking = AccessPolicy { _ in
            asked.add(1, ordering: .relaxed)
            throw AccessDenied.unauthenticated("no")
        }
        for access in [AccessPolicy.open, asking] {
            let welcome = access.authenticate == nil ? 101 : 401
            try await withServer(access) { address in
                let port = address.port
                for (host, origin, status) in [
                    ("localhost:\(port)", "http://localhost:\(port)", welcome),
                    ("127.0.0.1:\(port)", "https://127.0.0.1:\(port)", welcome),
                    ("LocalHost:\(port)", "http://localHost:\(port)", welcome),
                    ("localhost:\(port)", nil, welcome), ("backend", nil, welcome),
                    ("localhost:\(port)", "http://localhost:\(port ^ 1)", 403),
                    ("localhost:\(port)", "http://localhost:\(port).evil.com", 403),
                    ("localhost:\(port)", "null", 403), ("evil.com:\(port)", "http://evil.com:\(port)", 403),
                    ("localhost:\(port)", "http://localhost:\(port)\r\nOrigin: http://localhost:\(port)", 403),
                ] as [(String, String?, Int)] {
                    let before = asked.load(ordering: .relaxed)
                    let origin = origin.map { "Origin: \($0)\r\n" } ?? ""
                    for offer in ["", "Sec-WebSocket-Protocol: trebuchet.v3, bearer.k3y\r\n"] {
                        let socket = PlainSocket(address)
                        socket.send(
                            Array(
                                """
                                GET / HTTP/1.1\r\nHost: \(host)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                                \(offer)\(origin)\r\n
                                """.utf8))
                        #expect(await onThread { socket.receives(status: status) }, "\(host) \(origin)")
                        socket.close(reset: false)
                    }
                    if status == 403 {
                        #expect(asked.load(ordering: .relaxed) == before, "the authentication hook is not called")
                    }
                }
                // A health check may use any host name.
                for host in ["localhost:\(port)", "evil.com"] {
                    let socket = PlainSocket(address)
                    socket.send(Array("GET /healthz HTTP/1.1\r\nHost: \(host)\r\n\r\n".utf8))
                    #expect(await onThread { socket.receives(status: 200) }, "\(host)")
                    socket.close(reset: false)
                }
            }
        }
    }
}

private final class UnresponsiveServer: WebSocketHandler {
    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode) {}
}
