import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Calls lists by name.
@Trebuchet
private distributed actor NameReportingActor {
    private let journal: Journal

    init(journal: Journal, actorSystem: TrebuchetActorSystem) {
        self.journal = journal
        self.actorSystem = actorSystem
    }

    distributed func carry(_ title: String, to list: String) async throws -> Int {
        try await actorSystem.resolve(TodoList.self, id: list).add(title: title)
    }
    distributed func read(_ list: String) async throws -> [String] {
        let states = try await actorSystem.resolve(TodoList.self, id: list).observeState()
        return await states.first { _ in true }?.items ?? []
    }
    func deactivate() async throws {
        let count = try await actorSystem.resolve(TodoList.self, id: "lists/last").add(title: "goodbye")
        journal.record("said goodbye: \(count)")
    }
}

/// Server actors that call and observe other actors by name.
@Suite(.timeLimit(.minutes(5))) struct ActorsByNameTests {
    private let journal = Journal()

    private func expose(_ server: TrebuchetServer) async {
        let (system, journal) = (server.actorSystem, journal)
        server.expose(NameReportingActor.self, as: "porters/*") { _ in
            NameReportingActor(journal: journal, actorSystem: system)
        }
        server.expose(TodoList.self, as: "lists/*", idle: .seconds(3_600)) { _ in TodoList(actorSystem: system) }
        await server.expose(TodoList(actorSystem: system), as: "fixed")
    }

    @Test("an on-demand actor is activated when another actor calls or observes it", arguments: TestLink.allCases)
    func onDemand(link: TestLink) async throws {
        try await withTestServer(link: link, reactors: 2) { server in
            await expose(server)
        } body: { client, server in
            let porter = try client.resolve(NameReportingActor.self, id: "porters/1")
            #expect(try await porter.read("lists/1") == [])
            for list in ["lists/1", "lists/2", "fixed"] {
                #expect(try await porter.carry("a", to: list) == 1)
                #expect(try await porter.carry("b", to: list) == 2)
                #expect(try await porter.read(list) == ["a", "b"])
                #expect(try await client.resolve(TodoList.self, id: list).add(title: "c") == 3)
            }
            let error = await #expect(throws: TrebuchetError.self) { try await porter.carry("a", to: "nowhere") }
            #expect(error?.code == .actorNotFound)
            // The server's internal connections do not count as client connections.
            #expect(await server.connectionCount == 1)
        }
    }

    @Test("deactivate() can call other actors during shutdown, and the server is freed afterwards")
    func end() async throws {
        weak var system: TrebuchetActorSystem?
        do {
            let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2)
            system = server.actorSystem
            await expose(server)
            try await server.start()
            let client = TrebuchetClient(transport: .local(server))
            try await client.connect()
            #expect(try await client.resolve(NameReportingActor.self, id: "porters/1").carry("a", to: "lists/1") == 1)
            await client.close()
            await server.shutdown(drain: .zero)
            #expect(journal.entries == ["said goodbye: 1"])
        }
        #expect(await eventually { system == nil })
    }

    @Test("a call through a freed server fails with a clear error")
    func freedServer() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        await expose(server)
        try await server.start()
        let list = try server.actorSystem.resolve(TodoList.self, id: "lists/1")
        #expect(try await list.add(title: "a") == 1)
        await server.shutdown(drain: .zero)
        let error = await #expect(throws: TrebuchetError.self) { try await list.add(title: "b") }
        #expect(error?.code == .unavailable)
    }
}
