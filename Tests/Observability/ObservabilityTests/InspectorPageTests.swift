import Foundation
import TestSupport
import Testing
import Transports
import Trebuchet
import TrebuchetClient
import TrebuchetInspector
import TrebuchetTesting

/// The actor observed by pages of the inspector.
@Suite(.timeLimit(.minutes(5))) struct InspectorPageTests {
    /// A window of the inspector.
    private struct Window {
        let client: TrebuchetClient
        let name = "pages/\(UUID())"

        init(_ rig: InspectorRig, token: String? = nil) async throws {
            var options = TrebuchetClient.Options()
            options.headers.add("Authorization", "Bearer \(token ?? rig.inspector.token)")
            client = TrebuchetClient(
                transport: .webSocket(host: "127.0.0.1", port: rig.address.port), options: options)
            try await client.connect()
        }

        func call(_ method: String, _ arguments: String...) async throws -> InspectedValue {
            let answer = try await client.call(
                actor: name, target: method, arguments: arguments.map { Array($0.utf8) })
            return InspectedValue(value: try answer.map { try JSONSerialization.jsonObject(with: Data($0)) })
        }

        func look(_ path: String) async throws { _ = try await call("select(path:)", "\"\(path)\"") }

        /// The first shown value that meets the condition.
        func first(_ stream: String, where isSo: (InspectedValue) -> Bool) async throws -> InspectedValue {
            for try await bytes in client.observe(actor: name, stream: stream) {
                let shown = InspectedValue(value: try JSONSerialization.jsonObject(with: Data(bytes)))
                if isSo(shown) { return shown }
            }
            throw RawPeer.Ended()
        }
    }

    @Test("recorded events are shown as they occur, without another request")
    func follows() async throws {
        try await InspectorRig.with { client, _, rig async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            let window = try await Window(rig)
            async let overview = window.first("observeOverview") { $0["path"].text == "overview" }
            async let followed = window.first("observeView") { shown in
                shown["shown"]["states"].list.first?["version"].count != nil
            }
            try await window.look("actors/shelf?versions=200&earlier=1")
            #expect(try await overview["shown"]["status"].text == "serving")
            #expect(try await followed["path"].text == "actors/shelf?versions=200&earlier=1")
            async let versions = window.first("observeView") { shown in
                shown["shown"]["recorded"]["versions"].list.count { !$0["calls"].list.isEmpty } == 3
            }
            for title in ["a", "b", "c"] { _ = try await shelf.put(title) }
            let made = try await versions["shown"]["recorded"]["versions"].list
            #expect(made.first?["calls"].list.first?["method"].text == "put(_:)")
            // From now on the window shows another path.
            async let calls = window.first("observeView") { $0["path"].text == "calls?limit=5" }
            try await window.look("calls?limit=5")
            #expect(try await calls["shown"]["calls"].list.first?["actor"].text == "shelf")
            async let gone = window.first("observeView") { $0["status"].count == 404 }
            try await window.look("actors/nobody")
            #expect(try await gone["shown"]["error"].text != nil)
            await window.client.close()
        }
    }

    @Test("the log of one connection or one actor has only lines about it")
    func log() async throws {
        try await InspectorRig.with { server in
            await server.expose(Shelf(actorSystem: server.actorSystem), as: "other")
        } _: { client, server, rig async throws in
            _ = try await rig.json("/inspect/log")
            let second = TrebuchetClient(
                transport: .webSocket(host: "127.0.0.1", port: try #require(server.address).port))
            try await second.connect()
            let shelf = try second.resolve(Shelf.self, id: "shelf")
            #expect(try await shelf.put("a secret") == 1)
            var books = await shelf.observeBooks().makeAsyncIterator()
            #expect(await books.next() == ["a secret"])
            await #expect(throws: TrebuchetError.self) { try await shelf.refuse("c") }
            _ = try await client.resolve(Shelf.self, id: "other").put("b")
            await second.close()
            let number = try #require(
                try await rig.json("/inspect/log?actor=shelf")["lines"].list.first?["fields"]["connection"].count)
            let isClosed = try await eventually {
                try await rig.json("/inspect/log?connection=\(number)")["lines"].list.contains {
                    $0["message"].text == "connection closed"
                }
            }
            #expect(isClosed)
            let lines = try await rig.json("/inspect/log?connection=\(number)")["lines"].list
            #expect(lines.allSatisfy { $0["fields"]["connection"].count == number })
            #expect(
                lines.reversed().map { $0["message"].text }.prefix(4) == [
                    "connection opened", "call ended", "stream started", "call failed",
                ])
            #expect(lines.contains { $0["fields"]["error"].text == "application" })
            let ofActor = try await rig.json("/inspect/log?actor=shelf")["lines"].list
            #expect(!ofActor.isEmpty && ofActor.allSatisfy { $0["fields"]["actor"].text == "shelf" })
            let all = try await rig.json("/inspect/log?limit=500")
            #expect(all["lines"].list.contains { $0["fields"]["actor"].text == "other" })
            #expect(!InspectorRig.body(try await rig.answer("/inspect/log")).contains("secret"))
            let later = try await rig.json("/inspect/log?after=\(try #require(all["last"].count))")
            #expect(later["lines"].list.allSatisfy { $0["number"].count ?? 0 > all["last"].count ?? 0 })
        }
    }

    @Test("without write permission nothing is changed, and unknown paths are refused")
    func refused() async throws {
        try await InspectorRig.with { client, _, rig async throws in
            let window = try await Window(rig)
            for (method, arguments) in [
                ("call(_:_:_:_:)", [#""shelf""#, #""put(_:)""#, #""[\"a\"]""#, "null"]), ("closeConnection(_:)", ["1"]),
            ] {
                let refusal = await #expect(throws: TrebuchetError.self) {
                    _ = try await window.client.call(
                        actor: window.name, target: method, arguments: arguments.map { Array($0.utf8) })
                }
                #expect(refusal?.code == .unauthorized)
            }
            for path in ["nothing", "actors?page=-1", "actors/", "actors/%zz", "../overview"] {
                let refusal = await #expect(throws: TrebuchetError.self) { try await window.look(path) }
                #expect(refusal?.code == .invalidArguments, "\(path)")
            }
            // Neither actors of the server at the inspector, nor those of the inspector at the server.
            await #expect(throws: TrebuchetError.self) {
                _ = try await window.client.resolve(Shelf.self, id: "shelf").put("a")
            }
            let other = await #expect(throws: TrebuchetError.self) {
                _ = try await client.call(actor: window.name, target: "select(path:)", arguments: [Array("\"\"".utf8)])
            }
            #expect(other?.code == .actorNotFound)
            await window.client.close()
        }
    }

    @Test("with write permission a method is called, and a connection is closed")
    func writes() async throws {
        try await InspectorRig.with(writes: true) { client, _, rig async throws in
            let window = try await Window(rig)
            let answer = try await window.call(
                "call(_:_:_:_:)", #""shelf""#, #""put(_:)""#, #""[\"a\"]""#, #""ada""#)
            #expect(answer["shown"]["result"].count == 1)
            let connections = try await rig.json("/inspect/connections")["connections"].list
            _ = try await window.call("closeConnection(_:)", "\(try #require(connections.first?["connection"].count))")
            let gone = await #expect(throws: TrebuchetError.self) {
                _ = try await window.call("closeConnection(_:)", "999999")
            }
            #expect(gone?.code == .actorNotFound)
            #expect(try await client.resolve(Shelf.self, id: "shelf").put("b") == 2)
            await window.client.close()
        }
    }

    @Test("a WebSocket needs the token, and is refused to other origins and host names")
    func attacks() async throws {
        try await InspectorRig.with { _, _, rig async throws in
            let token = rig.inspector.token
            let port = rig.address.port
            func upgrade(_ protocols: String, host: String = "localhost", _ fields: String...) async throws -> String {
                let peer = try RawPeer(rig.address)
                let lines = ["Host: \(host)", "Sec-WebSocket-Protocol: \(protocols)"] + fields
                peer.writeText(
                    "GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                        + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\(lines.joined(separator: "\r\n"))\r\n\r\n")
                return await peer.readHead()
            }
            for protocols in [
                "trebuchet.v3", "trebuchet.v3, bearer.x", "trebuchet.v3, bearer.\(token.dropLast())",
                "trebuchet.v3, bearer.\(token)0", "trebuchet.v3, \(token)",
            ] {
                #expect(InspectorRig.status(try await upgrade(protocols)) == "401", "\(protocols)")
            }
            let right = "trebuchet.v3, bearer.\(token)"
            #expect(InspectorRig.status(try await upgrade(right)) == "101")
            #expect(
                InspectorRig.status(
                    try await upgrade(right, host: "localhost:\(port)", "Origin: http://localhost:\(port)")) == "101")
            for origin in ["https://evil.example", "null", "http://localhost:1", "https://localhost:\(port)"] {
                let answer = try await upgrade(right, host: "localhost:\(port)", "Origin: \(origin)")
                #expect(InspectorRig.status(answer) == "403", "\(origin)")
            }
            for host in ["evil.example", "evil.example:\(port)", "192.0.2.1"] {
                #expect(InspectorRig.status(try await upgrade(right, host: host)) == "403", "\(host)")
                #expect(
                    InspectorRig.status(try await upgrade(right, host: host, "Origin: http://\(host)")) == "403")
            }
            await #expect(throws: TransportError.self) { try await Window(rig, token: "0123456789abcdef") }
        }
    }
}
