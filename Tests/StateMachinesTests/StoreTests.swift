import Observation
import Synchronization
import TestSupport
import Testing

@testable import StateMachines

@MainActor
@Suite("A store", .timeLimit(.minutes(5)))
struct StoreTests {
    @Reducer
    struct Feature {
        @ObservableState
        struct State: Equatable {
            var count = 0
            var name = ""
            var child = Child.State()
        }
        @CasePathable
        enum Action {
            case add
            case rename(String)
            case child(Child.Action)
            case addLater
            case wait(Recorder)
        }

        var body: some Reducer<State, Action> {
            Scope(state: \.child, action: \.child) { Child() }
            Reduce { state, action in
                switch action {
                case .add:
                    state.count += 1
                    return .none
                case .rename(let name):
                    state.name = name
                    return .none
                case .child: return .none
                case .addLater: return .run { await $0(.add) }
                case .wait(let recorder):
                    return .run { _ in
                        recorder.record("began")
                        await untilCancelled()
                        recorder.record("ended")
                    }
                }
            }
        }
    }

    @Reducer
    struct Child {
        @ObservableState
        struct State: Equatable {
            var count = 0
            var other = 0
        }
        enum Action { case add, addOther }

        var body: some Reducer<State, Action> {
            Reduce { state, action in
                switch action {
                case .add: state.count += 1
                case .addOther: state.other += 1
                }
                return .none
            }
        }
    }

    private let store = Store(initialState: Feature.State()) { Feature() }

    /// Reads, and counts the change that is told of.
    private func observe(_ changes: Recorder, _ name: String, _ read: () -> Void) {
        withObservationTracking(read) { changes.record(name) }
    }

    @Test("reduces actions and those that effects send")
    func actions() async {
        store.send(.add)
        #expect(store.count == 1)
        await store.send(.addLater).finish()
        #expect(store.count == 2)
        #expect(store.state == Feature.State(count: 2))
        #expect(store.withState(\.count) == 2)
    }

    @Test("tells the observers of a property when that one changes, and not of others")
    func properties() {
        let changes = Recorder()
        observe(changes, "count") { _ = store.count }
        observe(changes, "name") { _ = store.name }
        observe(changes, "state") { _ = store.state }
        store.send(.rename("a"))
        #expect(Set(changes.entries) == ["name", "state"])
        store.send(.rename("a"))
        store.send(.add)
        #expect(changes.entries.count == 3)
        #expect(changes.entries.last == "count")
    }

    @Test("tells each observer once, until it looks again")
    func once() {
        let changes = Recorder()
        observe(changes, "first") { _ = store.count }
        store.send(.add)
        store.send(.add)
        #expect(changes.entries == ["first"])
        observe(changes, "second") { _ = store.count }
        store.send(.add)
        #expect(changes.entries == ["first", "second"])
    }

    @Test("has its old state while it tells of a change, and takes actions then for later")
    func actionsFromObservers() {
        let seen = Mutex<[Int]>([])
        withObservationTracking {
            _ = store.count
        } onChange: { [store] in
            // Observers are called where the store changes: on the main actor.
            MainActor.assumeIsolated {
                seen.withLock { $0.append(store.withState(\.count)) }
                store.send(.rename("changed"))
                seen.withLock { $0.append(store.withState(\.name.count)) }
            }
        }
        store.send(.add)
        #expect(seen.withLock { $0 } == [0, 0])
        #expect(store.count == 1)
        #expect(store.name == "changed")
    }

    @Test("gives a store of a part, which is observed by itself")
    func scope() {
        let changes = Recorder()
        let child = store.scope(state: \.child, action: \.child)
        observe(changes, "child") { _ = child.count }
        store.send(.add)
        child.send(.addOther)
        #expect(changes.entries == [])
        child.send(.add)
        #expect(changes.entries == ["child"])
        #expect(store.child.count == 1)
        #expect(child.count == 1)
    }

    @Test("ends its effects when it goes, but not while a part of it is held")
    func release() async {
        let recorder = Recorder()
        var store: Store<Feature.State, Feature.Action>? = Store(initialState: Feature.State()) { Feature() }
        weak let weakStore = store
        let task = store?.send(.wait(recorder))
        #expect(await eventually { recorder.entries == ["began"] }, "it runs")
        var child = store?.scope(state: \.child, action: \.child)
        store = nil
        #expect(weakStore != nil)
        child?.send(.add)
        #expect(child?.count == 1)
        child = nil
        #expect(weakStore == nil)
        await task?.finish()
        #expect(recorder.entries == ["began", "ended"])
    }

    @Test("changes a state that nobody observes in its place")
    func inPlace() {
        struct Lists: Reducer {
            struct State { var items: [Int] = Array(0..<10) }
            enum Action { case set(Int) }
            func reduce(into state: inout State, action: Action) -> Effect<Action> {
                if case .set(let value) = action { state.items[0] = value }
                return .none
            }
        }
        let store = Store(initialState: Lists.State()) { Lists() }
        func address() -> Int {
            store.withState { state in state.items.withUnsafeBufferPointer { Int(bitPattern: $0.baseAddress) } }
        }
        store.send(.set(1))
        let before = address()
        store.send(.set(2))
        #expect(address() == before)
        #expect(store.withState(\.items[0]) == 2)
    }

    @Test("tells of a property that may be nil when it comes or goes, and not when it stays")
    func optionalProperty() {
        struct Naming: Reducer {
            struct State: ObservableState { var name: String? }
            typealias Action = String?
            func reduce(into state: inout State, action: String?) -> Effect<String?> {
                state.name = action
                return .none
            }
        }
        let store = Store(initialState: Naming.State()) { Naming() }
        let changes = Recorder()
        observe(changes, "came") { _ = store.name }
        store.send(nil)
        #expect(changes.entries == [])
        store.send("a")
        #expect(changes.entries == ["came"])
        observe(changes, "went") { _ = store.name }
        store.send("a")
        #expect(changes.entries == ["came"])
        store.send(nil)
        #expect(changes.entries == ["came", "went"])
    }

    @Test("keeps nothing of parts that were dropped")
    func droppedScopes() {
        let kept = store.scope(state: \.child, action: \.child)
        for _ in 0..<1_000 { _ = store.scope(state: \.child, action: \.child) }
        #expect(store.observers.childCount < 20)
        let changes = Recorder()
        observe(changes, "kept") { _ = kept.count }
        store.send(.child(.add))
        #expect(changes.entries == ["kept"])
    }

    @Test("tells of a property that cannot be compared with each change")
    func incomparable() {
        struct Opaque: Reducer {
            struct State: ObservableState { var read: @Sendable () -> Int = { 0 } }
            enum Action { case nothing }
            func reduce(into state: inout State, action: Action) -> Effect<Action> { .none }
        }
        let store = Store(initialState: Opaque.State()) { Opaque() }
        let changes = Recorder()
        observe(changes, "read") { _ = store.read() }
        store.send(.nothing)
        #expect(changes.entries == ["read"])
    }
}
