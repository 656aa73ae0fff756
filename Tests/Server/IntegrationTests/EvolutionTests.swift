import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Old apps at new servers, and new apps at old servers.
@Suite(.timeLimit(.minutes(5))) struct EvolutionTests {
    private final class Reports: Sendable {
        let values = Mutex<[UndecodableValue]>([])
    }

    private let reports = Reports()

    private var reported: [UndecodableValue] { reports.values.withLock { $0 } }

    private enum Build: CaseIterable { case version1, version2, version3 }

    /// Runs a server of one version with a client for apps of any version.
    private func withServer(
        _ build: Build, _ link: TestLink = .webSocket, store: MemoryStore = MemoryStore(),
        isolation: isolated (any Actor)? = #isolation, _ body: (TrebuchetClient) async throws -> Void
    ) async throws {
        var options = TrebuchetClient.Options()
        options.onUndecodable = { [reports] value in reports.values.withLock { $0.append(value) } }
        try await withTestServer(link: link, reactors: 1, options: options, store: store) { server in
            switch build {
            case .version1: await server.expose(Version1.TodoList(actorSystem: server.actorSystem), as: "todos")
            case .version2: await server.expose(Version2.TodoList(actorSystem: server.actorSystem), as: "todos")
            case .version3: await server.expose(Version3.TodoList(actorSystem: server.actorSystem), as: "todos")
            }
        } body: { (client, _) async throws in
            try await body(client)
        }
    }

    private func app1(_ client: TrebuchetClient) throws -> Version1.TodoList {
        try client.resolve(Version1.TodoList.self, id: "todos")
    }

    private func app2(_ client: TrebuchetClient) throws -> Version2.TodoList {
        try client.resolve(Version2.TodoList.self, id: "todos")
    }

    private func app3(_ client: TrebuchetClient) throws -> Version3.TodoList {
        try client.resolve(Version3.TodoList.self, id: "todos")
    }

    private func first(_ list: Version1.TodoList) async -> [Version1.Todo]? {
        var todos = await list.observeTodos().makeAsyncIterator()
        return await todos.next()
    }

    private func first(_ list: Version2.TodoList) async -> [Version2.Todo]? {
        var todos = await list.observeTodos().makeAsyncIterator()
        return await todos.next()
    }

    private func first(_ list: Version3.TodoList) async -> [Version3.Todo]? {
        var todos = await list.observeTodos().makeAsyncIterator()
        return await todos.next()
    }

    @Test(
        "an app ignores a member that it does not know, and an optional one may be missing",
        arguments: TestLink.allCases)
    func addedMember(link: TestLink) async throws {
        try await withServer(.version2, link) { (client) async throws in
            try await app2(client).replaceTodos([
                .init(title: "Milk", text: "Milk", priority: .known(.high), note: "2 l")
            ])
            #expect(try await first(app1(client))?.map(\.title) == ["Milk"])
        }
        try await withServer(.version1, link) { (client) async throws in
            try await app1(client).addTodo(title: "Milk")
            let todos = try await first(app2(client))
            #expect(todos?.count == 1 && todos?[0].note == nil)
        }
        #expect(reported.isEmpty)
    }

    @Test("a new method is missing at an old server, and a removed one at a new server", arguments: TestLink.allCases)
    func methods(link: TestLink) async throws {
        try await withServer(.version1, link) { (client) async throws in
            let error = await #expect(throws: TrebuchetError.self) {
                try await self.app2(client).add(text: "Milk", priority: .low)
            }
            #expect(error?.code == .methodNotFound)
        }
        try await withServer(.version2, link) { (client) async throws in
            // The old name still works.
            try await app1(client).addTodo(title: "Milk")
            try await app2(client).add(text: "Tea", priority: .low)
            #expect(try await first(app2(client))?.map(\.text) == ["Milk", "Tea"])
        }
        try await withServer(.version3, link) { (client) async throws in
            try await app2(client).add(text: "Tea", priority: .low)
            let error = await #expect(throws: TrebuchetError.self) {
                try await self.app1(client).addTodo(title: "Milk")
            }
            #expect(error?.code == .methodNotFound)
        }
    }

    @Test("a case that an app does not know is one unknown value, which it can send back", arguments: TestLink.allCases)
    func addedCase(link: TestLink) async throws {
        try await withServer(.version2, link) { (client) async throws in
            let old = try app1(client)
            let changes = await old.observeChanges()
            #expect(await eventually { changes.bookmark != nil })
            try await app2(client).add(text: "Fire", priority: .urgent)
            try await app2(client).add(text: "Milk", priority: .low)
            let todos = try #require(await first(old))
            #expect(todos.map(\.priority) == [.unknown(.string("urgent")), .known(.low)])
            #expect(todos.map(\.priority.value) == [nil, .low])

            try await old.replaceTodos(todos)
            #expect(try await first(app2(client))?.map(\.priority) == [.known(.urgent), .known(.low)])
            var events = changes.makeAsyncIterator()
            var received: [Tolerant<Version1.Change>] = []
            for _ in 0..<3 { received.append(try #require(try await events.next())) }
            #expect(received == [.known(.added), .known(.added), .unknown(.string("replaced"))])
            #expect(changes.bookmark?.sequence == 3)
        }
        try await withServer(.version1, link) { (client) async throws in
            try await app2(client).replaceTodos([.init(title: "Fire", text: "Fire", priority: .known(.urgent))])
            #expect(try await first(app2(client))?.map(\.priority) == [.known(.urgent)])
            #expect(try await first(app1(client))?.map(label) == ["unknown: \(JSONValue.string("urgent"))"])
        }
        #expect(reported.isEmpty)
    }

    private func label(_ todo: Version1.Todo) -> String {
        switch todo.priority {
        case .known(let priority): return priority.rawValue
        case .unknown(let json): return "unknown: \(json)"  // "urgent", from a newer server
        }
    }

    @Test("an old app cannot send a value without a new required member, and a new app cannot read it")
    func requiredMember() async throws {
        try await withServer(.version3) { (client) async throws in
            let error = await #expect(throws: TrebuchetError.self) {
                try await self.app1(client).replaceTodos([.init(title: "Milk", priority: .known(.low))])
            }
            #expect(error?.code == .invalidArguments)
        }
        try await withServer(.version1) { (client) async throws in
            try await app1(client).addTodo(title: "Milk")
            let stream = try await app3(client).observeTodos()
            let reader = Task {
                var todos = stream.makeAsyncIterator()
                return await todos.next()
            }
            #expect(await eventually { stream.decodingError != nil })
            try await app1(client).replaceTodos([])
            #expect(await reader.value?.isEmpty == true)
        }
        #expect(reported.map(\.kind) == [.state])
    }

    @Test("a member is renamed in two steps, each with the version before", arguments: TestLink.allCases)
    func renamedMember(link: TestLink) async throws {
        try await withServer(.version2, link) { (client) async throws in
            try await app2(client).add(text: "Milk", priority: .low)
            #expect(try await first(app1(client))?.map(\.title) == ["Milk"])
            #expect(try await first(app3(client))?.map(\.text) == ["Milk"])
        }
        try await withServer(.version3, link) { (client) async throws in
            try await app3(client).add(text: "Milk", priority: .low)
            #expect(try await first(app2(client))?.map(\.text) == ["Milk"])
        }
        #expect(reported.isEmpty)
        // An app that missed the second version has no value, and keeps running.
        try await withServer(.version3, link) { (client) async throws in
            try await app3(client).add(text: "Milk", priority: .low)
            let stream = try await app1(client).observeTodos()
            let reader = Task {
                var todos = stream.makeAsyncIterator()
                return await todos.next()
            }
            #expect(await eventually { stream.decodingError != nil })
            #expect(stream.decodingError?.message.contains("'title'") == true, "\(stream.decodingError?.message ?? "")")
            try await app3(client).replaceTodos([])
            #expect(await reader.value?.isEmpty == true)
        }
        #expect(reported.map(\.kind) == [.state])
    }

    @Test("stored states pass through the migrations of all newer versions, and older servers refuse them")
    func stored() async throws {
        for versions in [[Build.version1, .version2, .version3], [.version1, .version3]] {
            let store = MemoryStore()
            for build in versions {
                try await withServer(build, store: store) { (client) async throws in
                    if build == .version1 {
                        try await app1(client).addTodo(title: "Milk")
                    } else {
                        #expect(try await first(app3(client))?.map(\.text) == ["Milk"])
                    }
                }
            }
            try await withServer(.version1, store: store) { (client) async throws in
                let error = await #expect(throws: TrebuchetError.self) {
                    try await self.app1(client).addTodo(title: "Tea")
                }
                #expect(error?.code == .internal)
            }
            try await withServer(.version3, store: store) { (client) async throws in
                #expect(try await first(app3(client))?.map(\.text) == ["Milk"])
            }
        }
    }
}
