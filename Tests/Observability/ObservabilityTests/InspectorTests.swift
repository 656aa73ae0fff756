import TestSupport
import Testing
import Transports
import Trebuchet
import TrebuchetInspector
import TrebuchetTesting

/// The data shown by the inspector.
@Suite(.timeLimit(.minutes(5))) struct InspectorTests {
    @Test("the overview shows counters and connections")
    func overview() async throws {
        try await InspectorRig.with { client, _, rig async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            _ = try await shelf.put("a")
            _ = try await shelf.putLater("b")
            await #expect(throws: TrebuchetError.self) { try await shelf.refuse("c") }
            let shown = try await rig.json("/inspect/overview")
            #expect(shown["status"].text == "serving" && shown["ready"].flag == true)
            #expect(shown["connections"].count == 1 && shown["actors"].count == 1)
            #expect(shown["errors"]["application"].count == 1 && shown["errors"]["internal"].count == 0)
            #expect(shown["reactors"].list.count == 2)
            #expect(shown["calls"]["bounds"].list.count + 1 == shown["calls"]["buckets"].list.count)
            let methods = shown["methods"].list.filter { $0["type"].text == "ObservabilityTests.Shelf" }
            #expect(Set(methods.compactMap { $0["method"].text }) == ["put(_:)", "putLater(_:)", "refuse(_:)"])
            #expect((shown["process"]["residentBytes"].count ?? 0) > 1 << 20)
        }
    }

    @Test("connections are shown in pages, with address, principal, streams and buffered bytes")
    func connections() async throws {
        try await InspectorRig.with { client, server, rig async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            var seen = await shelf.observeBooks().makeAsyncIterator()
            #expect(await seen.next() == [])
            let other = TrebuchetClient(
                transport: .webSocket(host: "127.0.0.1", port: try #require(server.address).port))
            try await other.connect()
            let shown = try await rig.json("/inspect/connections")
            #expect(shown["found"].count == 2 && shown["pages"].count == 1)
            let connections = shown["connections"].list
            #expect(connections.map { $0["streams"].count } == [1, 0])
            #expect(connections.allSatisfy { $0["address"].text?.hasPrefix("127.0.0.1:") == true })
            #expect(connections.allSatisfy { $0["writable"].flag == true && $0["draining"].flag == false })
            let numbers = connections.map { $0["connection"].count }
            for page in 0...1 {
                let part = try await rig.json("/inspect/connections?page=\(page)&size=1")
                #expect(part["connections"].list.map { $0["connection"].count } == [numbers[page]])
                #expect(part["pages"].count == 2)
            }
            #expect(try await rig.json("/inspect/connections?page=2&size=1")["connections"].list.isEmpty)
            await other.close()
        }
    }

    @Test("very many actors are shown in pages, searchable by name and type, sorted by name")
    func actors() async throws {
        let many = 20_000
        try await InspectorRig.with { server in
            let system = server.actorSystem
            await server.expose(BlockingActor(actorSystem: system), as: "holder")
            server.expose(Shelf.self, as: "made/*") { _ in Shelf(actorSystem: system) }
            // In parallel, a part of them in each task.
            await withTaskGroup(of: Void.self) { group in
                for part in 0..<16 {
                    group.addTask {
                        for number in stride(from: part, to: many, by: 16) {
                            await server.expose(Shelf(actorSystem: system), as: "many/\(1_000_000 + number)")
                        }
                    }
                }
            }
        } _: { client, _, rig async throws in
            _ = try await client.resolve(Shelf.self, id: "made/one").put("a")
            let all = try await rig.json("/inspect/actors")
            #expect(all["all"].count == many + 3 && all["found"].count == many + 3)
            #expect(all["actors"].list.count == 100 && all["pages"].count == many / 100 + 1)
            #expect(all["actors"].list[0]["name"].text == "holder" && all["actors"].list[1]["name"].text == "made/one")
            #expect(all["actors"].list.map { $0["onDemand"].flag }.prefix(3) == [false, true, false])
            let types = all["types"].list
            #expect(types.map { $0["type"].text } == ["ObservabilityTests.BlockingActor", "ObservabilityTests.Shelf"])
            #expect(types.map { $0["actors"].count } == [1, many + 2])
            #expect(all["patterns"].list.map { $0["names"].text } == ["made/*"])
            let last = try await rig.json("/inspect/actors?page=\(many / 100 - 1)&size=100&search=many%2F")
            #expect(last["found"].count == many)
            #expect(
                last["actors"].list.compactMap { $0["name"].text }
                    == (0..<100).map { "many/\(1_000_000 + many - 100 + $0)" })
            let found = try await rig.json("/inspect/actors?search=017777&type=Shelf")
            #expect(found["actors"].list.map { $0["name"].text } == ["many/1017777"])
            #expect(found["actors"].list[0]["reactor"].text != nil)
            let none = try await rig.json("/inspect/actors?type=helf")
            #expect(none["found"].count == 0 && none["actors"].list.isEmpty)
            let holders = try await rig.json("/inspect/actors?type=ObservabilityTests.BlockingActor")
            #expect(holders["actors"].list.map { $0["name"].text } == ["holder"])
        }
    }

    @Test("the store is shown if there is one, and the nodes of a cluster")
    func storeAndNodes() async throws {
        try await InspectorRig.with { _, _, rig async throws in
            #expect(try await rig.json("/inspect/store")["store"]["type"].text == nil)
            #expect(try await rig.json("/inspect/nodes")["nodes"].list.isEmpty)
        }
        try await InspectorRig.with(store: MemoryStore()) { server in
            await server.expose(PersistedShelf(actorSystem: server.actorSystem), as: "kept")
        } _: { client, _, rig async throws in
            _ = try await client.resolve(PersistedShelf.self, id: "kept").put("a")
            let store = try await rig.json("/inspect/store")["store"]
            #expect(store["type"].text == "MemoryStore" && store["writes"].count == 1)
            #expect(store["failures"].count == 0 && store["failing"].text == nil)
        }
    }

    @Test("an invalid request is answered with the problem, and unknown actors are not created")
    func wrong() async throws {
        try await InspectorRig.with { server in
            let system = server.actorSystem
            server.expose(Shelf.self, as: "made/*") { _ in Shelf(actorSystem: system) }
        } _: { _, _, rig async throws in
            for (path, status) in [
                ("/inspect/actors?page=-1", "400"), ("/inspect/actors?page=x", "400"),
                ("/inspect/actors?size=0", "400"), ("/inspect/actors?size=1001", "400"),
                ("/inspect/actors?search=%2", "400"), ("/inspect/actors/%zz", "400"),
                ("/inspect/calls?limit=2001", "400"), ("/inspect/calls?after=-1", "400"),
                ("/inspect/actors/shelf?versions=201", "400"), ("/inspect/actors/nobody", "404"),
                ("/inspect/actors/made/one", "404"), ("/inspect/actors/", "404"), ("/inspect", "404"),
                ("/inspect/actors/shelf/call", "404"),
                ("/inspect/overview/", "404"), ("/metrics", "404"),
            ] {
                let answer = try await rig.answer(path)
                #expect(InspectorRig.status(answer) == status, "\(path)")
                #expect(InspectorRig.body(answer).hasPrefix(#"{"error":""#), "\(path)")
            }
            #expect(try await rig.json("/inspect/actors?search=made")["found"].count == 0)
        }
    }

    @Test("a server has at most one inspector, none after its end, and a new token each time")
    func one() async throws {
        let server = TrebuchetServer(transport: .webSocket(port: 0), log: nil)
        let inspector = try server.openInspector()
        #expect(inspector.address.host == "127.0.0.1")
        #expect(inspector.token.utf8.count == 52)
        #expect(inspector.urlWithToken == "http://\(inspector.address)/#token=\(inspector.token)")
        #expect(throws: TransportError.self) { try server.openInspector() }
        // Beside the admin endpoint.
        try server.openAdmin(port: 0)
        await server.shutdown()
        #expect(throws: (any Error).self) { try RawPeer(inspector.address) }
        #expect(throws: TransportError.self) { try server.openInspector() }
        let other = TrebuchetServer(transport: .webSocket(port: 0), log: nil)
        #expect(try other.openInspector().token != inspector.token)
        await other.shutdown()
    }
}
