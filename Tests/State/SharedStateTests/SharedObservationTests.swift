import Observation
import SharedState
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct SharedObservationTests {
    private let store = SharedStore()

    /// True if `change` notifies an observer of `read` before it returns.
    private func isNoticed(_ read: () -> Void, by change: () -> Void) -> Bool {
        let note = RecordedEntries<Void>()
        withObservationTracking {
            read()
        } onChange: {
            note.add(())
        }
        change()
        return note.count == 1
    }

    @Test("a change notifies the observer before withLock returns, and shows the new value")
    func change() {
        @Shared(value: 0) var count
        let seen = RecordedEntries<Int>()
        withObservationTracking {
            _ = count
        } onChange: { [shared = $count] in
            seen.add(shared.wrappedValue)
        }
        $count.withLock { $0 = 1 }
        #expect(seen.entries == [1])
    }

    @Test("changes notify only the observers of what they change")
    func table() async {
        let backend = Backend<Int>()
        @Shared(backend.key, store: store) var count = 0
        @SharedReader(backend.key, store: store) var reader = 0
        @Shared(value: 0) var other
        let subscriber = backend.subscriber
        #expect(isNoticed({ _ = reader }, by: { $count.withLock { $0 = 1 } }))
        #expect(isNoticed({ _ = count }, by: { subscriber.yield(2) }))
        #expect(isNoticed({ _ = $count.isLoading }, by: { subscriber.yieldLoading() }))
        #expect(isNoticed({ _ = $reader.loadError }, by: { subscriber.yield(throwing: TestError()) }))
        #expect(isNoticed({ _ = $other.description }, by: { $other.withLock { $0 = 3 } }))
        #expect(!isNoticed({ _ = count }, by: { $other.withLock { $0 = 1 } }))
        #expect(!isNoticed({ _ = count }, by: { subscriber.yieldLoading() }))
        #expect(!isNoticed({ _ = $count.isLoading }, by: { $other.withLock { $0 = 1 } }))
    }

    @Test("an observer of a part is notified of changes of the whole")
    func part() {
        @Shared(value: [1, 2]) var numbers
        let first = $numbers[0]
        #expect(isNoticed({ _ = first.wrappedValue }, by: { $numbers.withLock { $0[0] = 9 } }))
    }

    @MainActor
    @Test("an observer that reads again after each change misses none, on the actor that changes the value")
    func lossless() async {
        @Shared(value: 0) var count
        let observer = ObservationLoop($count)
        observer.observe()
        for number in 1...2_000 {
            $count.withLock { $0 += 1 }
            if number.isMultiple(of: 7) { await Task.yield() }
        }
        #expect(await eventually { observer.seen.last == 2_000 }, "the observer has the last value")
        #expect(observer.seen == observer.seen.sorted())
    }

    @Test("an observer receives the last of concurrent changes on several threads")
    func threads() async {
        @Shared(value: 0) var count
        let reader = Task { [updates = $count.updates] in
            for await value in updates where value == 4_000 { return true }
            return false
        }
        await Task.detached { [shared = $count] in
            onThreads(2) { _ in
                for _ in 0..<2_000 { shared.withLock { $0 += 1 } }
            }
        }.value
        #expect(await reader.value)
    }

    @Test("Observations follows a shared value")
    func observations() async {
        @Shared(value: 0) var count
        let values = Observations { [shared = $count] in shared.wrappedValue }
        let reader = Task {
            for await value in values where value == 3 { return true }
            return false
        }
        for number in 1...3 { $count.withLock { $0 = number } }
        #expect(await reader.value)
    }
}

/// Reads again after each change.
@MainActor
private final class ObservationLoop {
    private let shared: Shared<Int>
    private(set) var seen: [Int] = []

    init(_ shared: Shared<Int>) { self.shared = shared }

    func observe() {
        withObservationTracking {
            seen.append(shared.wrappedValue)
        } onChange: {
            Task { @MainActor in self.observe() }
        }
    }
}
