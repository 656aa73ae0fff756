import Bytes
import Foundation
import Platform
import TestSupport
import Testing
import Transports
import Trebuchet
import TrebuchetTesting

/// Calls over HTTP beside the WebSocket, over real sockets.
@Suite(.timeLimit(.minutes(5))) struct HTTPCallTests {
    static let json = ["Content-Type": "application/json"]

    static func accepting(_ change: (inout AccessPolicy) -> Void = { _ in }) -> AccessPolicy {
        var access = AccessPolicy()
        access.acceptsHTTPCalls = true
        change(&access)
        return access
    }

    /// Runs a test with actors on both reactors.
    static func withServer(
        _ access: AccessPolicy = accepting(), limits: ServerLimits = ServerLimits(), journal: Journal = Journal(),
        showsErrorText: Bool = false, clock: TestTime? = nil, _ body: (TestServer) async throws -> Void
    ) async throws {
        try await withTestServer(
            reactors: 2, limits: limits, access: access, showsErrorText: showsErrorText, clock: clock
        ) { server in
            let system = server.actorSystem
            for name in ["desk", "other"] {
                await server.expose(HTTPTestActor(journal: journal, actorSystem: system), as: name)
            }
            server.expose(HTTPTestActor.self, as: "desks/*") { _ in HTTPTestActor(journal: journal, actorSystem: system)
            }
        } body: { test in
            try await body(test)
        }
    }

    /// The members of a problem document.
    private struct Problem: Decodable {
        var type: String
        var title: String
        var status: Int
        var code: String?
        var detail: String
        var errorType: String?
        var data: HTTPTestActor.Refused?
    }

    private static func problem(_ reply: PageClient.Reply) throws -> Problem {
        #expect(reply.fields["content-type"] == "application/problem+json", "\(reply.text)")
        let problem = try JSONDecoder().decode(Problem.self, from: Data(reply.body))
        #expect(problem.status == reply.status)
        return problem
    }

    // MARK: Responses

    @Test("a result is a 200 with its JSON, no result a 204 without a length, and the connection is kept")
    func results() async throws {
        try await Self.withServer { test in
            let client = try PageClient(test.address)
            for (target, body, result) in [
                ("desk/add(_:)", "[2]", "2"), ("other/add(_:)", " [ 3 ]\n", "3"), ("desk/add(_:)", "[-1]", "1"),
                ("desk/join(first:second:)", #"["a",["b","\u00e9"]]"#, #""abé""#), ("desk/caller()", "[]", "null"),
                ("desk/caller()", "", "null"), ("desks/7/add(_:)", "[7]", "7"), ("desks%2F7/add(_:)", "[1]", "8"),
                ("%64esk/%61dd%28_:%29", "[0]", "1"), ("desk/add(_:)?x=1", "[0]", "1"),
            ] {
                let reply = try await client.post("/call/\(target)", body, Self.json)
                #expect(reply.status == 200 && reply.text == result, "\(target): \(reply)")
                #expect(reply.fields["content-type"] == "application/json")
                #expect(reply.fields["cache-control"] == "no-store" && reply.fields["connection"] == nil)
            }
            let void = try await client.post(
                "/call/desk/reset()", "[]", ["content-type": "Application/JSON; charset=utf-8"])
            #expect(void.status == 204 && void.fields["content-length"] == nil && void.fields["content-type"] == nil)
            #expect(try await client.post("/call/desk/add(_:)", "[0]", Self.json).text == "0")
            let large = try await client.post("/call/desk/text(of:)", "[3000000]", Self.json)
            #expect(large.body.count == 3_000_002)
            #expect(try await client.post("/call/other/add(_:)", "[0]", Self.json).text == "3")
        }
    }

    @Test("curl and Python call without further settings")
    func otherClients() async throws {
        try await Self.withServer { test in
            let url = "http://127.0.0.1:\(test.address.port)/call/desk/add(_:)"
            let curl = try await ChildProcess(
                "/usr/bin/curl",
                ["-sS", "-m", "20", "-w", " %{http_code}", "--json", "[4]", url, url], error: .merged
            ).finish()
            #expect(curl.output == "4 2008 200")
            // From 1 MiB on curl asks for permission to send the body.
            let long = "[\"\(String(repeating: "x", count: (1 << 20) - 200))\",[]]"
            let file = try TemporaryFolder()
            try file.write("body", long.utf8)
            let large = try await ChildProcess(
                "/usr/bin/curl",
                [
                    "-sS", "-m", "60", "-o", "/dev/null", "-w", "%{http_code} %{size_download}", "-H",
                    "Expect: 100-continue",
                    "-H", "Content-Type: application/json", "--data-binary", "@\(file.path)/body",
                    "http://127.0.0.1:\(test.address.port)/call/desk/join(first:second:)",
                ], error: .merged
            ).finish()
            #expect(large.output == "200 \((1 << 20) - 198)")
            let chunked = try await ChildProcess(
                "/usr/bin/curl",
                [
                    "-sS", "-m", "20", "-w", " %{http_code}", "-H", "Transfer-Encoding: chunked", "--json", "[0]", url,
                ], error: .merged
            ).finish()
            #expect(chunked.output == "8 200")
            let python = try await ChildProcess(
                "/usr/bin/env",
                [
                    "python3", "-c",
                    """
                    import json, urllib.request
                    request = urllib.request.Request("\(url)", json.dumps([1]).encode(), {"Content-Type": "application/json"})
                    print(json.load(urllib.request.urlopen(request, timeout=20)))
                    """,
                ], error: .merged
            ).finish()
            #expect(python.output == "9\n")
        }
    }

    @Test(
        "an error is a problem document with the status of its code",
        arguments: [
            ("nobody/add(_:)", "[1]", 404, "actorNotFound"), ("desk/sub(_:)", "[1]", 404, "methodNotFound"),
            ("desk/observeCount", "[]", 404, "methodNotFound"), ("desk/add(_:)", "[]", 400, "invalidArguments"),
            ("desk/add(_:)", "[\"x\"]", 400, "invalidArguments"), ("desk/add(_:)", "{}", 400, "invalidArguments"),
            ("desk/add(_:)", "[1", 400, "invalidArguments"), ("desk/add(_:)", "[1]]", 400, "invalidArguments"),
            ("desk/add(_:)", "[1],\"session\":\"0.1.1\"", 400, "invalidArguments"),
            ("desk/add(_:)", "[\"\u{1}\"]", 400, "invalidArguments"),
            ("desk/fail(_:)", "[\"unauthenticated\"]", 401, "unauthenticated"),
            ("desk/fail(_:)", "[\"unauthorized\"]", 403, "unauthorized"),
            ("desk/fail(_:)", "[\"rateLimited\"]", 429, "rateLimited"),
            ("desk/fail(_:)", "[\"timeout\"]", 504, "timeout"), ("desk/fail(_:)", "[\"cancelled\"]", 500, "cancelled"),
            ("desk/fail(_:)", "[\"unavailable\"]", 503, "unavailable"),
            ("desk/fail(_:)", "[\"unknownOutcome\"]", 500, "unknownOutcome"),
            ("desk/fail(_:)", "[\"overflow\"]", 500, "overflow"), ("desk/fail(_:)", "[\"internal\"]", 500, "internal"),
            ("desk/fail(_:)", "[\"application\"]", 500, "application"),
            ("desk/fail(_:)", "[\"refused\"]", 422, "application"), ("desk/fail(_:)", "[\"\"]", 500, "application"),
        ])
    func errors(target: String, body: String, status: Int, code: String) async throws {
        try await Self.withServer { test in
            let client = try PageClient(test.address)
            let reply = try await client.post("/call/\(target)", body, Self.json)
            let problem = try Self.problem(reply)
            #expect(reply.status == status && problem.code == code, "\(reply.text)")
            #expect(problem.type == "urn:trebuchet:error:\(code)" && !problem.title.isEmpty)
            #expect((reply.fields["retry-after"] != nil) == ["rateLimited", "unavailable"].contains(code))
            #expect((reply.fields["www-authenticate"] != nil) == (status == 401))
            #expect(problem.data?.left == (status == 422 ? 3 : nil))
            #expect((problem.errorType != nil) == (status == 422))
            // The connection continues.
            #expect(try await client.post("/call/desk/add(_:)", "[1]", Self.json).text == "1")
        }
    }

    @Test("the text of an error that is not Codable is shown only with showsErrorText", arguments: [false, true])
    func errorText(isShown: Bool) async throws {
        try await Self.withServer(showsErrorText: isShown) { test in
            let reply = try await PageClient(test.address).post("/call/desk/fail(_:)", "[\"\"]", Self.json)
            let problem = try Self.problem(reply)
            #expect(problem.detail.contains("s3cret") == isShown && problem.detail.contains("server log") == !isShown)
        }
    }

    @Test(
        "a request that is no call is refused before its body is read",
        arguments: [
            ("GET", "desk/add(_:)", json, 405), ("PUT", "desk/add(_:)", json, 405), ("POST", "desk/add(_:)", [:], 415),
            ("POST", "desk/add(_:)", ["Content-Type": "text/plain"], 415), ("POST", "", json, 404),
            ("POST", "desk", json, 404), ("POST", "desk/", json, 404), ("POST", "/add(_:)", json, 404),
            ("POST", "desk/%zz", json, 400), ("POST", "desk/%ff", json, 400),
            ("POST", "desk/add(_:)", json.merging(["Expect": "more"]) { $1 }, 417),
            ("POST", "desk/add(_:)", json.merging(["Trebuchet-Timeout": "0"]) { $1 }, 400),
            ("POST", "desk/add(_:)", json.merging(["Trebuchet-Timeout": "1 s"]) { $1 }, 400),
        ])
    func refused(method: String, target: String, headers: [String: String], status: Int) async throws {
        try await Self.withServer { test in
            let client = try PageClient(test.address)
            let reply = try await client.post("/call/\(target)", "[1]", headers, method: method)
            #expect(reply.status == status, "\(reply.text)")
            if status == 405 { #expect(reply.fields["allow"] == "POST") }
            if status != 417 { _ = try Self.problem(reply) }
            #expect(reply.fields["connection"] == "close")
            #expect(await client.ends())
        }
    }

    @Test("without the option of the policy a call is answered 404, and pages and health are as before")
    func off() async throws {
        try await Self.withServer(AccessPolicy()) { test in
            let reply = try await PageClient(test.address).post("/call/desk/add(_:)", "[1]", Self.json)
            #expect(reply.status == 404)
            #expect(try Self.problem(reply).detail.contains("AccessPolicy.acceptsHTTPCalls"))
            #expect(try await PageClient(test.address).get("/call/desk/add(_:)").status == 426)
            #expect(try await PageClient(test.address).get("/healthz").status == 200)
            #expect(try await PageClient(test.address).post("/other", "[1]", Self.json).status == 413)
        }
    }

    // MARK: Access

    @Test("credentials are those of a WebSocket, and authorize decides each call")
    func access() async throws {
        let access = Self.accepting {
            $0.authenticate = AccessTests.keys
            $0.authorize = { caller, actor, target in
                target == "caller()" || caller?.principal?.roles.contains("editor") == true
            }
        }
        try await Self.withServer(access) { test in
            let client = try PageClient(test.address)
            func call(_ method: String, _ headers: [String: String]) async throws -> PageClient.Reply {
                try await client.post("/call/desk/\(method)", "[]", Self.json.merging(headers) { $1 })
            }
            #expect(try await call("caller()", ["Authorization": "Bearer ada-key"]).text == "\"ada\"")
            #expect(try await call("caller()", ["X-API-Key": "bob-key"]).text == "\"bob\"")
            #expect(try await call("reset()", ["X-API-Key": "ada-key"]).status == 204)
            let forbidden = try await call("reset()", ["X-API-Key": "bob-key"])
            #expect(forbidden.status == 403)
            #expect(try Self.problem(forbidden).code == "unauthorized")
            for headers in [[:], ["Authorization": "Bearer nobody"]] {
                let client = try PageClient(test.address)
                let reply = try await client.post("/call/desk/caller()", "[]", Self.json.merging(headers) { $1 })
                #expect(reply.status == 401 && reply.fields["www-authenticate"] == "Bearer")
                #expect(try Self.problem(reply).code == "unauthenticated")
                #expect(await client.ends())
            }
        }
    }

    @Test("a client without valid credentials is refused before it sends its body, others are asked to continue")
    func permission() async throws {
        try await Self.withServer(Self.accepting { $0.authenticate = AccessTests.keys }) { test in
            func head(_ key: String) -> String {
                "POST /call/desk/add(_:) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-API-Key: \(key)\r\n"
                    + "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n"
            }
            let refused = try PageClient(test.address)
            try refused.write(head("none"))
            #expect(try await refused.reply().status == 401)
            #expect(await refused.ends())
            let client = try PageClient(test.address)
            for sum in ["1", "2"] {
                try client.write(head("ada-key"))
                #expect(try await client.reply().status == 100)
                try client.write("[1]")
                #expect(try await client.reply().text == sum)
            }
        }
    }

    @Test("pages of other origins are refused, those of the server and of the list are not")
    func origins() async throws {
        try await Self.withServer { (test) async throws in
            func status(_ headers: [String: String], host: String = "localhost") async throws -> Int {
                try await PageClient(test.address).post(
                    "/call/desk/add(_:)", "[1]", Self.json.merging(headers) { $1 }, host: host
                ).status
            }
            #expect(try await status(["Origin": "http://evil.example"]) == 403)
            #expect(try await status(["Origin": "null"]) == 403)
            #expect(try await status(["Origin": "http://localhost"]) == 200)
            // A program behind a proxy of this machine, as for an upgrade.
            #expect(try await status([:], host: "app.example") == 200)
            #expect(try await status(["Origin": "http://app.example"], host: "app.example") == 403)
        }
        try await Self.withServer(Self.accepting { $0.origins = ["https://app.example"] }) { test in
            for (origin, status) in [("https://app.example", 200), ("http://localhost", 403)] {
                let reply = try await PageClient(test.address).post(
                    "/call/desk/add(_:)", "[1]", Self.json.merging(["Origin": origin]) { $1 })
                #expect(reply.status == status)
            }
        }
    }

    // MARK: Bodies and connections

    @Test("a body over the limit is answered 413, by its length or when its chunks exceed it")
    func bodyLimit() async throws {
        var limits = ServerLimits()
        limits.messages.inboundBytes = 1_000
        try await Self.withServer(limits: limits) { test in
            let fitting = "[\"\(String(repeating: "x", count: 800))\",[]]"
            #expect(
                try await PageClient(test.address).post("/call/desk/join(first:second:)", fitting, Self.json).status
                    == 200)
            // The message with the names is larger than the body.
            let body = "[\"\(String(repeating: "x", count: 980))\",[]]"
            let large = try await PageClient(test.address).post("/call/desk/join(first:second:)", body, Self.json)
            #expect(large.status == 413)
            #expect(try Self.problem(large).detail.contains("messages.inboundBytes"))
            let announced = try PageClient(test.address)
            let head = "POST /call/desk/add(_:) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            try announced.write(head + "Content-Length: 1001\r\n\r\n")
            #expect(try await announced.reply().status == 413)
            #expect(await announced.ends())
            let endless = try PageClient(test.address)
            try endless.write(head + "Transfer-Encoding: chunked\r\n\r\n")
            for _ in 0..<10 { try endless.write("64\r\n\(String(repeating: " ", count: 100))\r\n") }
            try endless.write("1\r\n")
            #expect(try await endless.reply().status == 413)
            #expect(await endless.ends())
        }
    }

    @Test("chunks and pipelined requests are read however the network splits them", arguments: [1, 7, 1 << 20])
    func pieces(size: Int) async throws {
        try await Self.withServer { test in
            let head = "POST /call/desk/add(_:) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            let text =
                head + "Transfer-Encoding: chunked\r\n\r\n1;x=y\r\n[\r\n02\r\n1]\r\n0\r\nTrailer: x\r\n\r\n"
                + PageClient.request("/call/desk/add(_:)", "[2]", Self.json)
                + PageClient.request("/call/other/reset()", "", Self.json)
                + "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
            let client = try PageClient(test.address)
            var rest = text[...]
            while !rest.isEmpty {
                try client.write(String(rest.prefix(size)))
                rest = rest.dropFirst(size)
            }
            #expect(try await client.reply().text == "1")
            #expect(try await client.reply().text == "3")
            #expect(try await client.reply().status == 204)
            #expect(try await client.reply().text == "ok\n")
            #expect(await client.ends())
        }
    }

    @Test(
        "malformed chunks and lengths are answered 400 and end the connection",
        arguments: [
            "Transfer-Encoding: chunked\r\n\r\nx\r\n", "Transfer-Encoding: chunked\r\n\r\n1\r\n[]\r\n",
            "Transfer-Encoding: chunked\r\n\r\n-1\r\n", "Content-Length: 3, 4\r\n\r\n",
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        ])
    func malformed(text: String) async throws {
        try await Self.withServer { test in
            let client = try PageClient(test.address)
            try client.write(
                "POST /call/desk/add(_:) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + text)
            #expect(try await client.reply().status == 400)
            #expect(await client.ends())
        }
    }

    @Test("a body that does not end in time is answered 408")
    func slowBody() async throws {
        let clock = TestTime()
        var limits = ServerLimits()
        limits.messages.timeout = .seconds(3_600)
        try await Self.withServer(limits: limits, clock: clock) { test in
            let client = try PageClient(test.address)
            try client.write(
                "POST /call/desk/add(_:) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    + "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n")
            #expect(try await client.reply().status == 100)
            try client.write("[")
            await clock.advance(by: .seconds(3_601))
            let reply = try await client.reply()
            #expect(reply.status == 408)
            #expect(try Self.problem(reply).detail.contains("messages.timeout"))
            #expect(await client.ends())
        }
    }

    @Test("authentication that does not end in time is answered 408")
    func slowAuthentication() async throws {
        let (clock, journal) = (TestTime(), Journal())
        let access = Self.accepting {
            $0.authenticate = { _ in
                journal.record("asked")
                await journal.wait(for: "answer")
                return Principal(id: "ada")
            }
        }
        try await Self.withServer(access, clock: clock) { test in
            let client = try PageClient(test.address)
            try client.write(PageClient.request("/call/desk/add(_:)", "[1]", Self.json))
            await journal.wait(for: "asked")
            await clock.advance(by: .seconds(11))
            #expect(try await client.reply().status == 408)
            #expect(await client.ends())
            journal.record("answer")
        }
    }

    @Test("the deadline of a call is that of its header, or of the server")
    func deadline() async throws {
        let (clock, journal) = (TestTime(), Journal())
        var limits = ServerLimits()
        limits.calls.timeout = .seconds(7_200)
        limits.calls.maximumTimeout = .seconds(100_000)
        try await Self.withServer(limits: limits, journal: journal, clock: clock) { test in
            for (name, headers, seconds) in [("a", ["Trebuchet-Timeout": "3600000"], 3_601), ("b", [:], 7_201)] {
                let client = try PageClient(test.address)
                try client.write(
                    PageClient.request("/call/desk/hold(_:)", "[\"\(name)\"]", Self.json.merging(headers) { $1 }))
                await journal.wait(for: "\(name) began")
                await clock.advance(by: .seconds(seconds))
                let reply = try await client.reply()
                #expect(reply.status == 504)
                #expect(try Self.problem(reply).code == "timeout")
                await journal.wait(for: "\(name) was cancelled")
            }
        }
    }

    @Test("a client that disconnects cancels its call", arguments: [true, false])
    func disconnect(reset: Bool) async throws {
        let journal = Journal()
        try await Self.withServer(journal: journal) { test in
            for (number, actor) in ["desk", "other", "desks/1"].enumerated() {
                let client = try PageClient(test.address)
                try client.write(PageClient.request("/call/\(actor)/hold(_:)", "[\"\(number)\"]", Self.json))
                await journal.wait(for: "\(number) began")
                client.disconnect(reset: reset)
                await journal.wait(for: "\(number) was cancelled")
            }
        }
    }

    @Test("a stopping server completes its calls, and ends the connection after them")
    func shutdown() async throws {
        let journal = Journal()
        try await Self.withServer(journal: journal) { test in
            let (idle, client) = try (PageClient(test.address), PageClient(test.address))
            #expect(try await idle.post("/call/desk/add(_:)", "[1]", Self.json).text == "1")
            try client.write(PageClient.request("/call/desk/hold(_:)", "[\"a\"]", Self.json))
            await journal.wait(for: "a began")
            async let stop: Void = test.stop(drain: .seconds(60))
            #expect(await idle.ends())
            journal.record("a go")
            let reply = try await client.reply()
            #expect(reply.text == "\"a\"" && reply.fields["connection"] == "close")
            #expect(await client.ends())
            await stop
        }
    }

    @Test("a call that outlasts the drain is answered with an unknown outcome")
    func endlessCall() async throws {
        let journal = Journal()
        try await Self.withServer(journal: journal) { test in
            let client = try PageClient(test.address)
            try client.write(PageClient.request("/call/desk/hold(_:)", "[\"a\"]", Self.json))
            await journal.wait(for: "a began")
            async let stop: Void = test.stop(drain: .milliseconds(200))
            let reply = try await client.reply()
            #expect(reply.status == 500)
            #expect(try Self.problem(reply).code == "unknownOutcome")
            await stop
        }
    }

    // MARK: Limits

    @Test("requests in flight are limited for the server and for each host")
    func concurrentRequests() async throws {
        let journal = Journal()
        var limits = ServerLimits()
        limits.http.total = 2
        limits.http.perHost = 1
        try await Self.withServer(
            Self.accepting { $0.trustedProxies = ["127.0.0.1"] }, limits: limits, journal: journal
        ) {
            test in
            func send(_ host: String, _ name: String) throws -> PageClient {
                let client = try PageClient(test.address)
                let headers = Self.json.merging(["X-Forwarded-For": host]) { $1 }
                try client.write(PageClient.request("/call/desk/hold(_:)", "[\"\(name)\"]", headers))
                return client
            }
            let first = try send("203.0.113.1", "a")
            await journal.wait(for: "a began")
            let second = try await send("203.0.113.1", "b").reply()
            #expect(second.status == 429 && second.fields["retry-after"] != nil)
            #expect(try Self.problem(second).detail.contains("http.perHost"))
            let third = try send("203.0.113.2", "c")
            await journal.wait(for: "c began")
            let fourth = try await send("203.0.113.3", "d").reply()
            #expect(fourth.status == 429)
            #expect(try Self.problem(fourth).detail.contains("http.total"))
            journal.record("a go")
            #expect(try await first.reply().status == 200)
            let fifth = try send("203.0.113.1", "e")
            await journal.wait(for: "e began")
            for name in ["c", "e"] { journal.record("\(name) go") }
            #expect(try await third.reply().status == 200)
            #expect(try await fifth.reply().status == 200)
        }
    }

    @Test("rates of calls apply to the requests of a connection, and of a principal")
    func rates() async throws {
        var limits = ServerLimits()
        limits.calls.rate.perConnection = RateLimit(callsPerSecond: 0.001, burst: 2)
        limits.calls.rate.perMethod[RatedMethod("reset()", of: HTTPTestActor.self)] = RateLimit(
            callsPerSecond: 0.001, burst: 1)
        try await Self.withServer(limits: limits) { test in
            let client = try PageClient(test.address)
            #expect(try await client.post("/call/desk/add(_:)", "[1]", Self.json).status == 200)
            #expect(try await client.post("/call/desk/add(_:)", "[1]", Self.json).status == 200)
            let reply = try await client.post("/call/desk/add(_:)", "[1]", Self.json)
            #expect(reply.status == 429 && Int(reply.fields["retry-after"] ?? "") ?? 0 > 100)
            let other = try PageClient(test.address)
            #expect(try await other.post("/call/desk/reset()", "", Self.json).status == 204)
            #expect(try await other.post("/call/desk/reset()", "", Self.json).status == 429)
        }
        limits = ServerLimits()
        limits.calls.rate.perPrincipal = RateLimit(callsPerSecond: 0.001, burst: 1)
        try await Self.withServer(Self.accepting { $0.authenticate = AccessTests.keys }, limits: limits) {
            (test) async throws in
            for (key, status) in [("ada-key", 200), ("ada-key", 429), ("bob-key", 200)] {
                let headers = Self.json.merging(["X-API-Key": key]) { $1 }
                #expect(
                    try await PageClient(test.address).post("/call/desk/add(_:)", "[1]", headers).status == status)
            }
        }
    }

    @Test("calls are counted with their durations and by status, and leave nothing behind")
    func metrics() async throws {
        try await Self.withServer { test in
            let client = try PageClient(test.address)
            #expect(try await client.post("/call/desk/add(_:)", "[1]", Self.json).status == 200)
            #expect(try await client.post("/call/desk/nothing()", "[]", Self.json).status == 404)
            let text = try await test.server.prometheusMetrics()
            #expect(text.contains("trebuchet_http_requests_total{status=\"200\"} 1\n"))
            #expect(text.contains("trebuchet_http_requests_total{status=\"404\"} 1\n"))
            #expect(text.contains("trebuchet_errors_total{code=\"methodNotFound\"} 1\n"))
            #expect(text.contains(/trebuchet_call_duration_seconds_count\{.*HTTPTestActor.*method="add\(_:\)"\} [1-9]/))
            #expect(text.contains("trebuchet_connections_opened_total 0\n"))
            #expect(text.contains("trebuchet_connections 0\n"))
            #expect(text.contains("trebuchet_calls_active 0\n"))
            #expect(await eventually { test.server.context.memory.usedBytes == 0 })
        }
    }
}
