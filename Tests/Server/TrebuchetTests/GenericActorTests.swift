import Testing
import Trebuchet
import TrebuchetTesting

/// A value of any type.
@Trebuchet
distributed actor Box<Value: Codable & Sendable> {
    struct Contents: Codable, Sendable {
        var values: [Value] = []
    }

    @StreamedState var contents: Contents = Contents()

    distributed func put(_ value: Value) -> Int {
        contents.values.append(value)
        return contents.values.count
    }
    distributed func putLater(_ value: Value) async -> Int {
        await Task.yield()
        return put(value)
    }
    @Idempotent
    distributed func putOnce(_ value: Value) -> Int { put(value) }
    distributed func newest() -> Value? { contents.values.last }
    distributed func repeated<Other: Codable & Sendable>(_ other: Other) -> [Other] {
        contents.values.map { _ in other }
    }
}

@Suite(.timeLimit(.minutes(5))) struct GenericActorTests {
    @Test("a generic actor is called and observed like any other, with its own types", arguments: TestLink.allCases)
    func box(link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            await server.expose(Box<Int>(actorSystem: server.actorSystem), as: "numbers")
            await server.expose(Box<ListState>(actorSystem: server.actorSystem), as: "lists")
        } body: { client, _ in
            let numbers = try client.resolve(Box<Int>.self, id: "numbers")
            #expect(try await numbers.put(17) == 1)
            #expect(try await numbers.putLater(18) == 2)
            #expect(try await numbers.putOnce(19) == 3)
            #expect(try await numbers.newest() == 19)
            #expect(try await numbers.repeated("x") == ["x", "x", "x"])
            let lists = try client.resolve(Box<ListState>.self, id: "lists")
            #expect(try await lists.put(ListState(items: ["a"])) == 1)
            #expect(try await lists.newest() == ListState(items: ["a"]))
            var seen = await numbers.observeContents().makeAsyncIterator()
            #expect(await seen.next()?.values == [17, 18, 19])
            #expect(try await numbers.put(20) == 4)
            #expect(await seen.next()?.values == [17, 18, 19, 20])
        }
    }

    @Test("an argument of another generic type is rejected")
    func wrongType() async throws {
        try await withTestServer { server in
            await server.expose(Box<Int>(actorSystem: server.actorSystem), as: "numbers")
        } body: { client, _ in
            let texts = try client.resolve(Box<String>.self, id: "numbers")
            let error = await #expect(throws: TrebuchetError.self) { _ = try await texts.put("x") }
            #expect(error?.code == .invalidArguments)
        }
    }
}
