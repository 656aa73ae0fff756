import Testing
import Trebuchet
import TrebuchetTesting

@Suite(.timeLimit(.minutes(5))) struct ReferenceTests {
    @Test("an actor that a call returns can be called, observed and passed back", arguments: TestLink.allCases)
    func returned(link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            await server.expose(Registry(actorSystem: server.actorSystem), as: "registry")
        } body: { client, _ in
            let registry = try client.resolve(Registry.self, id: "registry")
            let list = try await registry.make()
            var states = await list.observeState().makeAsyncIterator()
            #expect(await states.next()?.items == [])
            #expect(try await list.add(title: "by the client") == 1)
            #expect(await states.next()?.items == ["by the client"])
            #expect(try await registry.fill(list, title: "by the server") == 2)
            #expect(await states.next()?.items == ["by the client", "by the server"])
            #expect(try await registry.isOurs(list))
        }
    }

    @Test("an exposed actor is passed by its name", arguments: TestLink.allCases)
    func exposed(link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            await server.expose(Registry(actorSystem: server.actorSystem), as: "registry")
            await server.expose(TodoList(actorSystem: server.actorSystem), as: "todos")
        } body: { client, _ in
            let registry = try client.resolve(Registry.self, id: "registry")
            let list = try client.resolve(TodoList.self, id: "todos")
            #expect(try await registry.fill(list, title: "x") == 1)
            let isOurs = try await registry.isOurs(list)
            #expect(!isOurs)
        }
    }

    @Test("a client that has only the protocol can call and observe", arguments: TestLink.allCases)
    func resolvable(link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            await server.expose(TodoList(actorSystem: server.actorSystem), as: "todos")
        } body: { client, _ in
            let list: some TodoListing = try client.resolve($TodoListing.self, id: "todos")
            var states = await list.observeState().makeAsyncIterator()
            #expect(await states.next()?.items == [])
            #expect(try await list.add(title: "Milk") == 1)
            #expect(await states.next()?.items == ["Milk"])
        }
    }
}
