import SharedState
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct SharedConcurrencyTests {
    private let store = SharedStore()

    @Test("threads that increment through separate wrappers lose no increment")
    func increments() {
        @Shared(.inMemory("count"), store: store) var count = 0
        onThreads(8) { [store] _ in
            @Shared(.inMemory("count"), store: store) var mine = 0
            for _ in 0..<5_000 { $mine.withLock { $0 += 1 } }
        }
        #expect(count == 40_000)
    }

    @Test("threads that request one key concurrently get one value with one subscription")
    func oneReference() {
        for _ in 0..<50 {
            let backend = Backend<Int>()
            let made = RecordedEntries<Shared<Int>>()
            onThreads(8) { [store] number in
                made.add(Shared(wrappedValue: number, backend.key, store: store))
            }
            made.entries[0].withLock { $0 = 100 }
            #expect(made.entries.allSatisfy { $0.wrappedValue == 100 })
            #expect(backend.subscribers.count == 1)
            #expect(backend.cancelCount == 0)
        }
    }

    @Test("the last save has the newest value, whatever threads do")
    func lastSave() {
        for _ in 0..<50 {
            let backend = Backend<Int>()
            @Shared(backend.key, store: store) var count = 0
            onThreads(4) { [shared = $count] _ in
                for _ in 0..<20 { shared.withLock { $0 += 1 } }
            }
            #expect(backend.saves.last?.value == 80)
            let values = backend.saves.map(\.value)
            #expect(values == values.sorted())
        }
    }

    @Test("a reader of updates never goes back, and gets the last value")
    func updates() async {
        @Shared(value: 0) var count
        let updates = $count.updates
        let reader = Task {
            var seen: [Int] = []
            for await value in updates {
                seen.append(value)
                if value == 20_000 { break }
            }
            return seen
        }
        await Task.detached { [shared = $count] in
            onThreads(4) { _ in
                for _ in 0..<5_000 { shared.withLock { $0 += 1 } }
            }
        }.value
        let seen = await reader.value
        #expect(zip(seen, seen.dropFirst()).allSatisfy(<))
        #expect(seen.last == 20_000)
    }

    @Test("a reader of an unwrapped optional keeps the newest seen value, whatever other threads read")
    func lastSeen() throws {
        var wrong = 0
        for _ in 0..<300 {
            let whole = Shared(value: Int?.some(0))
            let part = try #require(SharedReader(whole))
            let isOver = Shared(value: false)
            onThreads(3) { number in
                if number > 0 {
                    while !isOver.wrappedValue { _ = part.wrappedValue }
                    return
                }
                for value in 1...200 { whole.withLock { $0 = value } }
                _ = part.wrappedValue
                whole.withLock { $0 = nil }
                isOver.withLock { $0 = true }
            }
            if part.wrappedValue != 200 { wrong += 1 }
        }
        #expect(wrong == 0)
    }

    @Test("a long closure of withLock does not block readers")
    func reading() async {
        @Shared(value: 1) var count
        let isInside = RecordedEntries<Void>()
        let hasRead = RecordedEntries<Void>()
        await withTaskGroup { [shared = $count] group in
            group.addTask {
                shared.withLock {
                    isInside.add(())
                    while hasRead.count == 0 {}
                    $0 = 2
                }
            }
            #expect(await eventually { isInside.count == 1 }, "the writer holds the lock")
            #expect(shared.wrappedValue == 1)
            hasRead.add(())
        }
        #expect(count == 2)
    }

    @Test("a replaced value is freed at once, and its deinit may use the shared value")
    func reentrantDeinit() {
        final class ReadingDeinit: Sendable {
            let onDeinit: @Sendable () -> Void
            init(_ onDeinit: @escaping @Sendable () -> Void) { self.onDeinit = onDeinit }
            deinit { onDeinit() }
        }
        let tail = Shared<ReadingDeinit?>(value: nil)
        let wasReplaced = RecordedEntries<Bool>()
        tail.withLock {
            $0 = ReadingDeinit { [tail] in
                wasReplaced.add(tail.wrappedValue == nil)
                tail.withLock { _ in }
            }
        }
        tail.withLock { $0 = nil }
        #expect(wasReplaced.entries == [true])
    }
}
