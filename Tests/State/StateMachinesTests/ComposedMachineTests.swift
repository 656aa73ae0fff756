import TestSupport
import Testing

@testable import StateMachines

@MainActor
@Suite("Composed machines", .timeLimit(.minutes(5)))
struct ComposedMachineTests {
    private func screen() -> TestStoreOf<TallyScreen> {
        TestStore(initialState: TallyScreen.State()) {
            TallyScreen()
        } withDependencies: {
            $0.clock.now = { 9 }
        }
    }

    @Test("a machine's effects are composed, and its events are its actions")
    func effects() async {
        let store = TestStore(initialState: TallyMachine.State(count: 3)) {
            TallyMachine()
        } withDependencies: {
            $0.clock.now = { 9 }
        }
        await store.send(.input(.ask))
        await store.receive(\.ioResult.fact) { $0.facts = ["3 at 9"] }
        await store.receive(.ioResult(.fact("4 at 9"))) { $0.facts.append("4 at 9") }
    }

    @Test("a forwarded action reaches the child first, then the parent")
    func forwarded() async {
        let store = screen()
        await store.send(.input(.tapped)) {
            $0.tally.count = 1
            $0.seen = ["tapped 1"]
        }
        await store.send(\.input.set, 7) {
            $0.tally.count = 7
            $0.seen.append("set(7) 7")
        }
        await store.send(.input(.own)) { $0.seen.append("own 7") }
    }

    @Test("results of the child's effects pass through the parent's case")
    func answered() async {
        let store = screen()
        store.exhaustivity = .off
        await store.send(.input(.tally(.set(1)))) { $0.tally.count = 1 }
        await store.send(.input(.tally(.ask)))
        await store.receive(\.ioResult.received, "1 at 9") { $0.tally.facts = ["1 at 9"] }
        await store.receive(\.ioResult.received, "2 at 9") { $0.tally.facts = ["1 at 9", "2 at 9"] }
    }

    @Test("a child may have a computed state")
    func computed() async {
        let store = TestStore(initialState: TallyPair.State()) {
            TallyPair()
        } withDependencies: {
            $0.clock.now = { 9 }
        }
        await store.send(\.input.second, .increment) { $0.tallies[1].count = 1 }
        await store.send(.input(.second(.ask)))
        await store.receive(\.ioResult.second) { $0.tallies[1].facts = ["1 at 9"] }
        await store.receive(\.ioResult.second, .fact("2 at 9")) { $0.tallies[1].facts.append("2 at 9") }
    }

    @Test("a result that no case forwards is reported, and not sent")
    func notForwarded() async {
        let reports = await issues {
            let store = screen()
            store.exhaustivity = .off
            await store.send(.input(.set(-1)))
            await store.send(.input(.tally(.ask))).finish()
        }
        #expect(reports.count == 1)
        #expect(
            reports.first?.hasPrefix("An effect of the child TallyMachine sent .ioResult(.other), which no case")
                == true)
    }

    @Test("an effect ends the previous one with the same id")
    func debuggable() async {
        let begun = Recorder()
        let (gates, gate) = AsyncStream.makeStream(of: Void.self)
        let store = Store(initialState: SearchMachine.State()) {
            SearchMachine { query in
                begun.record(query)
                if query == "b" { for await _ in gates { break } } else { await untilCancelled() }
            }
        }
        let first = store.send(.input(.type("a")))
        #expect(await eventually { begun.entries == ["a"] }, "the first runs")
        let second = store.send(.input(.type("b")))
        await first.finish()
        gate.yield()
        await second.finish()
        #expect(store.withState(\.found) == ["b"])
    }

    @Test("a runtime accepts inputs, and publishes the state")
    func runtime() async {
        func prepare(_ values: inout DependencyValues) { values.clock.now = { 5 } }
        let runtime: Runtime<TallyMachine> = Store.make(initialState: TallyMachine.State()) {
            TallyMachine()
        } withDependencies: {
            prepare(&$0)
        }
        runtime.send(.increment)
        await runtime.send(.ask).finish()
        #expect(runtime.state == TallyMachine.State(count: 1, facts: ["1 at 5", "2 at 5"]))
        let named: StandardRuntime<TallyMachine> = StandardRuntimes<TallyMachine>.make(initialState: .init(count: 3)) {
            TallyMachine()
        }
        named.send(.increment)
        #expect(named.state.count == 4)
    }

    @Test("a parent without the macro runs a child for selected actions")
    func byHand() async {
        struct Parent: Reducer {
            struct State: Equatable { var tally = TallyMachine.State() }
            enum Action: Equatable, Sendable { case up, received(String) }

            var body: some ReducerOf<Self> {
                NestedStateMachine<State, Action, TallyMachine>(
                    state: \.tally, toChildAction: { $0 == .up ? .input(.increment) : nil },
                    fromChildAction: { if case .ioResult(.fact(let fact)) = $0 { .received(fact) } else { nil } },
                    child: { TallyMachine() })
            }
        }
        let store = TestStore(initialState: Parent.State()) { Parent() }
        await store.send(.up) { $0.tally.count = 1 }
        await store.send(.received("a"))
    }
}
