import TestSupport
import Testing
import Transports
import Trebuchet
import TrebuchetTesting

/// HTTP calls with an `Idempotency-Key`.
@Suite(.timeLimit(.minutes(5))) struct HTTPIdempotencyTests {
    private static let access = HTTPCallTests.accepting { $0.authenticate = AccessTests.keys }

    private static func headers(_ key: String, _ user: String = "ada") -> [String: String] {
        ["Content-Type": "application/json", "Idempotency-Key": key, "X-API-Key": "\(user)-key"]
    }

    @Test("a call with the key of an earlier one gets its response and does not run again")
    func again() async throws {
        try await HTTPCallTests.withServer(Self.access) { test in
            // Connections are on both reactors.
            for round in 0..<8 {
                let client = try PageClient(test.address)
                #expect(
                    try await client.post("/call/desk/addOnce(_:)", "[5]", Self.headers("one")).text == "5", "\(round)")
                #expect(
                    try await client.post("/call/desk/addOnce(_:)", "[5]", Self.headers("one")).text == "5", "\(round)")
            }
            let client = try PageClient(test.address)
            // Keys of other principals are other keys.
            #expect(try await client.post("/call/desk/addOnce(_:)", "[5]", Self.headers("one", "bob")).text == "10")
            #expect(try await client.post("/call/desk/addOnce(_:)", "[5]", Self.headers("two")).text == "15")
            #expect(try await client.post("/call/desk/addOnce(_:)", "[5]", Self.headers("one")).text == "5")
            let other = try await client.post("/call/desk/addOnce(_:)", "[6]", Self.headers("one"))
            #expect(other.status == 400 && other.text.contains("other arguments"), "\(other.text)")
        }
    }

    @Test("requests with one key that arrive during the call wait for its response")
    func concurrent() async throws {
        let journal = Journal()
        try await HTTPCallTests.withServer(Self.access, journal: journal) { test in
            let clients = try (0..<6).map { _ in try PageClient(test.address) }
            for (number, client) in clients.enumerated() {
                try client.write(PageClient.request("/call/desk/holdOnce(_:)", "[\"a\"]", Self.headers("k")))
                if number == 0 { await journal.wait(for: "a began") }
            }
            // A later call on each connection's reactor has been handled: so have these.
            for _ in 0..<8 {
                _ = try await PageClient(test.address).post("/call/other/caller()", "[]", Self.headers("x"))
            }
            journal.record("a go")
            for client in clients { #expect(try await client.reply().text == "1") }
            #expect(journal.entries == ["a began", "a go", "a went on"])
        }
    }

    @Test("a client that disconnects does not cancel a call with a key, and gets its response later")
    func disconnect() async throws {
        let journal = Journal()
        try await HTTPCallTests.withServer(Self.access, journal: journal) { test in
            let client = try PageClient(test.address)
            try client.write(PageClient.request("/call/other/holdOnce(_:)", "[\"a\"]", Self.headers("k")))
            await journal.wait(for: "a began")
            client.disconnect()
            let next = try PageClient(test.address)
            try next.write(PageClient.request("/call/other/holdOnce(_:)", "[\"a\"]", Self.headers("k")))
            journal.record("a go")
            #expect(try await next.reply().text == "1")
            #expect(journal.entries == ["a began", "a go", "a went on"])
        }
    }

    @Test("the response is kept for the retention time")
    func retention() async throws {
        let clock = TestTime()
        var limits = ServerLimits()
        limits.idempotency.retention = .seconds(3_600)
        try await HTTPCallTests.withServer(Self.access, limits: limits, clock: clock) { test in
            for (seconds, sum) in [(0, "1"), (3_500, "1"), (200, "2"), (3_500, "2")] {
                await clock.advance(by: .seconds(seconds))
                let reply = try await PageClient(test.address).post("/call/desk/addOnce(_:)", "[1]", Self.headers("k"))
                #expect(reply.text == sum, "\(reply.text)")
            }
        }
    }

    @Test(
        "a key that cannot be honoured is refused with the reason, and nothing runs",
        arguments: [
            ("desk/add(_:)", headers("k"), 400, "not marked @Idempotent"),
            ("desk/nothing(_:)", headers("k"), 404, "methodNotFound"),
            ("nobody/addOnce(_:)", headers("k"), 404, "actorNotFound"),
            ("desk/addOnce(_:)", headers(""), 400, "1 to 255"),
            ("desk/addOnce(_:)", headers(String(repeating: "x", count: 256)), 400, "1 to 255"),
            ("desk/addOnce(_:)", headers("\u{e9}"), 400, "1 to 255"),
        ])
    func refused(target: String, headers: [String: String], status: Int, reason: String) async throws {
        try await HTTPCallTests.withServer(Self.access) { test in
            let reply = try await PageClient(test.address).post("/call/\(target)", "[5]", headers)
            #expect(reply.status == status && reply.text.contains(reason), "\(reply.text)")
            let sum = try await PageClient(test.address).post("/call/desk/addOnce(_:)", "[0]", Self.headers("sum"))
            #expect(sum.text == "0")
        }
    }

    @Test("an anonymous caller cannot use a key")
    func anonymous() async throws {
        try await HTTPCallTests.withServer { test in
            let headers = HTTPCallTests.json.merging(["Idempotency-Key": "k"]) { $1 }
            let reply = try await PageClient(test.address).post("/call/desk/addOnce(_:)", "[5]", headers)
            #expect(reply.status == 400 && reply.text.contains("authenticated caller"), "\(reply.text)")
        }
    }

    @Test("a refusal of a call with a key has its own status, and a later request may run")
    func refusal() async throws {
        var limits = ServerLimits()
        limits.calls.rate.perPrincipal = RateLimit(callsPerSecond: 0.001, burst: 1)
        var access = Self.access
        access.authorize = { caller, _, _ in caller?.principal?.id != "bob" }
        try await HTTPCallTests.withServer(access, limits: limits) { test in
            for (user, status) in [("bob", 403), ("ada", 200), ("ada", 429)] {
                let reply = try await PageClient(test.address).post(
                    "/call/desk/addOnce(_:)", "[5]", Self.headers("k\(status)", user))
                #expect(reply.status == status, "\(reply.text)")
            }
        }
    }

    @Test("the response of a persisted actor is found after a restart")
    func restart() async throws {
        try await withTestServer(reactors: 2, access: Self.access, store: MemoryStore()) { server in
            await server.expose(HTTPTestCounter(actorSystem: server.actorSystem), as: "counter")
        } body: { test in
            func add(_ key: String, _ amount: Int = 2) async throws -> String {
                try await PageClient(test.address).post("/call/counter/addOnce(_:)", "[\(amount)]", Self.headers(key))
                    .text
            }
            #expect(try await add("a") == "2")
            #expect(try await add("a") == "2")
            await test.kill()
            try await test.restart()
            #expect(try await add("a") == "2")
            #expect(try await add("b") == "4")
            #expect(try await add("b", 3).contains("other arguments"))
            #expect(
                try await PageClient(test.address).post(
                    "/call/counter/value()", "",
                    Self.headers("x").filter {
                        $0.key != "Idempotency-Key"
                    }
                ).text == "4")
        }
    }

    @Test("a WebSocket cannot use the session of a key")
    func otherClients() async throws {
        try await HTTPCallTests.withServer(Self.access) { test in
            #expect(
                try await PageClient(test.address).post("/call/desk/addOnce(_:)", "[5]", Self.headers("k")).text == "5")
            let peer = try await RawPeer.connect(test.address, headers: ["X-API-Key": "ada-key"])
            for kind in ["repeat", "invocation"] {
                peer.send(
                    #"{"type":"\#(kind)","payload":{"callID":"1","actorID":"desk","targetIdentifier":"addOnce(_:)","#
                        + #""arguments":[5],"session":"0.1.1"}}"#)
                let text = await peer.nextText() ?? ""
                #expect(text.contains("'session' is not known"), "\(text)")
            }
            peer.close()
        }
    }
}
