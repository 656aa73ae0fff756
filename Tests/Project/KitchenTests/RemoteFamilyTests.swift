import KitchenModel
import Loading
import QStream
import Relays
import StateMachines
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// The state family over an actor's state in a server: how each part handles an end, an error, a new connection, and a slow reader.
@Suite(.timeLimit(.minutes(5))) @MainActor struct RemoteFamilyTests {
    /// A machine that counts the orders of a remote kitchen until it is stopped.
    private struct Watch: Reducer {
        enum Action: Equatable, Sendable { case start, stop, counted(Int) }

        let counts: @Sendable () async -> any AsyncSequence<Int, Never> & Sendable

        func reduce(into state: inout [Int], action: Action) -> Effect<Action> {
            switch action {
            case .start:
                return .run { [counts] send in
                    for await count in await counts() { await send(.counted(count)) }
                }
                .cancellable(id: "watch")
            case .stop: return .cancel(id: "watch")
            case .counted(let count):
                state.append(count)
                return .none
            }
        }
    }

    private func expose(on server: TrebuchetServer) async {
        await server.expose(Kitchen(actorSystem: server.actorSystem), as: "kitchen")
    }

    private func quick() -> TrebuchetClient.Options {
        var options = TrebuchetClient.Options()
        options.reconnect.initialDelay = .milliseconds(5)
        return options
    }

    private func watch(_ kitchen: Kitchen) -> StoreOf<Watch> {
        Store(initialState: []) {
            Watch { await kitchen.observeState().map { $0.orders.count } }
        }
    }

    @Test("end: a released chain, relay or effect leaves no subscription at the server", arguments: TestLink.allCases)
    func ends(link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            await expose(on: server)
        } body: { client, server in
            let kitchen = try client.resolve(Kitchen.self, id: "kitchen")
            func readers(_ count: Int) async -> Bool {
                await eventually { await server.subscriberCount(of: "kitchen", "observeState") == count }
            }
            do {
                let chain = await kitchen.observeState().stream().map { $0.orders.count }
                #expect(await chain.waitFor { $0 == 0 } == 0)
                #expect(await readers(1))
                let relay = await kitchen.observeState().stream().map { $0.orders.count }.relay(initialValue: -1)
                #expect(await readers(2))
                withExtendedLifetime((chain, relay)) {}
            }
            #expect(await readers(0))
            let store = watch(kitchen)
            let task = store.send(.start)
            #expect(await eventually { store.state == [0] })
            store.send(.stop)
            await task.finish()
            #expect(await readers(0))
            let loader = BlockLoadable {
                for await state in await kitchen.observeState() where state.orders.count == 1 { return 1 }
                throw CancellationError()
            }
            let load = Task { await loader.load() }
            #expect(await readers(1))
            loader.cancel()
            await load.value
            #expect(loader.currentState == .idle)
            #expect(await readers(0))
        }
    }

    @Test("end: the effects of a released store end with it", arguments: TestLink.allCases)
    func storeGoes(link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            await expose(on: server)
        } body: { client, server in
            let kitchen = try client.resolve(Kitchen.self, id: "kitchen")
            do {
                let store = watch(kitchen)
                store.send(.start)
                #expect(await eventually { store.state == [0] })
                #expect(await server.subscriberCount(of: "kitchen", "observeState") == 1)
            }
            #expect(await eventually { await server.subscriberCount(of: "kitchen", "observeState") == 0 })
        }
    }

    @Test("error: a loader has the actor's error, and a machine has it as a result", arguments: TestLink.allCases)
    func errors(link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            await expose(on: server)
        } body: { client, _ in
            let kitchen = try client.resolve(Kitchen.self, id: "kitchen")
            let loader = RetryableLoader(
                wrapping: BlockLoadable { try await kitchen.order(dish: "Cake", table: 1) },
                shouldRetry: { !($0 is SoldOut) })
            await loader.load()
            #expect(loader.currentState == .failure(SoldOut(dish: "Cake")))
            let store = Store(initialState: "") {
                Reduce<String, String> { state, action in
                    state = action
                    guard action == "order" else { return .none }
                    return .run { send in
                        _ = try await kitchen.order(dish: "Cake", table: 1)
                    } catch: { error, send in
                        await send("\(error)")
                    }
                }
            }
            await store.send("order").finish()
            #expect(store.state == "\(SoldOut(dish: "Cake"))")
            // A missing actor ends the stream; the chain keeps its value, which is nil.
            let nobody = try client.resolve(Kitchen.self, id: "nobody")
            let states = await nobody.observeState()
            let chain = await states.stream().map { $0.orders.count }
            #expect(await eventually { states.outcome != nil })
            #expect(await chain.currentValue() == nil)
        }
    }

    @Test(
        "error: a stream and a relay keep the last value, and the remote state has the reason",
        arguments: TestLink.allCases)
    func lastValues(link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            await expose(on: server)
        } body: { client, server in
            let kitchen = try client.resolve(Kitchen.self, id: "kitchen")
            _ = try await kitchen.order(dish: "Soup", table: 1)
            let states = await kitchen.observeState()
            let chain = await states.stream().map { $0.orders.count }
            let relay = await chain.relay(initialValue: -1)
            #expect(await eventually { relay.currentValue == 1 })
            await server.unexpose("kitchen")
            #expect(await eventually { states.outcome != nil })
            if case .failed? = states.outcome {} else { Issue.record("\(String(describing: states.outcome))") }
            #expect(await chain.currentValue() == 1)
            #expect(relay.currentValue == 1)
        }
    }

    @Test("new connection: all parts continue with the state of the new server")
    func reconnects() async throws {
        try await withTestServer { server in
            await expose(on: server)
        } body: { (test: TestServer) in
            let client = try await test.connect(quick())
            let kitchen = try client.resolve(Kitchen.self, id: "kitchen")
            let chain = await kitchen.observeState().stream().map { $0.orders.count }.removeDuplicates()
            let journal = Journal()
            let subscription = await chain.tap { journal.record("\($0)") }
            let relay = await chain.relay(initialValue: -1)
            let store = watch(kitchen)
            store.send(.start)
            _ = try await kitchen.order(dish: "Soup", table: 1)
            _ = try await kitchen.order(dish: "Soup", table: 1)
            #expect(await eventually { relay.currentValue == 2 && store.state.last == 2 })
            await test.kill()
            for await state in client.connectionState.stream where state != .connected { break }
            let loader = RetryableLoader(
                wrapping: BlockLoadable { try await kitchen.order(dish: "Sole", table: 2) }, maxAttempts: 1_000,
                backoff: RetryBackoff(first: .milliseconds(1), limit: .milliseconds(10)))
            let load = Task { await loader.load() }
            try await test.restart()
            await load.value
            #expect(loader.currentState == .loaded(1))
            // The new kitchen started without orders.
            #expect(await eventually { relay.currentValue == 1 && store.state.last == 1 })
            await journal.wait(for: "1")
            withExtendedLifetime(subscription) {}
        }
    }

    @Test("slow reader: it skips to the newest state, and nothing is queued for it", arguments: TestLink.allCases)
    func slowReaders(link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            await expose(on: server)
        } body: { client, _ in
            let kitchen = try client.resolve(Kitchen.self, id: "kitchen")
            _ = try await kitchen.order(dish: "Soup", table: 1)
            let (journal, gate) = (Journal(), StateRelay(false))
            let tables = await kitchen.observeState().stream().map {
                $0.orders.filter(\.isServed).count + $0.orders.count
            }
            let subscription = await tables.tap { value in
                journal.record("\(value)")
                // The first value arrives while the test waits for the chain.
                if value == 1 { return }
                for await isOpen in gate.stream where isOpen { break }
            }
            await journal.wait(for: "1")
            for _ in 0..<3 { _ = try await kitchen.order(dish: "Salad", table: 1) }
            for number in 1...4 { try await kitchen.serve(number: number) }
            gate.update(true)
            await journal.wait(for: "8")
            let seen = journal.entries.compactMap(Int.init)
            #expect(seen == seen.sorted())
            // One value was in transit to the chain while it was blocked, beside the first and the last.
            #expect(seen.count <= 4, "\(seen)")
            withExtendedLifetime(subscription) {}
        }
    }

    @Test("slow reader: a relay and a machine skip to the newest too", arguments: TestLink.allCases)
    func slowMachines(link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            await expose(on: server)
        } body: { client, _ in
            let kitchen = try client.resolve(Kitchen.self, id: "kitchen")
            let gate = StateRelay(false)
            let relay = await kitchen.observeState().stream().map { $0.orders.count }.relay(initialValue: -1)
            var reader = relay.stream.makeAsyncIterator()
            let store = Store(initialState: [Int]()) {
                Reduce<[Int], Int> { state, count in
                    if count >= 0 { state.append(count) }
                    guard count < 0 else { return .none }
                    return .run { send in
                        for await state in await kitchen.observeState() {
                            await send(state.orders.count)
                            for await isOpen in gate.stream where isOpen { break }
                        }
                    }
                }
            }
            store.send(-1)
            #expect(await eventually { store.state == [0] && relay.currentValue == 0 })
            #expect(await reader.next() == 0)
            for _ in 0..<5 { _ = try await kitchen.order(dish: "Salad", table: 1) }
            #expect(await eventually { relay.currentValue == 5 })
            // The reader has not read any of those between.
            #expect(await reader.next() == 5)
            gate.update(true)
            #expect(await eventually { store.state.last == 5 })
            // One value may have been in transit to the effect while it was blocked.
            #expect(store.state.count <= 3 && store.state == store.state.sorted(), "\(store.state)")
        }
    }

    @Test("slow reader: a loader calls once for each load, and a late reader gets the newest result")
    func slowLoaders() async throws {
        try await withTestServer { server in
            await expose(on: server)
        } body: { client, _ in
            let kitchen = try client.resolve(Kitchen.self, id: "kitchen")
            let loader = BlockLoadable { try await kitchen.order(dish: "Salad", table: 1) }
            var states = loader.state.makeAsyncIterator()
            #expect(await states.next(isolation: #isolation) == .idle)
            for number in 1...3 {
                await loader.load()
                #expect(loader.currentState == .loaded(number))
            }
            while let state = await states.next(isolation: #isolation), state != .loaded(3) {}
            for await state in await kitchen.observeState() {
                #expect(state.orders.count == 3)
                break
            }
        }
    }
}
