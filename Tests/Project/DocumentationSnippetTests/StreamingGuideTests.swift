import Testing
import Trebuchet

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The usage examples of the streaming guide, run against a real server.
@Suite struct StreamingGuideTests {
    private func started(_ prepare: (TrebuchetServer) async -> Void) async throws -> (TrebuchetServer, Int) {
        let server = TrebuchetServer(transport: .webSocket(host: "localhost", port: 0))
        await prepare(server)
        return (server, try await server.start().port)
    }

    @Test("a manual subscription prints the todos as they are added")
    func manualSubscription() async throws {
        let (server, port) = try await started { server in
            await server.expose(TodoList(actorSystem: server.actorSystem), as: "todos")
        }
        let client = TrebuchetClient(transport: .webSocket(host: "localhost", port: port))
        try await client.connect()

        let todoList = try client.resolve(TodoList.self, id: "todos")
        let stream = await todoList.observeState()

        var counts: [Int] = []
        for await state in stream {
            counts.append(state.todos.count)
            if state.todos.count == 3 { break }
            _ = try await todoList.addTodo(title: "Milk")
        }
        #expect(counts == [0, 1, 2, 3])
        await client.close()
        await server.shutdown()
    }

    @Test("each streamed property of an actor is observed by its own name, also through a key path")
    func severalProperties() async throws {
        let (server, port) = try await started { server in
            await server.expose(GameServer(actorSystem: server.actorSystem), as: "game")
        }
        let client = TrebuchetClient(transport: .webSocket(host: "localhost", port: port))
        try await client.connect()
        let game = try client.resolve(GameServer.self, id: "game")

        let observe = \GameServer.observeGameState
        var states = await game[keyPath: observe]().makeAsyncIterator()
        var metrics = await game.observeMetrics().makeAsyncIterator()
        #expect(await states.next()?.level == 1)
        #expect(await metrics.next()?.levels == 0)
        try await game.advanceLevel()
        #expect(await states.next()?.level == 2)
        #expect(await metrics.next()?.levels == 1)
        #expect(GameServer.StreamingMethod.allCases.map(\.rawValue) == ["observeGameState", "observeMetrics"])
        await client.close()
        await server.shutdown()
    }

    @Test("a stream by the property's name provides the encoded values")
    func encodedStream() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "localhost", port: 0))
        let counter = Counter(actorSystem: server.actorSystem)
        let found = await counter.whenLocal { await $0._getStream(for: "state") } ?? nil
        var values = try #require(found).makeAsyncIterator()
        let first = try #require(await values.next())
        #expect(try JSONDecoder().decode(Counter.State.self, from: first).count == 0)
        try await counter.increment()
        let second = try #require(await values.next())
        #expect(try JSONDecoder().decode(Counter.State.self, from: second).count == 1)
        let none = await counter.whenLocal { await $0._getStream(for: "nothing") } ?? nil
        #expect(none == nil)
    }
}
