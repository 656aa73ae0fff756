import Bytes
import Foundation
import Platform
import TestSupport
import Testing
import Transports
import Trebuchet
import TrebuchetTesting
import WebSockets

/// Routes of a program over HTTP, over real sockets.
@Suite(.timeLimit(.minutes(5))) struct HTTPRouteTests {
    private static func withServer(
        _ access: AccessPolicy = .open, limits: ServerLimits = ServerLimits(), clock: TestTime? = nil,
        prepare: @escaping @Sendable (TrebuchetServer) async throws -> Void,
        _ body: (TestServer) async throws -> Void
    ) async throws {
        try await withTestServer(reactors: 2, limits: limits, access: access, clock: clock, prepare: prepare) { test in
            try await body(test)
        }
    }

    private struct Echo: Codable, Equatable, Sendable {
        var method: String
        var path: String
        var id: String?
        var page: String?
        var header: String?
        var body: String
        var host: String?
        var caller: String?
    }

    private static let echo: HTTPRoutes.Handler = { request in
        try .json(
            Echo(
                method: request.method, path: request.path, id: request.parameters["id"], page: request.query("page"),
                header: request.headers["x-test"], body: String(decoding: request.body, as: UTF8.self),
                host: request.remoteAddress?.host, caller: request.caller?.principal?.id))
    }

    @Test("a handler gets method, path, parameters, query, fields and the bytes of the body")
    func requests() async throws {
        try await Self.withServer { server in
            try server.http { routes in
                routes.get("/orders/:id", Self.echo)
                routes.post("/orders/:id", Self.echo)
                routes.put("/orders/:id/items/:item", Self.echo)
                routes.patch("/", Self.echo)
                routes.delete("/caf%C3%A9", Self.echo)
            }
        } _: { test in
            let client = try PageClient(test.address)
            func send(_ method: String, _ path: String, _ body: String) async throws -> Echo {
                let reply = try await client.post(path, body, ["X-TEST": "a, b"], method: method)
                #expect(reply.status == 200 && reply.fields["content-type"] == "application/json", "\(reply.text)")
                #expect(reply.fields["x-content-type-options"] == "nosniff" && reply.fields["date"] != nil)
                return try JSONDecoder().decode(Echo.self, from: Data(reply.body))
            }
            func wanted(_ method: String, _ path: String, id: String? = nil, page: String? = nil, body: String = "")
                -> Echo
            {
                Echo(method: method, path: path, id: id, page: page, header: "a, b", body: body, host: "127.0.0.1")
            }
            #expect(try await send("GET", "/orders/7?page=2", "") == wanted("GET", "/orders/7", id: "7", page: "2"))
            #expect(
                try await send("POST", "/orders/a%2Fb?x&page=a+b%26", "{ \u{0} }")
                    == wanted("POST", "/orders/a%2Fb", id: "a/b", page: "a b&", body: "{ \u{0} }"))
            #expect(
                try await send("PUT", "/orders/1/items/2", "x")
                    == wanted("PUT", "/orders/1/items/2", id: "1", body: "x"))
            #expect(try await send("PATCH", "/", "x") == wanted("PATCH", "/", body: "x"))
            #expect(try await send("DELETE", "/caf%c3%a9", "") == wanted("DELETE", "/caf%c3%a9"))
            try client.write(
                "POST /orders/1 HTTP/1.1\r\nHost: localhost\r\nX-Test: a, b\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
            )
            let chunked = try JSONDecoder().decode(Echo.self, from: Data(try await client.reply().body))
            #expect(chunked == wanted("POST", "/orders/1", id: "1", body: "ab"))
        }
    }

    @Test("responses are JSON, text, bytes, a status or a problem, and a page has other paths")
    func responses() async throws {
        try await Self.withServer { server in
            server.servePages(try .page("/page.txt", Array("page".utf8)), try .page("/both", Array("page".utf8)))
            try server.http { routes in
                routes.get("/json") { _ in try .json(["a": 1], status: 201) }
                routes.get("/text") { _ in .text("é") }
                routes.get("/bytes") { _ in .bytes([0, 1, 2], type: "application/x-test") }
                routes.get("/status/:code") { request in .status(Int(request.parameters["code"] ?? "") ?? 0) }
                routes.get("/problem") { _ in .problem(409, "closed") }
                routes.get("/error") { _ in
                    .problem(TrebuchetError(.rateLimited, "later", retryAfter: .milliseconds(1_500)))
                }
                routes.get("/both") { _ in .text("route") }
                routes.get("/large") { _ in .bytes([UInt8](repeating: 7, count: 1_000_000), type: "text/plain") }
                routes.get("/odd") { _ in
                    var response = HTTPResponse(
                        status: 304, headers: ["Content-Length": "1", "ETag": "\"a\""], body: [1])
                    response.headers.add("Transfer-Encoding", "chunked")
                    return response
                }
            }
        } _: { test in
            let client = try PageClient(test.address)
            let json = try await client.get("/json")
            #expect(json.status == 201 && json.text == #"{"a":1}"#)
            let text = try await client.get("/text")
            #expect(text.text == "é" && text.fields["content-type"] == "text/plain; charset=utf-8")
            let bytes = try await client.get("/bytes")
            #expect(bytes.body == [0, 1, 2] && bytes.fields["content-type"] == "application/x-test")
            for (code, length) in [("204", nil), ("202", "0"), ("503", "0")] as [(String, String?)] {
                let reply = try await client.get("/status/\(code)")
                #expect("\(reply.status)" == code && reply.fields["content-length"] == length && reply.body.isEmpty)
            }
            for code in ["101", "0", "600"] { #expect(try await client.get("/status/\(code)").status == 500) }
            let problem = try await client.get("/problem")
            #expect(problem.status == 409 && problem.fields["content-type"] == "application/problem+json")
            #expect(problem.text == #"{"type":"about:blank","title":"Conflict","status":409,"detail":"closed"}"#)
            let error = try await client.get("/error")
            #expect(error.status == 429 && error.fields["retry-after"] == "2")
            let odd = try await client.get("/odd")
            #expect(odd.status == 304 && odd.fields["content-length"] == nil && odd.fields["transfer-encoding"] == nil)
            let head = try await client.get("/large", method: "HEAD")
            #expect(head.status == 200 && head.fields["content-length"] == "1000000")
            #expect(try await client.get("/large").body.count == 1_000_000)
            #expect(try await client.get("/both").text == "route")
            #expect(try await client.get("/page.txt").text == "page")
            #expect(try await client.get("/nothing").text == "page not found\n")
        }
    }

    @Test("a path without the method is answered 405 with those it has, an unknown path 404")
    func methods() async throws {
        try await Self.withServer { server in
            try server.http { routes in
                routes.get("/a/:x", Self.echo)
                routes.delete("/a/:y", Self.echo)
                routes.post("/a/new", Self.echo)
                routes.get("/:any", Self.echo)
            }
        } _: { test in
            for (method, path, status, allow) in [
                ("PUT", "/a/b", 405, "DELETE, GET, HEAD"), ("GET", "/a/new", 405, "POST"), ("POST", "/a/new", 200, nil),
                ("OPTIONS", "/a/new", 405, "POST"), ("DELETE", "/a/b", 200, nil), ("GET", "/a/b/c", 404, nil),
                ("POST", "/x/y", 404, nil), ("GET", "/a/", 404, nil), ("GET", "/x", 200, nil),
                ("GET", "/%zz", 404, nil),
                ("GET", "/readyz", 404, nil), ("POST", "/call/a/b", 404, nil), ("GET", "/healthz", 200, nil),
            ] as [(String, String, Int, String?)] {
                let reply = try await PageClient(test.address).post(path, "", method: method)
                #expect(reply.status == status && reply.fields["allow"] == allow, "\(method) \(path): \(reply)")
                if path == "/healthz" { #expect(reply.text == "ok\n") }
            }
        }
    }

    @Test("a route asks for credentials only if it is authenticated")
    func authentication() async throws {
        var access = AccessPolicy(authenticate: AccessTests.keys)
        access.authorize = { _, _, _ in false }
        try await Self.withServer(access) { server in
            try server.http { routes in
                routes.get("/open", Self.echo)
                routes.post("/mine", authenticated: true, Self.echo)
            }
        } _: { test in
            func call(_ method: String, _ path: String, _ key: String?) async throws -> PageClient.Reply {
                let headers = key.map { ["Authorization": "Bearer \($0)"] } ?? [:]
                return try await PageClient(test.address).post(path, "x", headers, method: method)
            }
            #expect(try await call("POST", "/mine", nil).status == 401)
            #expect(try await call("POST", "/mine", "nobody").status == 401)
            #expect(try await call("POST", "/mine", "ada-key").text.contains(#""caller":"ada""#))
            let open = try await call("GET", "/open", "nobody")
            #expect(open.status == 200 && !open.text.contains("caller"))
        }
    }

    @Test("an authenticated route refuses a caller whom the policy admits without a principal")
    func anonymous() async throws {
        try await Self.withServer(AccessPolicy(authenticate: { _ in nil })) { server in
            try server.http { $0.get("/mine", authenticated: true, Self.echo) }
        } _: { test in
            let reply = try await PageClient(test.address).get("/mine")
            #expect(reply.status == 401 && reply.text.contains("requires credentials"))
        }
    }

    @Test(
        "an error of a handler has the status of its code, and its text is disclosed as that of a method",
        arguments: [
            ("denied", 403, "not you"), ("refused", 422, #""left":3"#), ("failed", 500, "server log"),
            ("json", 400, "ref"),
        ])
    func errors(name: String, status: Int, text: String) async throws {
        try await Self.withServer { server in
            try server.http { routes in
                routes.post("/:name") { request in
                    switch request.parameters["name"] {
                    case "denied": throw TrebuchetError(.unauthorized, "not you")
                    case "refused": throw HTTPTestActor.Refused(left: 3)
                    case "json": return .text(try request.json(as: Push.self).ref)
                    default: throw HTTPTestActor.Failed()
                    }
                }
            }
        } _: { test in
            let reply = try await PageClient(test.address).post("/\(name)", "{}")
            #expect(
                reply.status == status && reply.text.contains(text) && !reply.text.contains("s3cret"), "\(reply.text)")
            #expect(reply.fields["content-type"] == "application/problem+json")
        }
    }

    @Test("calls of a handler are calls of the server, whatever the access policy")
    func calls() async throws {
        var access = AccessPolicy(authenticate: AccessTests.keys)
        access.authorize = { _, _, _ in false }
        try await Self.withServer(access) { server in
            let system = server.actorSystem
            await server.expose(HTTPTestActor(actorSystem: system), as: "desk")
            server.expose(HTTPTestActor.self, as: "desks/*", idle: .seconds(600)) { _ in
                HTTPTestActor(actorSystem: system)
            }
            try server.http { routes in
                routes.post("/add/:amount", authenticated: true) { request in
                    let desk = try request.actorSystem.resolve(HTTPTestActor.self, id: "desk")
                    let sum = try await desk.add(Int(request.parameters["amount"] ?? "") ?? 0)
                    let later = try request.actorSystem.resolve(HTTPTestActor.self, id: "desks/1")
                    let callers = [try await desk.caller(), try await later.caller(), request.caller?.principal?.id]
                    return .text("\(sum) \(callers.map { $0 ?? "nobody" })")
                }
            }
        } _: { test in
            for sum in [2, 4] {
                let reply = try await PageClient(test.address).post("/add/2", "", ["X-API-Key": "ada-key"])
                #expect(reply.text == "\(sum) [\"the server\", \"the server\", \"ada\"]")
            }
        }
    }

    // MARK: Limits

    @Test("a body over the limit of its route is answered 413")
    func bodyLimit() async throws {
        try await Self.withServer { server in
            try server.http { routes in
                routes.post("/small", bodyBytes: 10, Self.echo)
                routes.post("/large", bodyBytes: 4 << 20, Self.echo)
                routes.post("/usual", Self.echo)
            }
        } _: { test in
            for (path, size, status) in [
                ("/small", 10, 200), ("/small", 11, 413), ("/usual", 1 << 20, 200), ("/usual", (1 << 20) + 1, 413),
                ("/large", 3 << 20, 200),
            ] {
                let reply = try await PageClient(test.address).post(path, String(repeating: "x", count: size))
                #expect(reply.status == status, "\(path) \(size)")
                #expect(status == 200 || reply.text.contains(path == "/small" ? "bodyBytes" : "messages.inboundBytes"))
            }
            #expect(await eventually { test.server.context.memory.usedBytes == 0 })
        }
    }

    @Test("a handler that takes too long is cancelled and answered 504, and counts until it ends")
    func timeout() async throws {
        let (clock, journal) = (TestTime(), Journal())
        var limits = ServerLimits()
        limits.http.total = 1
        try await Self.withServer(limits: limits, clock: clock) { server in
            try server.http { routes in
                routes.post("/wait", timeout: .seconds(3_600)) { _ in
                    journal.record("began")
                    await journal.wait(for: "go")
                    journal.record("cancelled: \(Task.isCancelled)")
                    await withoutCancellation { await journal.wait(for: "end") }
                    return .text("late")
                }
                routes.get("/other") { _ in .text("ok") }
            }
        } _: { test in
            let client = try PageClient(test.address)
            try client.write(PageClient.request("/wait", ""))
            await journal.wait(for: "began")
            await clock.advance(by: .seconds(3_601))
            #expect(try await client.reply().status == 504)
            await journal.wait(for: "cancelled: true")
            #expect(try await client.get("/other").status == 429)
            journal.record("end")
            let isFree = try await eventually { try await client.get("/other").status == 200 }
            #expect(isFree)
        }
    }

    @Test("a client that disconnects cancels its handler")
    func disconnect() async throws {
        let journal = Journal()
        try await Self.withServer { server in
            try server.http { routes in
                routes.post("/wait") { _ in
                    journal.record("began")
                    await journal.wait(for: "go")
                    journal.record("cancelled: \(Task.isCancelled)")
                    return .status(204)
                }
            }
        } _: { test in
            let client = try PageClient(test.address)
            try client.write(PageClient.request("/wait", "body"))
            await journal.wait(for: "began")
            client.disconnect()
            await journal.wait(for: "cancelled: true")
        }
    }

    @Test("a stopping server waits for its handlers, and releases them")
    func shutdown() async throws {
        final class Owned: Sendable {}
        let journal = Journal()
        weak var weakOwned: Owned?
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        do {
            let owned = Owned()
            weakOwned = owned
            try server.http { routes in
                routes.post("/wait") { [owned, server] _ in
                    journal.record("began")
                    await journal.wait(for: "go")
                    return .text("\(type(of: owned)) \(server.status)")
                }
            }
        }
        let client = try PageClient(try await server.start())
        try client.write(PageClient.request("/wait", ""))
        await journal.wait(for: "began")
        async let stop: Void = server.shutdown(drain: .seconds(60))
        #expect(await eventually { server.status == .draining })
        journal.record("go")
        #expect(try await client.reply().text == "Owned draining")
        #expect(await client.ends())
        await stop
        #expect(await eventually { weakOwned == nil })
    }

    // MARK: Registration

    @Test(
        "an invalid path, a path of the server and a second route of a path are errors",
        arguments: [
            (["orders"], "begins with a slash"), (["/a//b"], "is empty"), (["/a/"], "is empty"),
            (["/%zz"], "percent-encoded"),
            (["/:"], "name of a parameter"), (["/:a-b"], "name of a parameter"), (["/:a/:a"], "two parameters"),
            (["/healthz"], "belongs to the server"), (["/call/x/y"], "belongs to the server"),
            (["/%68ealthz"], "belongs to the server"), (["/a", "/a"], "another route"),
            (["/:a", "/:b"], "another route"),
            (["/a/:b/c", "/a/:c/c"], "another route"), (["/a/:b", "/:a/b"], nil), (["/:a", "/b"], nil),
        ] as [([String], String?)])
    func registration(paths: [String], error: String?) throws {
        let server = TrebuchetServer(transport: .webSocket(port: 0))
        func add() throws {
            try server.http { routes in
                for path in paths { routes.get(path, Self.echo) }
                routes.post("/other", Self.echo)
            }
        }
        guard let error else { return try add() }
        let thrown = #expect(throws: TransportError.self) { try add() }
        #expect(thrown?.code == .addressInvalid && thrown?.message.contains(error) == true, "\(thrown?.message ?? "")")
        // No route was added.
        func addOther() throws {
            try server.http { routes in routes.post("/other", Self.echo) }
        }
        try addOther()
        #expect(throws: TransportError.self) { try addOther() }
    }

    @Test("a server without authentication has no authenticated routes")
    func withoutPolicy() throws {
        let server = TrebuchetServer(transport: .webSocket(port: 0))
        func add() throws {
            try server.http { routes in routes.get("/mine", authenticated: true, Self.echo) }
        }
        let thrown = #expect(throws: TransportError.self) { try add() }
        #expect(thrown?.message.contains("AccessPolicy.authenticate") == true)
    }

    // MARK: The guide

    private static func openSSL(_ key: String, _ text: String) async throws -> String {
        let folder = try TemporaryFolder()
        try folder.write("text", text.utf8)
        let outcome = try await ChildProcess(
            "/usr/bin/openssl", ["dgst", "-sha256", "-hmac", key, "-hex", folder.path + "/text"], error: .merged
        ).finish()
        return String(outcome.output.split(separator: " ").last?.prefix(64) ?? "")
    }

    @Test("the webhooks of the guide accept signed requests only")
    func webhooks() async throws {
        let journal = Journal()
        try await withTestServer(reactors: 2, store: MemoryStore()) { server in
            await server.expose(DeployLog(actorSystem: server.actorSystem), as: "deploys")
            try addWebhook(to: server, secret: "s3cret")
            try addPayments(to: server, secret: "wh", paid: { journal.record($0) })
        } body: { (test: TestServer) in
            let client = try PageClient(test.address)
            let body = #"{"ref": "main"}"#
            let signature = try await Self.openSSL("s3cret", body)
            func push(_ body: String, _ signature: String) async throws -> Int {
                try await client.post("/webhooks/deploys", body, ["X-Hub-Signature-256": signature]).status
            }
            #expect(try await push(body, "sha256=" + signature) == 204)
            #expect(try await push(body, "sha256=" + signature.uppercased()) == 204)
            #expect(try await push(body + " ", "sha256=" + signature) == 401)
            for wrong in ["", "sha256=", "sha256=\(signature.dropLast())", "sha256=\(signature.dropLast())x"] {
                #expect(try await push(body, wrong) == 401, "\(wrong)")
            }
            let log = try await test.connect().resolve(DeployLog.self, id: "deploys")
            #expect(try await log.record("last") == 3)
            for (offset, status) in [(0, 200), (-400, 400)] {
                let time = Int(Date().timeIntervalSince1970) + offset
                let signature = try await Self.openSSL("wh", "\(time).{\"id\":\"evt\"}")
                let reply = try await client.post(
                    "/webhooks/stripe", "{\"id\":\"evt\"}", ["Stripe-Signature": "t=\(time),v1=00,v1=\(signature)"])
                #expect(reply.status == status, "\(reply.text)")
            }
            #expect(journal.entries == ["evt"])
        }
    }

    @Test("the orders of the guide are for clerks")
    func orders() async throws {
        let keys = AccessPolicy.apiKeys(["a": Principal(id: "ada", roles: ["clerk"]), "b": Principal(id: "bob")])
        try await Self.withServer(AccessPolicy(authenticate: keys)) { server in
            try addOrders(to: server)
        } _: { test in
            let client = try PageClient(test.address)
            let reply = try await client.get("/orders/7?state=open", ["X-API-Key": "a"])
            #expect(reply.text == #"{"id":"7","state":"open"}"#)
            #expect(try await client.get("/orders/7", ["X-API-Key": "b"]).status == 403)
        }
    }
}

/// Runs work in a task of its own, which a cancellation does not reach.
private func withoutCancellation(_ work: @escaping @Sendable () async -> Void) async {
    await Task { await work() }.value
}
