import TestSupport
import Testing

@testable import StateMachines

@MainActor
@Suite("Test stores in unusual situations", .timeLimit(.minutes(5)))
struct TestStoreFaultTests {
    struct Feature: Reducer {
        struct State: Equatable {
            var count = 0
            var loads = 0
        }
        @CasePathable
        enum Action: Equatable { case add, load, loaded, wait, leave }

        let left: Recorder

        init(left: Recorder = Recorder()) { self.left = left }

        func reduce(into state: inout State, action: Action) -> Effect<Action> {
            switch action {
            case .add: state.count += 1
            case .load: return .run { await $0(.loaded) }
            case .loaded: state.loads += 1
            case .wait: return .run { _ in await untilCancelled() }
            case .leave:
                let gate = left
                return .run { send in
                    Task {
                        #expect(await eventually { gate.entries == ["ended"] }, "the effect has ended")
                        await send(.add)
                        gate.record("sent")
                    }
                }
            }
            return .none
        }
    }

    private func store() -> TestStoreOf<Feature> { TestStore(initialState: Feature.State()) { Feature() } }

    @Test("an assertion sees the state before the action")
    func stateInside() async {
        let reports = await issues {
            let store = store()
            await store.send(.add) {
                #expect(store.state.count == 0)
                $0.count = store.state.count + 1
            }
            await store.send(.load)
            await store.receive(.loaded) {
                #expect(store.state.loads == 0)
                $0.loads = store.state.loads + 1
            }
            #expect(store.state == Feature.State(count: 1, loads: 1))
        }
        #expect(reports == [])
    }

    @Test("an assertion has the reducer's dependencies")
    func dependenciesInside() async {
        let store = TestStore(initialState: Feature.State()) {
            Feature()
        } withDependencies: {
            $0.clock.now = { 1 }
        }
        @Dependency(\.clock) var clock
        await store.send(.add) { $0.count = clock.now() }
        store.assert { $0.count = clock.now() }
        await store.send(.load)
        await store.receive(.loaded) { $0.loads = clock.now() }
    }

    @Test("a late action is stored for the next receive")
    func receivedLate() async {
        let reports = await issues {
            let store = store()
            await store.send(.load).finish()
            await store.send(.add) { $0.count = 1 }
            await store.receive(.loaded) { $0.loads = 1 }
            #expect(store.state == Feature.State(count: 1, loads: 1))
        }
        #expect(reports.count == 1)
        #expect(
            reports.first?.hasPrefix("An action must be received before another action is sent: .loaded. ") == true)
    }

    @Test("a test store released with a running effect reports it within a second")
    func released() async {
        var time = Duration.zero
        let reports = await issues {
            var store: TestStoreOf<Feature>? = store()
            await store?.send(.wait)
            time = ContinuousClock().measure { store = nil }
        }
        #expect(reports.count == 1)
        #expect(time < .seconds(1))
    }

    @Test("an unnamed action is described")
    func unnamedAction() async {
        let reports = await issues {
            let store = TestStore(initialState: 0) {
                Reduce<Int, Void> { state, _ in
                    state += 1
                    return .none
                }
            }
            await store.send(()) { $0 = 2 }
        }
        #expect(reports.first?.hasPrefix("The action did not change the state as expected:") == true)
    }

    @Test("unfinished work is reported where the test ended, not where the store was created")
    func place() async {
        let last = #line + 3
        await withKnownIssue {
            let store = store()
            await store.send(.load)
        } matching: { issue in
            issue.sourceLocation?.line == last
        }
    }

    @Test("an action that an effect sends while it ends is reported")
    func sentWhileReleased() async {
        let end = Latch()
        let reports = await issues {
            let store = TestStore(initialState: Feature.State()) {
                Reduce<Feature.State, Feature.Action> { _, _ in
                    .run { send in
                        await end.wait()
                        await send(.loaded)
                    }
                }
            }
            // The test checks the action, not how soon other work lets the effect run.
            store.releaseTimeout = .seconds(60)
            await store.send(.load)
            end.open()
        }
        #expect(reports.count == 1)
        #expect(reports.first?.hasPrefix("An action must be received but the test has ended: .loaded. ") == true)
    }

    @Test("the release of a test store reports nothing after the last action of a main-actor effect")
    func releaseAfterLastAction() async {
        for _ in 0..<20 {
            let reports = await issues {
                let store = TestStore(initialState: Feature.State()) {
                    Reduce<Feature.State, Feature.Action> { state, action in
                        guard action == .load else {
                            state.loads += 1
                            return .none
                        }
                        return .run { @MainActor send in await send(.loaded) }
                    }
                }
                store.releaseTimeout = .seconds(60)
                await store.send(.load)
                await store.receive(.loaded) { $0.loads = 1 }
            }
            #expect(reports == [])
        }
    }

    @Test("an unfinished effect of the main actor is still reported")
    func unfinishedMainActorEffect() async {
        let reports = await issues {
            let store = TestStore(initialState: Feature.State()) {
                Reduce<Feature.State, Feature.Action> { state, action in
                    guard action == .load else {
                        state.loads += 1
                        return .none
                    }
                    return .run { @MainActor send in
                        await send(.loaded)
                        await untilCancelled()
                    }
                }
            }
            await store.send(.load)
            await store.receive(.loaded) { $0.loads = 1 }
        }
        #expect(reports.count == 1)
    }

    @Test("an action sent after the end of its effect is reported")
    func sentLate() async {
        let left = Recorder()
        let reports = await issues {
            let store = TestStore(initialState: Feature.State()) { Feature(left: left) }
            await store.send(.leave).finish()
            left.record("ended")
            #expect(await eventually { left.entries == ["ended", "sent"] }, "the action was sent")
            await store.receive(.add) { $0.count = 1 }
        }
        #expect(reports.count { $0.hasPrefix("An effect sent an action after it had ended: .add.") } == 1)
    }

    @Test("an effect that is cancelled before its start never runs")
    func cancelledBefore() async {
        let ran = Recorder()
        let store = Store(initialState: 0) {
            Reduce<Int, Bool> { _, _ in
                .merge(
                    .run { _ in ran.record("ran") }.cancellable(id: "work"), .cancel(id: "work"),
                    .run { _ in ran.record("after") })
            }
        }
        await store.send(true).finish()
        #expect(ran.entries == ["after"])
    }
}

