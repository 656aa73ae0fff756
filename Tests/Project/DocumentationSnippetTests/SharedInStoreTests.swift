import SharedState
import StateMachines
import Synchronization
import Testing

/// Values that a state shares with others, in a test store: asserted like the rest of the state.
@MainActor
@Suite struct SharedInStoreTests {
    private struct Counter: Reducer {
        struct State: Equatable {
            @Shared var count: Int
            @Shared var name: String?
            var taps = 0

            init(_ count: Shared<Int>, name: Shared<String?> = Shared(value: nil)) {
                _count = count
                _name = name
            }
        }
        enum Action: Equatable { case add, tap, rename, later, nothing }

        func reduce(into state: inout State, action: Action) -> Effect<Action> {
            switch action {
            case .add: state.$count.withLock { $0 += 1 }
            case .tap: state.taps += 1
            case .rename:
                state.$name.withLock { $0 = state.count == 0 ? nil : "Ada" }
                state.$count.withLock { $0 += 1 }
                state.taps += 1
            case .later: return .run { await $0(.add) }
            case .nothing: break
            }
            return .none
        }
    }

    private final class Texts: Sendable {
        let all = Mutex<[String]>([])
    }

    private let count = Shared(value: 0)

    private func store() -> TestStoreOf<Counter> {
        TestStore(initialState: Counter.State(count)) { Counter() }
    }

    /// The reports of a test store in `body`.
    private func reports(_ body: () async -> Void) async -> [String] {
        let texts = Texts()
        await withKnownIssue(isIntermittent: true) {
            await body()
        } matching: { issue in
            texts.all.withLock { $0.append(issue.comments.map(\.rawValue).joined()) }
            return true
        }
        return texts.all.withLock { $0 }
    }

    @Test("a change of a shared value is asserted, and the closure sees the previous value")
    func asserted() async {
        let store = store()
        await store.send(.add) {
            #expect($0.count == 0)
            $0.$count.withLock { $0 = 1 }
            #expect($0.count == 1)
        }
        await store.send(.add) { $0.$count.withLock { $0 += 1 } }
        #expect(count.wrappedValue == 2)
        await store.send(.rename) {
            $0.$name.withLock { $0 = "Ada" }
            $0.$count.withLock { $0 = 3 }
            $0.taps = 1
        }
        await store.send(.later)
        await store.receive(.add) { $0.$count.withLock { $0 = 4 } }
        store.assert { #expect($0.count == 4) }
    }

    @Test("a closure's change of a shared value is compared, and not written")
    func unwritten() async {
        let reports = await reports {
            let store = store()
            await store.send(.add) { $0.$count.withLock { $0 = 7 } }
            #expect(count.wrappedValue == 1)
            store.assert { $0.$count.withLock { $0 = 8 } }
        }
        #expect(count.wrappedValue == 1)
        #expect(reports.count == 2)
        #expect(reports.allSatisfy { $0.contains("a shared Int: expected ") && $0.contains(", is 1") })
    }

    @Test("a shared value's change without an assertion is an issue, as is an assertion without a change")
    func exhaustive() async {
        let reports = await reports {
            let store = store()
            await store.send(.add)
            await store.send(.tap) {
                $0.taps = 1
                $0.$count.withLock { $0 = 5 }
            }
            await store.send(.nothing) { $0.$count.withLock { $0 = 1 } }
        }
        #expect(reports.count == 3)
        #expect(reports.first?.contains("a shared Int: was 0, is 1") == true)
        #expect(reports.dropFirst().first?.contains("a shared Int: expected 5, is 1") == true)
        #expect(reports.last?.contains("but there was none") == true)
    }

    @Test("without exhaustivity only the named changes are compared")
    func partial() async {
        let store = store()
        store.exhaustivity = .off
        await store.send(.add)
        await store.send(.rename) { $0.$name.withLock { $0 = "Ada" } }
        let reports = await reports { await store.send(.add) { $0.$count.withLock { $0 = 9 } } }
        #expect(reports.count == 1)
    }

    @Test("a part of a shared value, and one set to its previous value, count by their values")
    func parts() async {
        struct Whole: Equatable, Sendable {
            var left = 0
            var right = 0
        }
        struct Parts: Reducer {
            struct State: Equatable {
                @Shared var left: Int
                init(_ left: Shared<Int>) { _left = left }
            }
            func reduce(into state: inout State, action: Int) -> Effect<Int> {
                state.$left.withLock { $0 = action }
                return .none
            }
        }
        let whole = Shared(value: Whole())
        let store = TestStore(initialState: Parts.State(whole.left)) { Parts() }
        await store.send(0)
        await store.send(3) { $0.$left.withLock { $0 = 3 } }
        #expect(whole.wrappedValue == Whole(left: 3))
    }
}
