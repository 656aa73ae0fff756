import Testing

@testable import StateMachines

@MainActor
@Suite("Reducers", .timeLimit(.minutes(5)))
struct ReducerTests {
    @Reducer
    struct Counter {
        @ObservableState
        struct State: Equatable, Identifiable {
            var id = 0
            var count = 0
        }
        @CasePathable
        enum Action: Equatable { case add, later, wait, stop, become(Int), becomeAndWait(Int) }

        var body: some Reducer<State, Action> {
            Reduce { state, action in
                switch action {
                case .add:
                    state.count += 1
                    return .none
                case .later: return .run { await $0(.add) }
                case .wait: return .run { _ in await untilCancelled() }.cancellable(id: "wait")
                case .stop: return .cancel(id: "wait")
                case .become(let id):
                    state = State(id: id)
                    return .none
                case .becomeAndWait(let id):
                    state = State(id: id)
                    return .run { _ in await untilCancelled() }.cancellable(id: "wait")
                }
            }
        }
    }

    @Reducer
    struct Parent {
        struct State: Equatable {
            var counter = Counter.State()
            var maybe: Counter.State?
            var rows: IdentifiedArrayOf<Counter.State> = []
            var seen: [Int] = []
            var isLoud = true
        }
        @CasePathable
        enum Action: Equatable {
            case counter(Counter.Action)
            case maybe(Counter.Action)
            case rows(IdentifiedActionOf<Counter>)
            case show(id: Int)
            case hide
            case remove(id: Int)
        }
        var isWatching = true

        var body: some Reducer<State, Action> {
            CombineReducers {
                Scope(state: \.counter, action: \.counter) { Counter() }
                if isWatching {
                    Reduce { state, action in
                        if action == .counter(.add) { state.seen.append(state.counter.count) }
                        return .none
                    }
                } else {
                    EmptyReducer()
                }
                Reduce { state, action in
                    switch action {
                    case .show(let id): state.maybe = Counter.State(id: id)
                    case .hide: state.maybe = nil
                    case .remove(let id): state.rows.remove(id: id)
                    default: break
                    }
                    return .none
                }
            }
            .ifLet(\.maybe, action: \.maybe) { Counter() }
            .forEach(\.rows, action: \.rows) { Counter() }
        }
    }

    @Test("reducers run from the top down, a child on its part of the state")
    func order() async {
        let store = TestStore(initialState: Parent.State()) { Parent() }
        await store.send(.counter(.add)) {
            $0.counter.count = 1
            $0.seen = [1]
        }
        await store.send(.counter(.later))
        await store.receive(.counter(.add)) {
            $0.counter.count = 2
            $0.seen = [1, 2]
        }
        let deaf = TestStore(initialState: Parent.State()) { Parent(isWatching: false) }
        await deaf.send(.counter(.add)) { $0.counter.count = 1 }
    }

    @Test("an optional child runs while it exists, and an action for an absent one is reported")
    func optionalChild() async {
        let store = TestStore(initialState: Parent.State()) { Parent() }
        let reports = await issues { await store.send(.maybe(.add)) }
        #expect(reports.count == 1)
        #expect(reports.first?.contains("whose state is nil: .maybe(.add)") == true)
        await store.send(.show(id: 1)) { $0.maybe = .init(id: 1) }
        await store.send(.maybe(.later))
        await store.receive(\.maybe.add) { $0.maybe?.count = 1 }
    }

    @Test("the effects of a removed or replaced child end", arguments: [Parent.Action.hide, .show(id: 2)])
    func endOfChild(action: Parent.Action) async {
        let store = TestStore(initialState: Parent.State(maybe: .init(id: 1))) { Parent() }
        store.exhaustivity = .off
        let waiting = await store.send(.maybe(.wait))
        let other = await store.send(.counter(.wait))
        await store.send(.maybe(.add))
        #expect(store.effects.origins.count == 2)
        await store.send(action)
        await waiting.finish()
        #expect(store.effects.origins == [.counter(.wait)])
        other.cancel()
        await other.finish()
    }

