import Networking
import Synchronization
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors

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
        limits.activatedActors.total = 2
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

    @Test(
        "a refusal that concerns one caller fails only its calls; the next caller activates the actor",
        arguments: [1, 2])
    func refusedCaller(reactors: Int) async throws {
        let (journal, attempts) = (Journal(), Counted())
        try await withTestServer(reactors: reactors) { server in
            let system = server.actorSystem
            server.expose(TodoList.self, as: "lists/*") { _ in
                guard attempts.next() > 1 else {
                    journal.record("begun")
                    await journal.wait(for: "go")
                    throw CallerRefusal(Closed(reason: "quota"))
                }
                return TodoList(actorSystem: system)
            }
        } body: { client, server in
            client.register(errors: Closed.self)
            let refused = try client.resolve(TodoList.self, id: "lists/1")
            let first = Task { try await refused.add(title: "first") }
            await journal.wait(for: "begun")
            var others: [TrebuchetClient] = []
            for _ in 0..<4 {
                let other = TrebuchetClient(transport: .local(server))
                try await other.connect()
                others.append(other)
            }
            try await withThrowingTaskGroup(of: Int.self) { group in
                for other in others {
                    let list = try other.resolve(TodoList.self, id: "lists/1")
                    group.addTask { try await list.add(title: "other") }
                }
                let second = Task { try await refused.add(title: "second") }
                #expect(await eventually { await waitingCalls(of: server) == 6 })
                journal.record("go")
                await #expect(throws: Closed(reason: "quota")) { try await first.value }
                await #expect(throws: Closed(reason: "quota")) { try await second.value }
                var counts: [Int] = []
                for try await count in group { counts.append(count) }
                #expect(counts.sorted() == [1, 2, 3, 4])
            }
            // One attempt of the refused caller, and one of another.
            #expect(attempts.next() == 3)
            for other in others { await other.close() }
        }
    }

    /// The number of calls that wait for an activation.
    private func waitingCalls(of server: TrebuchetServer) async -> Int {
        var count = 0
        for shard in server.shards { count += await shard.reactor.perform { shard.waitingCount } }
        return count
    }

    @Test("attempts to activate an actor follow one another by caller, until one fails for all")
    func attempts() async throws {
        let (journal, attempts) = (Journal(), Counted())
        let ledger = QuotaLedger(limits: ServerLimits())
        let directory = ActorDirectory(quotas: ledger)
        directory.insert(
            prefix: "lists/",
            ActorDirectory.Registration(type: ActorTypes.entry(of: TodoList.self)) { _ in
                let attempt = attempts.next()
                await journal.wait(for: "go")
                guard attempt > 2 else { throw CallerRefusal(Closed(reason: "quota \(attempt)")) }
                throw Closed(reason: "store")
            })
        let name = ActorName("lists/1")
        func activation(_ connection: UInt64) throws -> Task<ActorRecord, any Error> {
            let scopes = QuotaScopes(connection: connection, principal: nil, host: nil)
            return try #require(try directory.activate(name, for: scopes))
        }
        var tasks: [Task<ActorRecord, any Error>] = []
        for connection in [1, 1, 2, 3, 4] as [UInt64] { tasks.append(try activation(connection)) }
        tasks.append(try #require(try directory.activate(name, for: nil)))
        journal.record("go")
        var reasons: [String] = []
        for task in tasks {
            guard case .failure(let error) = await task.result else { continue }
            let refusal = error as? CallerRefusal
            let reason = ((refusal?.cause ?? error) as? Closed)?.reason ?? "\(error)"
            reasons.append(refusal == nil ? reason : "refused: \(reason)")
        }
        #expect(
            reasons == ["refused: quota 1", "refused: quota 1", "refused: quota 2", "store", "store", "store"])
        #expect(attempts.next() == 4)
        #expect(directory.activatingCount == 0)
        #expect(ledger.isEmpty)
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
