import Foundation
import TestSupport
import Testing
import Transports
import Trebuchet
import TrebuchetTesting

/// Returns its arguments.
@Trebuchet
distributed actor HTTPEchoActor {
    struct Item: Codable, Sendable { var name: String, sizes: [Int] }

    @HTTP(.get, "/echo/:text/:number/:flag")
    distributed func values(text: String, number: Double, flag: Bool, id: UUID?, more: String) async -> String {
        "\(text)|\(number)|\(flag)|\(id?.uuidString ?? "nil")|\(more)"
    }
    @HTTP(.patch, "/echo/:at")
    distributed func item(_ item: Item, at index: Int, note: String?) -> String {
        "\(item.name)|\(item.sizes)|\(index)|\(note ?? "nil")"
    }
    @HTTP(.delete, "/echo/:text")
    distributed func remove(text: String, count: Int?) -> String { "\(text)|\(count ?? 0)" }
    @HTTP(.put, "/nothing")
    distributed func nothing() {}
    @HTTP(.get, "/who")
    distributed func who() -> String? { Caller.current?.principal?.id }
}

/// Methods of actors that are routes over HTTP, over real sockets.
@Suite(.timeLimit(.minutes(5))) struct HTTPMethodTests {
    private static func withServer(
        _ access: AccessPolicy = .open, _ body: (TestServer) async throws -> Void
    ) async throws {
        try await withTestServer(reactors: 2, access: access) { server in
            try await serveOrders(on: server)
            server.expose(HTTPEchoActor.self, as: "echo/*") { _ in HTTPEchoActor(actorSystem: server.actorSystem) }
            try server.http { routes in routes.serve(HTTPEchoActor.self, as: "echo/1") }
        } body: { (test: TestServer) in
            try await body(test)
        }
    }

    @Test("arguments are taken from the path, the query and the body, by their names")
    func arguments() async throws {
        try await Self.withServer { test in
            let client = try PageClient(test.address)
            func text(_ method: String, _ path: String, _ body: String = "") async throws -> String {
                let reply = try await client.post(path, body, body.isEmpty ? [:] : HTTPCallTests.json, method: method)
                #expect(reply.status == 200, "\(reply.text)")
                return try JSONDecoder().decode(String.self, from: Data(reply.body))
            }
            let id = "6D0C2A0E-0000-4000-8000-000000000001"
            #expect(
                try await text("GET", "/echo/a%2Fb%22%5C/-1.5e2/true?more=x+%22&id=\(id)&other=1")
                    == "a/b\"\\|-150.0|true|\(id)|x \"")
            #expect(try await text("GET", "/echo/%C3%A9/7/false?more=") == "é|7.0|false|nil|")
            #expect(
                try await text(
                    "PATCH", "/echo/3", #" { "note" : "n\u00e9" , "x":[{}], "item":{"name":"a,b","sizes":[1,2]}} "#)
                    == "a,b|[1, 2]|3|né")
            #expect(
                try await text("PATCH", "/echo/-4", #"{"item":{"name":"","sizes":[]},"note":null}"#) == "|[]|-4|nil")
            #expect(try await text("DELETE", "/echo/a?count=3") == "a|3")
            #expect(try await text("DELETE", "/echo/a") == "a|0")
            let nothing = try await client.post("/nothing", "", method: "PUT")
            #expect(nothing.status == 204 && nothing.body.isEmpty)
            let head = try await client.get("/who", method: "HEAD")
            #expect(head.status == 200 && head.body.isEmpty)
            #expect(try await client.get("/who", method: "POST").status == 405)
        }
    }

    @Test(
        "arguments that are missing or have another form are refused, and cannot add arguments",
        arguments: [
            ("GET", "/echo/a/x/true?more=1", "", 400, "'number' is not a number"),
            ("GET", "/echo/a/1,2/true?more=1", "", 400, "'number' is not a number"),
            ("GET", "/echo/a/1%20/true?more=1", "", 400, "'number' is not a number"),
            ("GET", "/echo/a/01/true?more=1", "", 400, "'number' is not a number"),
            ("GET", "/echo/a/[1]/true?more=1", "", 400, "'number' is not a number"),
            ("GET", "/echo/a/1/yes?more=1", "", 400, "'flag' is neither true nor false"),
            ("GET", "/echo/a/1/true", "", 400, "the argument 'more' is missing"),
            ("GET", "/echo/a/1/true?more=1&id=7", "", 400, ""),
            ("PATCH", "/echo/1.5", #"{"item":{"name":"","sizes":[]}}"#, 400, ""),
            ("PATCH", "/echo/1", "", 400, "the argument 'item' is missing"),
            ("PATCH", "/echo/1", "{}", 400, "the argument 'item' is missing"),
            ("PATCH", "/echo/1", "[]", 400, "not a JSON object"),
            ("PATCH", "/echo/1", #"{"item":1}}"#, 400, ""),
            ("PATCH", "/echo/1", #"{"item":1,"item":2}"#, 400, "twice"),
            ("PATCH", "/echo/1", #"{"item":{"name":""}}"#, 400, ""),
            ("PATCH", "/echo/1", "{\"item\":\"\u{1}\"}", 400, ""),
        ])
    func refused(method: String, path: String, body: String, status: Int, text: String) async throws {
        try await Self.withServer { test in
            let client = try PageClient(test.address)
            let reply = try await client.post(path, body, body.isEmpty ? [:] : HTTPCallTests.json, method: method)
            #expect(reply.status == status && reply.text.contains("\"invalidArguments\""), "\(reply.text)")
            #expect(text.isEmpty || reply.text.contains(text), "\(reply.text)")
            #expect(try await client.get("/who").status == 200)
        }
    }

    @Test("a body requires its type, so that forms of other pages cannot send it")
    func type() async throws {
        try await Self.withServer { test in
            let reply = try await PageClient(test.address).post(
                "/echo/1", "{}", ["Content-Type": "text/plain"], method: "PATCH")
            #expect(reply.status == 415)
        }
    }

    @Test("a request is a call of its caller: authenticated, authorized, and with the errors of calls")
    func access() async throws {
        var access = AccessPolicy(authenticate: AccessTests.keys)
        access.authorize = { _, actor, target in actor != "desk" || target == "order(id:)" }
        try await Self.withServer(access) { test in
            let client = try PageClient(test.address)
            #expect(try await client.get("/who", ["X-API-Key": "ada-key"]).text == "\"ada\"")
            let forbidden = try await client.post(
                "/desk/1/items", #"{"product":"a"}"#, HTTPCallTests.json.merging(["X-API-Key": "ada-key"]) { $1 })
            #expect(forbidden.status == 403 && forbidden.text.contains("\"unauthorized\""))
            #expect(try await client.get("/desk/1", ["X-API-Key": "ada-key"]).text == #"{"id":1,"items":{}}"#)
            #expect(try await PageClient(test.address).get("/who").status == 401)
            // Calls over HTTP are not enabled.
            #expect(try await PageClient(test.address).post("/call/echo/1/who()", "", HTTPCallTests.json).status == 404)
        }
    }

    @Test("the order desk of the guide, with typed errors and idempotency keys")
    func orders() async throws {
        try await Self.withServer(AccessPolicy(authenticate: AccessTests.keys)) { test in
            let client = try PageClient(test.address)
            let key = ["X-API-Key": "ada-key"]
            let missing = try await client.get("/desk/7", key)
            #expect(missing.status == 422 && missing.text.contains(#""data":{"id":7}"#), "\(missing.text)")
            let once = HTTPCallTests.json.merging(key) { $1 }.merging(["Idempotency-Key": "one"]) { $1 }
            for _ in 0..<2 {
                let reply = try await client.post("/desk/1/items", #"{"product":"tea","count":2}"#, once)
                #expect(reply.text == #"{"id":1,"items":{"tea":2}}"#, "\(reply.text)")
            }
            let other = try await client.post("/desk/1/items", #"{"product":"tea","count":3}"#, once)
            #expect(other.status == 400, "\(other.text)")
            #expect(try await client.get("/desk/1", key).text == #"{"id":1,"items":{"tea":2}}"#)
        }
    }

    @Test("routes of methods collide with others as routes do")
    func collisions() throws {
        let server = TrebuchetServer(transport: .webSocket(port: 0))
        func add() throws {
            try server.http { routes in
                routes.serve(OrderDesk.self, as: "one")
                routes.serve(OrderDesk.self, as: "two")
            }
        }
        let thrown = #expect(throws: TransportError.self) { try add() }
        #expect(thrown?.message.contains("another route") == true)
    }
}
