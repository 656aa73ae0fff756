import Testing

@testable import StateMachines

/// A screen with one of two children.
struct Gate: Reducer {
    @CasePathable
    @dynamicMemberLookup
    enum State: Equatable {
        case closed
        case open(Room.State)
        case away(Row.State)
    }
    @CasePathable
    enum Action: Equatable { case enter(id: Int), leave, depart, open(Room.Action), away(Row.Action) }

    let ended: Recorder

    var body: some ReducerOf<Self> {
        Reduce { state, action in
            switch action {
            case .enter(let id): state = .open(Room.State(id: id))
            case .leave: state = .closed
            case .depart: state = .away(Row.State(id: 7))
            case .open, .away: break
            }
            return .none
        }
        .ifCaseLet(\.open, action: \.open) { Room(ended: ended) }
        Scope(state: \.away, action: \.away) { Row() }
    }
}

struct Room: Reducer {
    struct State: Equatable, Identifiable {
        var id: Int
        var count = 0
    }
    @CasePathable
    enum Action: Equatable { case add, wait }

    let ended: Recorder

    func reduce(into state: inout State, action: Action) -> Effect<Action> {
        switch action {
        case .add: state.count += 1
        case .wait:
            let id = state.id
            return .run { _ in
                await untilCancelled()
                ended.record("\(id)")
            }
        }
        return .none
    }
}

struct Row: Reducer {
    struct State: Equatable, Identifiable {
        let id: Int
        var name = ""
    }
    @CasePathable
    enum Action: Equatable { case rename(String), clear }

    func reduce(into state: inout State, action: Action) -> Effect<Action> {
        switch action {
        case .rename(let name): state.name = name
        case .clear: state.name = ""
        }
        return .none
    }
}

struct Table: Reducer {
    struct State: Equatable { var rows: IdentifiedArrayOf<Row.State> = [Row.State(id: 1), Row.State(id: 2)] }
    @CasePathable
    enum Action: Equatable { case rows(IdentifiedActionOf<Row>), greet, tap }

    var body: some ReducerOf<Self> {
        Reduce { _, action in
            action == .greet ? .run { await $0(.rows(.element(id: 2, action: .rename("hello")))) } : .none
        }
        .forEach(\.rows, action: \.rows) { Row() }
    }
}

@MainActor
@Suite("Reducers under their established names", .timeLimit(.minutes(5)))
struct ReducerNamesTests {
    @Test("a child in a case of the state runs while the case is set, and its effects end with it")
    func ifCaseLet() async {
        let ended = Recorder()
        let store = TestStore(initialState: Gate.State.closed) { Gate(ended: ended) }
        await store.send(.enter(id: 1)) { $0 = .open(Room.State(id: 1)) }
        await store.send(.open(.add)) { $0 = .open(Room.State(id: 1, count: 1)) }
        #expect(store.state.open?.count == 1)
        #expect(store.state.away == nil)
        let first = await store.send(\.open.wait)
        await store.send(.enter(id: 2)) { $0 = .open(Room.State(id: 2)) }
        await first.finish(timeout: .seconds(40))
        let second = await store.send(\.open.wait)
        await store.send(\.leave) { $0 = .closed }
        await second.finish(timeout: .seconds(40))
        #expect(ended.entries == ["1", "2"])
    }