    @Test("an element runs by its id, and an action for an absent one is reported")
    func elements() async {
        let store = TestStore(initialState: Parent.State(rows: [.init(id: 1), .init(id: 2)])) { Parent() }
        await store.send(.rows(.element(id: 2, action: .add))) { $0.rows[id: 2]?.count = 1 }
        await store.send(.rows(.element(id: 1, action: .later)))
        await store.receive(\.rows.element) { $0.rows[id: 1]?.count = 1 }
        let reports = await issues { await store.send(.rows(.element(id: 3, action: .add))) }
        #expect(reports.count == 1)
        #expect(reports.first?.contains("an element that does not exist") == true)
    }

    @Test("the effects of a removed element end, and its siblings' do not")
    func removedElement() async {
        let store = TestStore(initialState: Parent.State(rows: [.init(id: 1), .init(id: 2)])) { Parent() }
        let first = await store.send(.rows(.element(id: 1, action: .wait)))
        let second = await store.send(.rows(.element(id: 2, action: .wait)))
        await store.send(.remove(id: 1)) { $0.rows.remove(id: 1) }
        await first.finish()
        #expect(store.effects.origins == [.rows(.element(id: 2, action: .wait))])
        await store.send(.rows(.element(id: 2, action: .stop)))
        await second.finish()
        await store.finish()
    }

    @Test("a cancellation by id ends only the effects of its own element")
    func ownIDs() async {
        let store = TestStore(initialState: Parent.State(rows: [.init(id: 1), .init(id: 2)])) { Parent() }
        let first = await store.send(.rows(.element(id: 1, action: .wait)))
        await store.send(.rows(.element(id: 2, action: .stop)))
        #expect(store.effects.origins.count == 1)
        await store.send(.rows(.element(id: 1, action: .stop)))
        await first.finish()
    }

    @Test("the effects of a child that its own action replaces end, except for those of that action")
    func becomesAnother() async {
        let store = TestStore(initialState: Parent.State(maybe: .init(id: 1))) { Parent() }
        let old = await store.send(.maybe(.wait))
        await store.send(.maybe(.becomeAndWait(2))) { $0.maybe = .init(id: 2) }
        await old.finish()
        #expect(store.effects.origins == [.maybe(.becomeAndWait(2))])
        await store.send(.maybe(.stop))
        await store.finish()
    }

    @Test("the effects of an element that its own action replaces end")
    func elementBecomesAnother() async {
        let store = TestStore(initialState: Parent.State(rows: [.init(id: 1), .init(id: 2)])) { Parent() }
        let old = await store.send(.rows(.element(id: 1, action: .wait)))
        let other = await store.send(.rows(.element(id: 2, action: .wait)))
        await store.send(.rows(.element(id: 1, action: .become(3)))) { $0.rows = [.init(id: 3), .init(id: 2)] }
        await old.finish()
        #expect(store.effects.origins == [.rows(.element(id: 2, action: .wait))])
        await store.send(.rows(.element(id: 2, action: .stop)))
        await other.finish()
    }

    @Test("the effects of a child in a case that its own action replaces end")
    func caseBecomesAnother() async {
        let store = TestStore(initialState: Screen.counter(.init(id: 1))) {
            Reduce<Screen, ScreenAction> { _, _ in .none }
                .ifCaseLet(\.counter, action: \.counter) { Counter() }
        }
        let old = await store.send(.counter(.wait))
        await store.send(.counter(.become(2))) { $0 = .counter(.init(id: 2)) }
        await old.finish()
        await store.finish()
    }

    @CasePathable
    enum Screen: Equatable { case counter(Counter.State) }
    @CasePathable
    enum ScreenAction: Equatable { case counter(Counter.Action) }

    @Test("very many elements can be removed at once")
    func emptied() async {
        // In a separate process: a stack overflow would end it.
        await #expect(processExitsWith: .success) {
            let rows = IdentifiedArray(uniqueElements: (0..<10_000).map { Counter.State(id: $0) })
            let host = ReducerHost(initialState: rows) {
                Reduce<IdentifiedArrayOf<Counter.State>, IdentifiedActionOf<Counter>> { state, _ in
                    state.removeAll()
                    return .none
                }
                .forEach(\.self, action: \.self) { Counter() }
            }
            await host.send(.element(id: 1, action: .wait)).finish()
        }
    }
}
