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

    /// Reads, and counts the observed change.
    private func observe(_ changes: Recorder, _ name: String, _ read: () -> Void) {
        withObservationTracking(read) { changes.record(name) }
    }

    @Test("a store reduces actions and those that effects send")
    func actions() async {
        store.send(.add)
        #expect(store.count == 1)
        await store.send(.addLater).finish()
        #expect(store.count == 2)
        #expect(store.state == Feature.State(count: 2))
        #expect(store.withState(\.count) == 2)
    }

    @Test("a change notifies the observers of its property, and no others")
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

    @Test("each observer is notified once, until it reads again")
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

    @Test("observers see the old state, and their actions are queued")
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

    @Test("a scoped store is observed separately")
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

    @Test("the effects of a store end with its release, but not while a scoped store is referenced")
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

    @Test("an unobserved state is changed in place")
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

    @Test("an optional property notifies when it appears or disappears, and not when it stays")
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

    @Test("released scoped stores leave nothing behind")
    func droppedScopes() {
        let scoped = store.scope(state: \.child, action: \.child)
        for _ in 0..<1_000 { _ = store.scope(state: \.child, action: \.child) }
        #expect(store.observers.childCount < 20)
        let changes = Recorder()
        observe(changes, "kept") { _ = scoped.count }
        store.send(.child(.add))
        #expect(changes.entries == ["kept"])
    }

    @Test("a property that cannot be compared notifies with each change")
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