    @Test("an action for a case that is not set is reported")
    func caseNotThere() async {
        let reports = await issues {
            let store = TestStore(initialState: Gate.State.closed) { Gate(ended: Recorder()) }
            await store.send(.open(.add))
            await store.send(.away(.clear))
        }
        #expect(reports.count == 2)
        #expect(
            reports.first?.hasPrefix(
                "An \"ifCaseLet\" received an action for a child whose state does not exist: .open(")
                == true)
        #expect(
            reports.last?.hasPrefix("A \"Scope\" received an action for a child whose state does not exist") == true)
    }

    @Test("a scope over a case of the state runs its child")
    func scopeOverCase() async {
        let store = TestStore(initialState: Gate.State.closed) { Gate(ended: Recorder()) }
        await store.send(\.depart) { $0 = .away(Row.State(id: 7)) }
        await store.send(\.away.rename, "a") { $0 = .away(Row.State(id: 7, name: "a")) }
    }

    @Test("the actions of one element are named by its id")
    func elements() async {
        let store = TestStore(initialState: Table.State()) { Table() }
        await store.send(\.rows[id: 1].rename, "a") { $0.rows[id: 1]?.name = "a" }
        await store.send(\.rows[id: 1].clear) { $0.rows[id: 1]?.name = "" }
        await store.send(\.greet)
        await store.receive(\.rows[id: 2].rename, "hello") { $0.rows[id: 2]?.name = "hello" }
        #expect(Table.Action.rows(.element(id: 1, action: .clear)).is(\.rows[id: 1].clear))
        #expect(!Table.Action.rows(.element(id: 1, action: .clear)).is(\.rows[id: 2].clear))
        let reports = await issues {
            await store.send(\.greet)
            await store.receive(\.rows[id: 1].rename)
        }
        #expect(reports.first?.hasPrefix("Expected to receive \\.rows[id: 1].rename, but received") == true)
        let live = Store(initialState: Table.State()) { Table() }
        live.send(\.tap)
        live.send(\.rows[id: 1].rename, "b")
        #expect(live.withState { $0.rows[0].name } == "b")
    }

    @Test("a reducer may override its store's dependencies, also in its effects")
    func dependency() async {
        let store = TestStore(initialState: DependencyTests.Feature.State()) {
            DependencyTests.Feature()
                .dependency(\.clock, Clock { 3 })
                .transformDependency(\.clock) { clock in
                    let now = clock.now
                    clock.now = { now() + 1 }
                }
        } withDependencies: {
            $0.clock.now = { 1 }
        }
        await store.send(.read) { $0.times = [3] }
        await store.send(.readLater)
        await store.receive(.time(3)) { $0.times = [3, 3] }
        let outer = TestStore(initialState: DependencyTests.Feature.State()) {
            DependencyTests.Feature().transformDependency(\.clock) { clock in
                let now = clock.now
                clock.now = { now() + 1 }
            }
        } withDependencies: {
            $0.clock.now = { 1 }
        }
        await outer.send(.read) { $0.times = [2] }
    }

    @Test("onChange runs another reducer when a part of the state has changed, with the old and the new value")
    func onChange() async {
        let changes = Recorder()
        let store = Store(initialState: 0) {
            Reduce<Int, Int> { state, action in
                state = action
                return .none
            }
            .onChange(of: { $0 / 10 }) { old, new in
                Reduce { state, _ in
                    changes.record("\(old) \(new)")
                    state += 1
                    return .none
                }
            }
        }
        for number in [3, 14, 15, 2] { store.send(number) }
        #expect(changes.entries == ["0 1", "1 0"])
        #expect(store.state == 3)
    }

    @Test("removeDuplicates compares a part that is not Equatable")
    func removeDuplicates() {
        struct Reading { var value: Double }
        let changes = Recorder()
        let store = Store(initialState: 0) {
            Reduce<Int, Int> { state, action in
                state = action
                return .none
            }
            .onChange(of: { Reading(value: Double($0)) }, removeDuplicates: { abs($0.value - $1.value) < 2 }) {
                old, new in
                Reduce { _, _ in
                    changes.record("\(old.value) \(new.value)")
                    return .none
                }
            }
        }
        for number in [1, 3, 4, 9] { store.send(number) }
        #expect(changes.entries == ["1.0 3.0", "4.0 9.0"])
    }

    @Test("a builder accepts loops and type-erased reducers")
    func builder() {
        let store = Store(initialState: 1) { Adders() }
        store.send(2)
        #expect(store.state == 8)
    }
}

/// Reducers selected at run time.
private struct Adders: Reducer {
    private let parts: [any Reducer<Int, Int>] = [
        Reduce { state, action in
            state += action
            return .none
        },
        Reduce { state, action in
            state *= action
            return .none
        },
    ]

    var body: some Reducer<Int, Int> {
        for part in parts { part }
        parts[0]
    }
}

@MainActor
@Suite("Test stores under their established names", .timeLimit(.minutes(5)))
struct TestStoreNamesTests {
    typealias Feature = TestStoreTests.Feature

    @Test("skipped assertions are shown on request, without a failure")
    func shownSkips() async {
        let reports = await issues {
            let store = TestStore(initialState: Feature.State()) { Feature() }
            store.exhaustivity = .off(showSkippedAssertions: true)
            await store.send(.add)
            await store.send(.chain) { $0.count = 1 }
            await store.receive(\.nothing)
            await store.send(.add) { $0.count = 4 }
        }
        #expect(reports.count == 3)
        #expect(reports.allSatisfy { $0.hasPrefix("(skipped) ") })
        #expect(reports.first?.contains("The state was not expected to change, but .add changed it") == true)
        #expect(reports.dropFirst().first?.contains("Skipped: .add") == true)
    }

    @Test("changes that are not named are shown beside the named ones")
    func unnamedChanges() async {
        let reports = await issues {
            let store = TestStore(initialState: Feature.State(items: [.init(name: "x")])) { Feature() }
            store.exhaustivity = .off(showSkippedAssertions: true)
            await store.send(.load)
            await store.receive(\.loaded) { $0.items.removeLast($0.items.count - 1) }
        }
        #expect(reports.count == 1)
        #expect(reports.first?.contains("did not change the state as expected") == true)
        let named = await issues {
            let store = TestStore(initialState: Feature.State()) { Feature() }
            store.exhaustivity = .off(showSkippedAssertions: true)
            await store.send(.load)
            await store.receive(\.loaded) { _ = $0.count }
        }
        #expect(named.count == 1)
        #expect(named.first?.contains("(skipped) Changes of the state were not asserted:") == true)
    }

    @Test("a test store fails when the effects of a sent action do not end in time")
    func finishInTime() async {
        let reports = await issues {
            let store = TestStore(initialState: Feature.State()) { Feature() }
            let task = await store.send(.wait)
            await task.finish(timeout: .milliseconds(10))
            task.cancel()
            await task.finish()
        }
        #expect(
            reports == [
                "Effects of a sent action still run after 0.01 seconds. Let them end, cancel them, or pass a longer "
                    + "timeout to 'finish'."
            ])
    }

    @Test("the dependencies of a test store can be changed between actions")
    func dependencies() async {
        let store = TestStore(initialState: DependencyTests.Feature.State()) {
            DependencyTests.Feature()
        } withDependencies: {
            $0.clock.now = { 1 }
        }
        await store.send(.read) { $0.times = [1] }
        #expect(store.dependencies.clock.now() == 1)
        store.dependencies.clock.now = { 2 }
        await store.send(.read) { $0.times = [1, 2] }
        await store.send(.readLater)
        await store.receive(\.time, 2) { $0.times.append(2) }
    }
}