/// A dependency whose values are optional and set.
private enum Nickname: DependencyKey {
    static let liveValue: String? = "live"
    static let testValue: String? = "test"
}

private enum Nothing: DependencyKey {
    static let liveValue: String? = nil
    static let testValue: String? = nil
}

private enum Numbered: TestDependencyKey {
    static let made = Recorder()
    static var testValue: Int {
        made.record("made")
        return made.entries.count
    }
}

@MainActor
@Suite("Dependencies in unusual situations")
struct DependencyFaultTests {
    @Test("dependencies of an optional type have their value, and may be nil")
    func optional() {
        @Dependency(Nickname.self) var name
        @Dependency(Nothing.self) var nothing
        #expect(name == "test")
        #expect(nothing == nil)
        withDependencies {
            $0.context = .live
        } operation: {
            #expect(name == "live")
            #expect(nothing == nil)
        }
        withDependencies {
            $0[Nickname.self] = nil
            $0[Nothing.self] = "something"
        } operation: {
            #expect(name == nil)
            #expect(nothing == "something")
        }
    }

    @Test("a dependency has one test value during a test")
    func oneTestValue() async {
        @Dependency(Numbered.self) var number
        let first = number
        #expect(number == first)
        let inTask = await Task { DependencyValues.current[Numbered.self] }.value
        #expect(inTask == first)
        let store = TestStore(initialState: 0) {
            Reduce<Int, Bool> { state, _ in
                state = number
                return .none
            }
        }
        await store.send(true) { $0 = first }
        #expect(
            withDependencies {
                $0.context = .test
            } operation: {
                number
            } == first)
    }

    @Test("a dependency has a test value for each case of a test with arguments", arguments: [1, 2])
    func parameterised(_: Int) {
        func numbers() -> (Int, Int) {
            withDependencies { _ in
            } operation: {
                @Dependency(Numbered.self) var number
                return (number, number)
            }
        }
        let (first, second) = (numbers(), numbers())
        #expect(first.0 == first.1)
        #expect(second.0 == second.1)
        #expect(first.0 != second.0)
    }
}
