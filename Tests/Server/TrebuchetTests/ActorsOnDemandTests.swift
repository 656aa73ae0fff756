import Synchronization
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet

@Suite(.timeLimit(.minutes(5))) struct ActorsOnDemandTests {
    @Test("concurrent first calls of many clients activate one actor", arguments: TestLink.allCases)
    func oneActor(link: TestLink) async throws {
        let journal = Journal()
        try await withTestServer(link: link, reactors: 2) { server in
            let system = server.actorSystem
            server.expose(TodoList.self, as: "lists/*") { id in
                journal.record(id)
                await Task.yield()
                return TodoList(actorSystem: system)
            }
        } body: { client, server in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<16 {
                    group.addTask {
                        let other = TrebuchetClient(transport: .local(server))
                        try await other.connect()
                        _ = try await other.resolve(TodoList.self, id: "lists/7").add(title: "\(index)")
                        await other.close()
                    }
                }
                try await group.waitForAll()
            }
            let states = await (try client.resolve(TodoList.self, id: "lists/7")).observeState()
            #expect(await states.first { _ in true }?.items.count == 16)
            #expect(journal.entries == ["lists/7"])
        }
    }

    @Test("an on-demand actor can be observed before its first call", arguments: TestLink.allCases)
    func observedFirst(link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            let system = server.actorSystem
            server.expose(TodoList.self, as: "lists/*") { _ in TodoList(actorSystem: system) }
        } body: { client, _ in
            let list = try client.resolve(TodoList.self, id: "lists/1")
            var states = await list.observeState().makeAsyncIterator()
            #expect(await states.next()?.items == [])
            _ = try await list.add(title: "a")
            #expect(await states.next()?.items == ["a"])
        }
    }

    @Test("an error of the factory reaches the caller, and the next call tries again", arguments: TestLink.allCases)
    func factoryThrows(link: TestLink) async throws {
        let counted = Counted()
        try await withTestServer(link: link) { server in
            let system = server.actorSystem
            server.expose(TodoList.self, as: "lists/*") { id in
                let attempt = counted.next()
                guard attempt > 1 else { throw Closed(reason: id) }
                return TodoList(actorSystem: system)
            }
        } body: { client, _ in
            client.register(errors: Closed.self)
            let list = try client.resolve(TodoList.self, id: "lists/1")
            await #expect(throws: Closed(reason: "lists/1")) { try await list.add(title: "a") }
            #expect(try await list.add(title: "a") == 1)
        }
    }

    @Test("calls that wait for an activation keep their order", arguments: TestLink.allCases)
    func order(link: TestLink) async throws {
        let journal = Journal()
        try await withTestServer(link: link) { server in
            exposeLists(on: server, until: journal)
        } body: { client, _ in
            let list = try client.resolve(TodoList.self, id: "lists/1")
            // `immediate`: each call is sent before the next task starts.
            var calls: [Task<Int, any Error>] = []
            for index in 1...50 {
                calls.append(
                    Task.immediate {
                        index.isMultiple(of: 3)
                            ? try await list.addLater(title: "\(index)") : try await list.add(title: "\(index)")
                    })
            }
            journal.record("go")
            for call in calls { _ = try await call.value }
            let items = await list.observeState().first { _ in true }?.items ?? []
            // Methods that suspend may be overtaken once they have started; methods that do not suspend run in order.
            #expect(items.count == 50)
            let sync = items.compactMap(Int.init).filter { !$0.isMultiple(of: 3) }
            #expect(sync == sync.sorted())
        }
    }

    @Test("streams whose readers leave before the activation do not count any more", arguments: TestLink.allCases)
    func leftBeforeStart(link: TestLink) async throws {
        let journal = Journal()
        try await withTestServer(link: link) { server in
            exposeLists(on: server, until: journal)
        } body: { client, server in
            let list = try client.resolve(TodoList.self, id: "lists/1")
            let states = await list.observeState()
            for _ in 0..<40 { _ = await list.observeState() }
            // A client cancels a request in a task, which may run behind the next requests.
            #expect(await eventually { server.context.quotas.count(.streams) == 1 })
            journal.record("go")
            #expect(await states.first { _ in true }?.items == [])
        }
    }

    @Test("activations beyond the limit are rejected; existing actors continue to work")
    func limit() async throws {
        var limits = ServerLimits()
        limits.activatedActors = 2
        let handler = DirectoryReader()
        try await withTestServer(limits: limits) { server in
            handler.server = server
            server.addEventHandler(handler)
            let system = server.actorSystem
            server.expose(TodoList.self, as: "lists/*") { _ in TodoList(actorSystem: system) }
        } body: { client, server in
            for id in ["lists/1", "lists/2", "lists/1"] {
                _ = try await client.resolve(TodoList.self, id: id).add(title: "a")
            }
            let third = try client.resolve(TodoList.self, id: "lists/3")
            let error = await #expect(throws: TrebuchetError.self) { try await third.add(title: "a") }
            #expect(error?.code == .rateLimited)
            #expect(handler.counts == [2], "the directory is not locked while the limit is reported")
            await server.unexpose("lists/1")
            #expect(try await third.add(title: "a") == 1)
        }
    }

    /// Exposes lists whose activation waits until the journal has `go`.
    private func exposeLists(on server: TrebuchetServer, until journal: Journal) {
        let system = server.actorSystem
        server.expose(TodoList.self, as: "lists/*") { _ in
            await journal.wait(for: "go")
            return TodoList(actorSystem: system)
        }
    }

    /// Reads the directory of a server when a limit is reached.
    private final class DirectoryReader: ServerEventHandler {
        private struct State {
            weak var server: TrebuchetServer?
            var counts: [Int] = []
        }

        private let state = Mutex(State())
        let kinds: ServerEvent.Kinds = .limits
        var counts: [Int] { state.withLock { $0.counts } }
        var server: TrebuchetServer? {
            get { state.withLock { $0.server } }
            set { state.withLock { $0.server = newValue } }
        }

        func handle(_ event: ServerEvent) {
            guard let count = server?.directory.count else { return }
            state.withLock { $0.counts.append(count) }
        }
    }

    /// A counter that starts at 1.
    private final class Counted: Sendable {
        private let count = Atomic<Int>(0)
        func next() -> Int { count.wrappingAdd(1, ordering: .relaxed).newValue }
    }
}
