import Synchronization
import TestSupport
import Testing

@testable import StateMachines

/// A test store continues when its effects have ended or wait, however busy the machine is.
@MainActor
@Suite("Effects of a test store come to rest", .timeLimit(.minutes(5)))
struct RestingEffectTests {
    private static let rounds = 300

    private struct Feature: Reducer {
        struct State: Equatable {
            var seen: [String] = []
        }
        enum Action: Equatable { case load, merge, onMainActor, throughActor, nest, tick, ticking, spin, seen(String) }

        actor Server {
            func answer() -> String { "answer" }
        }

        let clock: TestClock
        let server = Server()

        func reduce(into state: inout State, action: Action) -> Effect<Action> {
            switch action {
            case .seen(let text):
                state.seen.append(text)
                return .none
            case .load:
                return .run { send in
                    await send(.seen("a"))
                    await Task.yield()
                    await send(.seen("b"))
                }
            case .merge:
                return .merge([1, 2, 3].map { number in .run { await $0(.seen("\(number)")) } })
            case .onMainActor:
                return .run { @MainActor send in
                    await send(.seen("main"))
                    await Task.detached(priority: .background) {}.value
                }
            case .throughActor: return .run { [server] send in await send(.seen(await server.answer())) }
            case .nest: return .run { await $0(.load) }
            case .tick:
                state.seen.append("tick")
                return .none
            case .ticking:
                return .run { [clock] send in
                    while true {
                        try await clock.sleep(for: .seconds(1))
                        await send(.tick)
                    }
                }
            case .spin:
                return .run { _ in while !Task.isCancelled { await Task.yield() } }
            }
        }
    }

    private func store(_ clock: TestClock = TestClock()) -> TestStoreOf<Feature> {
        TestStore(initialState: Feature.State()) { Feature(clock: clock) }
    }

    private func received(_ store: TestStoreOf<Feature>) -> [Feature.Action] { store.assertions.received.map(\.action) }

    @Test(
        "actions that an effect sends without waiting have been sent when 'send' returns",
        arguments: [
            ("load", ["a", "b"]), ("merge", ["1", "2", "3"]), ("throughActor", ["answer"]), ("onMainActor", ["main"]),
        ])
    func sent(name: String, expected: [String]) async {
        let action: Feature.Action =
            ["load": .load, "merge": .merge, "throughActor": .throughActor][name] ?? .onMainActor
        var missed = 0
        for _ in 0..<Self.rounds {
            let store = store()
            store.exhaustivity = .off
            await store.send(action)
            if received(store) != expected.map({ .seen($0) }) { missed += 1 }
        }
        #expect(missed == 0)
    }

    @Test("actions of the effects of a received action have been sent when 'receive' returns")
    func received() async {
        for _ in 0..<Self.rounds {
            let store = store()
            await store.send(.nest)
            await store.receive(.load)
            await store.receive(.seen("a")) { $0.seen = ["a"] }
            await store.receive(.seen("b")) { $0.seen = ["a", "b"] }
        }
    }

    @Test("a loop in an effect has all its ticks when the clock has advanced")
    func ticks() async {
        var lost = 0
        for _ in 0..<(Self.rounds / 10) {
            let clock = TestClock()
            let store = store(clock)
            store.exhaustivity = .off
            await store.send(.ticking)
            await clock.advance(by: .seconds(5))
            if received(store) != Array(repeating: .tick, count: 5) { lost += 1 }
            await store.skipInFlightEffects()
        }
        #expect(lost == 0)
    }

    @Test("a loop outside of effects has all its ticks too")
    func plainTicks() async {
        var lost = 0
        for _ in 0..<(Self.rounds / 30) {
            // A busy machine may take longer than the default to run the task.
            let clock = TestClock(yieldTimeout: .seconds(30))
            let ticks = Mutex(0)
            let loop = Task {
                while true {
                    try await clock.sleep(for: .seconds(1))
                    ticks.withLock { $0 += 1 }
                }
            }
            #expect(await eventually { clock.sleeperCount == 1 }, "it sleeps")
            await clock.advance(by: .seconds(5))
            #expect(await eventually { clock.sleeperCount == 1 }, "the effect sleeps again")
            if ticks.withLock({ $0 }) != 5 { lost += 1 }
            loop.cancel()
        }
        #expect(lost == 0)
    }

    @Test("an effect that never waits does not block a test")
    func spinning() async {
        let store = store()
        await store.send(.spin)
        await store.send(.seen("b")) { $0.seen = ["b"] }
        await store.skipInFlightEffects()
    }
}
