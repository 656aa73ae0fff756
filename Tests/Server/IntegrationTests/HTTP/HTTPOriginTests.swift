import TestSupport
import Testing
import Transports
import Trebuchet
import TrebuchetTesting
import WebSockets

/// Pages of other origins that use calls, streams and routes (CORS), over real sockets.
@Suite(.timeLimit(.minutes(5))) struct HTTPOriginTests {
    private static let page = ["Origin": "https://app.example"]
    private static let preflight = page.merging([
        "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type",
    ]) { $1 }

    private static func access(_ change: (inout AccessPolicy) -> Void = { _ in }) -> AccessPolicy {
        var access = accessForPages(of: ["https://app.example", "http://localhost:3000"])
        change(&access)
        return access
    }

    private static func withServer(
        _ access: AccessPolicy = access(), _ body: (TestServer) async throws -> Void
    ) async throws {
        try await withTestServer(reactors: 2, access: access) { server in
            await server.expose(HTTPTestActor(actorSystem: server.actorSystem), as: "desk")
            try server.http { routes in
                routes.get("/orders") { _ in
                    var response = HTTPResponse.text("orders")
                    response.headers.add("Access-Control-Allow-Origin", "*")
                    response.headers.add("Vary", "Accept")
                    return response
                }
                routes.get("/lines") { _ in
                    .stream(AsyncStream([UInt8].self) { $0.finish() }, type: "text/plain")
                }
            }
        } body: { (test: TestServer) in
            try await body(test)
        }
    }

    @Test(
        "a preflight request is answered without credentials, for any actor",
        arguments: ["/call/desk/add(_:)", "/call/nobody/x()", "/observe/desk/count", "/observe/nobody/x", "/orders"])
    func preflights(path: String) async throws {
        try await Self.withServer { test in
            let client = try PageClient(test.address)
            for _ in 0..<2 {
                let reply = try await client.get(path, Self.preflight, method: "OPTIONS")
                #expect(reply.status == 204 && reply.body.isEmpty)
                #expect(reply.fields["access-control-allow-origin"] == "https://app.example")
                #expect(reply.fields["access-control-allow-methods"] == "DELETE, GET, HEAD, PATCH, POST, PUT")
                #expect(reply.fields["access-control-allow-headers"]?.contains("Content-Type") == true)
                #expect(reply.fields["access-control-max-age"] == "3600")
                #expect(reply.fields["access-control-allow-credentials"] == nil)
                #expect(reply.fields["vary"]?.contains("Origin") == true && reply.fields["connection"] == nil)
            }
        }
    }

    @Test("a preflight request with a body ends the connection, so that the body is not read as a request")
    func preflightBody() async throws {
        try await Self.withServer { test in
            let client = try PageClient(test.address)
            let smuggled = "GET /orders HTTP/1.1\r\nHost: localhost\r\n\r\n"
            try client.write(PageClient.request("/orders", smuggled, Self.preflight, method: "OPTIONS"))
            let reply = try await client.reply()
            #expect(reply.status == 204 && reply.fields["connection"] == "close")
            #expect(await client.ends())
        }
    }

    @Test("responses to listed pages may be read, also refusals and streams; others depend on the origin too")
    func responses() async throws {
        try await Self.withServer(Self.access { $0.cors?.allowsCredentials = true }) { test in
            func permitted(_ reply: PageClient.Reply) -> Bool {
                reply.fields["access-control-allow-origin"] == "https://app.example"
                    && reply.fields["access-control-allow-credentials"] == "true"
                    && reply.fields["access-control-expose-headers"] == "Retry-After"
            }
            let client = try PageClient(test.address)
            let key = HTTPCallTests.json.merging(["X-API-Key": "k3y"]) { $1 }
            let call = try await client.post("/call/desk/add(_:)", "[1]", key.merging(Self.page) { $1 })
            #expect(call.text == "1" && permitted(call) && call.fields["vary"] == "Origin")
            let refused = try await PageClient(test.address).post(
                "/call/desk/add(_:)", "[1]", HTTPCallTests.json.merging(Self.page) { $1 })
            #expect(refused.status == 401 && permitted(refused))
            let wrongMethod = try await PageClient(test.address).get("/orders", Self.page, method: "DELETE")
            #expect(wrongMethod.status == 405 && permitted(wrongMethod))
            let orders = try await client.get("/orders", Self.page)
            #expect(orders.text == "orders" && permitted(orders) && orders.fields["vary"] == "Origin")
            let lines = try await client.get("/lines", Self.page)
            #expect(permitted(lines))
            let events = try EventClient("/observe/desk/count", of: client, key.merging(Self.page) { $1 })
            let head = try await client.head()
            #expect(permitted(head))
            #expect(try await events.data() == "1")
            let own = try await PageClient(test.address).get("/orders")
            // The field of the route itself: no page reads this response.
            #expect(own.fields["access-control-allow-origin"] == "*" && own.fields["vary"] == "Origin")
        }
    }

    @Test(
        "pages that are not listed are refused, whatever they ask for",
        arguments: ["https://evil.example", "https://app.example:444", "http://app.example", "null", "*"])
    func others(origin: String) async throws {
        try await Self.withServer { test in
            for (method, headers) in [("OPTIONS", Self.preflight), ("GET", Self.page)] {
                let reply = try await PageClient(test.address).get(
                    "/orders", headers.merging(["Origin": origin]) { $1 }, method: method)
                #expect(reply.status == 403 && reply.fields["access-control-allow-origin"] == nil)
            }
        }
    }

    @Test("the policy does not admit WebSockets, and is off by default")
    func notWebSockets() async throws {
        let upgrade = [
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "X-API-Key": "k3y",
        ]
        try await Self.withServer { test in
            let reply = try await PageClient(test.address).get("/", upgrade.merging(Self.page) { $1 })
            #expect(reply.status == 403)
        }
        try await Self.withServer(Self.access { $0.cors = nil }) { (test) async throws in
            #expect(try await PageClient(test.address).get("/orders", Self.page).status == 403)
            #expect(try await PageClient(test.address).get("/orders", Self.preflight, method: "OPTIONS").status == 403)
        }
    }

    @Test("without a list the policy has the origins of the server")
    func sharedOrigins() async throws {
        let access = Self.access {
            $0.origins = ["https://other.example"]
            $0.cors = CORSPolicy()
        }
        try await Self.withServer(access) { test in
            let reply = try await PageClient(test.address).get("/orders", ["Origin": "https://other.example"])
            #expect(reply.status == 200)
            #expect(reply.fields["access-control-allow-origin"] == "https://other.example")
            #expect(try await PageClient(test.address).get("/orders", Self.page).status == 403)
        }
    }

    @Test(
        "an invalid policy is an error of the start",
        arguments: [
            (CORSPolicy(), nil, "has no origins"), (CORSPolicy(), ["*"], "without *"),
            (CORSPolicy(origins: ["*"]), nil, "without *"),
            (CORSPolicy(origins: ["app.example"]), nil, "not an origin"),
        ] as [(CORSPolicy, Set<String>?, String)])
    func invalid(policy: CORSPolicy, origins: Set<String>?, text: String) async throws {
        var access = AccessPolicy(origins: origins)
        access.cors = policy
        let server = TrebuchetServer(transport: .webSocket(port: 0), access: access)
        let error = await #expect(throws: TransportError.self) { _ = try await server.start() }
        #expect(error?.code == .addressInvalid && error?.message.contains(text) == true)
        var injecting = AccessPolicy()
        injecting.cors = CORSPolicy(origins: ["https://app.example"])
        injecting.cors?.headers = ["X\r\nSet-Cookie: a=b"]
        let other = TrebuchetServer(transport: .webSocket(port: 0), access: injecting)
        await #expect(throws: TransportError.self) { _ = try await other.start() }
    }
}
