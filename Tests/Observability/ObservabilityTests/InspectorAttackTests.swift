import TestSupport
import Testing
import Transports
import Trebuchet
import TrebuchetInspector
import TrebuchetTesting

/// Unauthorized peers of the inspector, and hostile data in its responses.
@Suite(.timeLimit(.minutes(5))) struct InspectorAttackTests {
    private static let paths = [
        "/inspect/overview", "/inspect/actors", "/inspect/actors/shelf", "/inspect/connections", "/inspect/calls",
        "/inspect/log", "/inspect/store", "/inspect/nodes", "/inspect", "/nothing", "/index.html",
    ]
    private static let protection = [
        "Cache-Control: no-store", "X-Content-Type-Options: nosniff", "Content-Security-Policy: default-src 'none'; ",
        "Cross-Origin-Resource-Policy: same-origin", "Referrer-Policy: no-referrer",
    ]

    private func expectProtected(_ answer: String, _ what: String) {
        for field in Self.protection { #expect(answer.contains("\r\n\(field)"), "\(what): \(field)") }
    }

    @Test("without the right token in the right place nothing is shown")
    func tokens() async throws {
        try await InspectorRig.with { _, _, rig async throws in
            let token = rig.inspector.token
            let guesses = [
                "X-Nothing: 1", "Authorization: Bearer", "Authorization: Bearer \(token.dropLast())",
                "Authorization: Bearer \(token)0", "Authorization: Basic \(token)",
                "Authorization: Bearer \(String(repeating: "0", count: 64))", "Authorization: \(token)",
                "Cookie: token=\(token)", "Sec-WebSocket-Protocol: bearer.x",
            ]
            for path in Self.paths + Self.paths.map({ $0 + "?token=\(token)" }) {
                for guess in guesses {
                    let answer = try await RawPeer.get(path, at: rig.address, [guess])
                    #expect(InspectorRig.status(answer) == "401", "\(path) \(guess)")
                    #expect(answer.contains("\r\nWWW-Authenticate: Bearer\r\n"))
                    // A peer with a wrong token receives a specific message.
                    let isWrong = guess.hasSuffix("000") || guess.hasSuffix(token.dropLast())
                    let texts = ["the token is not valid for this server\n", "a bearer token is required\n"]
                    #expect((isWrong ? [texts[0]] : texts).contains(InspectorRig.body(answer)))
                    expectProtected(answer, "\(path) \(guess)")
                }
            }
            #expect(InspectorRig.status(try await rig.answer("/inspect/overview")) == "200")
        }
    }

    @Test("pages of other origins and rebound host names are refused, even with the token")
    func origins() async throws {
        try await InspectorRig.with { _, _, rig async throws in
            let port = rig.address.port
            for origin in [
                "https://evil.example", "null", "http://localhost:1", "https://localhost:\(port)",
                "http://localhost.evil.example:\(port)", "http://127.0.0.1.evil.example:\(port)",
            ] {
                let answer = try await rig.answer(
                    "/inspect/overview", "Origin: \(origin)", host: "localhost:\(port)")
                #expect(InspectorRig.status(answer) == "403" && !answer.contains("serving"), "\(origin)")
                expectProtected(answer, origin)
                #expect(!answer.contains("Access-Control-Allow-Origin"))
            }
            for host in ["evil.example", "evil.example:\(port)", "localhost.evil.example", "192.0.2.1", "0.0.0.0"] {
                let answer = try await rig.answer("/inspect/overview", host: host)
                #expect(InspectorRig.status(answer) == "403" && !answer.contains("serving"), "\(host)")
                expectProtected(answer, host)
                // For the browser such a page has the same origin.
                let page = try await rig.answer("/inspect/overview", "Origin: http://\(host)", host: host)
                #expect(InspectorRig.status(page) == "403", "\(host)")
            }
            let own = try await rig.answer(
                "/inspect/overview", "Origin: http://localhost:\(port)", host: "localhost:\(port)")
            #expect(InspectorRig.status(own) == "200")
        }
    }

    @Test("a script in the name of an actor, in a state, in a method or in a principal remains text")
    func scripts() async throws {
        let name = #"</script><script>alert("\1")</script>&amp;"#
        let text = "<img src=x onerror=alert(1)>\u{1}\u{2028}\\\"&"
        try await InspectorRig.with { server in
            await server.expose(Shelf(actorSystem: server.actorSystem), as: name)
        } _: { client, _, rig async throws in
            let path =
                "/inspect/actors/" + name.utf8.map { "%" + String(256 + Int($0), radix: 16).dropFirst() }.joined()
            // Recording starts here.
            _ = try await rig.answer(path)
            let shelf = try client.resolve(Shelf.self, id: name)
            try await shelf.signIn(as: text)
            #expect(try await shelf.put(text) == 1)
            await #expect(throws: TrebuchetError.self) {
                _ = try await client.resolve(Shelf.self, id: "<b>nobody</b>").put("")
            }
            for path in ["/inspect/actors", path, "/inspect/connections", "/inspect/calls", "/inspect/overview"] {
                let answer = try await rig.answer(path)
                let body = InspectorRig.body(answer)
                #expect(answer.contains("\r\nContent-Type: application/json; charset=utf-8\r\n"))
                expectProtected(answer, path)
                #expect(!body.contains { "<>&\u{1}".contains($0) }, "\(body)")
            }
            let actor = try await rig.json(path)
            #expect(actor["name"].text == name)
            #expect(actor["states"].list.first?["value"].texts == [text])
            #expect(
                try await rig.json("/inspect/connections")["connections"].list.map { $0["principal"].text } == [text])
            let refused = try await rig.json("/inspect/calls")["calls"].list.first
            #expect(refused?["actor"].text == "<b>nobody</b>" && refused?["error"].text == "actorNotFound")
        }
    }

    @Test("the page needs no token, contains no data of the server, and loads scripts and styles only from it")
    func page() async throws {
        try await InspectorRig.with { _, _, rig async throws in
            for (path, type) in [
                ("/", "text/html"), ("/inspector.js", "text/javascript"), ("/inspector.css", "text/css"),
                ("/trebuchet.js", "text/javascript"),
            ] {
                let answer = try await RawPeer.get(path, at: rig.address, [])
                #expect(InspectorRig.status(answer) == "200")
                #expect(answer.contains("\r\nContent-Type: \(type); charset=utf-8\r\n"))
                expectProtected(answer, path)
                #expect(answer.contains("script-src 'self'; style-src 'self'; connect-src 'self'; "))
                #expect(answer.ranges(of: "\r\nContent-Security-Policy: ").count == 1)
                #expect(!answer.contains("unsafe") && !answer.contains(rig.inspector.token))
                // It has neither external resources nor inline scripts.
                let body = InspectorRig.body(answer)
                #expect(!body.contains("<script>") && !body.contains("style=\"") && !body.contains("innerHTML"))
                #expect(!body.replacing("http://www.w3.org/2000/svg", with: "").contains("//www."))
                let other = try await RawPeer.get(path, at: rig.address, [], host: "evil.example")
                #expect(InspectorRig.status(other) == "403")
            }
        }
    }

    @Test("the page is read-only: it accepts no data, and gives no access to actors")
    func readOnly() async throws {
        try await InspectorRig.with { _, _, rig async throws in
            let token = "Authorization: Bearer \(rig.inspector.token)\r\n"
            for (text, status) in [
                (
                    "POST /inspect/actors/shelf/call?method=put(_:)&arguments=[%22a%22] HTTP/1.1\r\nHost: localhost\r\n\(token)\r\n",
                    "405"
                ), ("POST /inspect/connections/1/close HTTP/1.1\r\nHost: localhost\r\n\(token)\r\n", "405"),
                ("POST /inspect/overview HTTP/1.1\r\nHost: localhost\r\n\(token)Content-Length: 2\r\n\r\n{}", "413"),
                ("DELETE /inspect/actors/shelf HTTP/1.1\r\nHost: localhost\r\n\(token)\r\n", "405"),
                ("OPTIONS /inspect/overview HTTP/1.1\r\nHost: localhost\r\n\(token)\r\n", "405"),
                (
                    "GET / HTTP/1.1\r\nHost: localhost\r\n\(token)Upgrade: websocket\r\nConnection: Upgrade\r\n"
                        + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n", "404"
                ),
            ] {
                let peer = try RawPeer(rig.address)
                peer.writeText(text)
                #expect(InspectorRig.status(await peer.readAll()) == status, "\(text)")
            }
            #expect(try await rig.json("/inspect/actors")["all"].count == 1)
        }
    }
}
