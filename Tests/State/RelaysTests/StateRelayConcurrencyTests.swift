import Relays
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct StateRelayConcurrencyTests {
    @Test("with many writers no reader goes back, none sees a value twice, and all see the last")
    func manyWriters() async {
        let relay = StateRelay(0)
        let writers = 8
        let rounds = 2_000
        await withTaskGroup(of: [Int].self) { group in
            for _ in 0..<16 {
                group.addTask {
                    var seen: [Int] = []
                    for await value in relay.stream { seen.append(value) }
                    return seen
                }
            }
            await withTaskGroup { writing in
                for _ in 0..<writers {
                    writing.addTask {
                        for round in 0..<rounds {
                            relay.update { $0 += 1 }
                            if round.isMultiple(of: 50) { await Task.yield() }
                        }
                    }
                }
            }
            relay.finish()
            for await seen in group {
                #expect(seen.last == writers * rounds)
                #expect(zip(seen, seen.dropFirst()).allSatisfy { $0 < $1 })
            }
        }
        #expect(relay.waitingReaderCount == 0)
    }

    @Test("a waiting reader ends when its task is cancelled, and leaves nothing behind")
    func cancellation() async {
        let relay = StateRelay(0)
        let reader = Task {
            var seen: [Int] = []
            for await value in relay.stream { seen.append(value) }
            return seen
        }
        #expect(await eventually { relay.waitingReaderCount == 1 }, "the reader waits")
        reader.cancel()
        #expect(await reader.value == [0])
        #expect(relay.waitingReaderCount == 0)
    }

    @Test("a reader in a cancelled task gets nothing")
    func cancelledBefore() async {
        let relay = StateRelay(0)
        let reader = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            var iterator = relay.stream.makeAsyncIterator()
            return await iterator.next()
        }
        #expect(await reader.value == nil)
    }

    @Test("cancellation of readers during writes neither hangs nor loses a reader")
    func cancellationRaces() async {
        let relay = StateRelay(0)
        let writer = Task {
            while !Task.isCancelled {
                relay.update { $0 += 1 }
                await Task.yield()
            }
        }
        for _ in 0..<200 {
            let readers = (0..<20).map { _ in
                Task {
                    var last = -1
                    for await value in relay.stream {
                        guard value > last else { return false }
                        last = value
                    }
                    return true
                }
            }
            for (index, reader) in readers.enumerated() {
                if index.isMultiple(of: 3) { await Task.yield() }
                reader.cancel()
            }
            for reader in readers { #expect(await reader.value, "a value was repeated or older") }
        }
        writer.cancel()
        await writer.value
        #expect(relay.waitingReaderCount == 0)
    }

    @Test("concurrent cancellation and finish end every reader once")
    func cancellationAgainstFinish() async {
        for _ in 0..<500 {
            let relay = StateRelay(0)
            let readers = (0..<4).map { _ in
                Task { for await _ in relay.stream {} }
            }
            #expect(await eventually { relay.waitingReaderCount == readers.count }, "all readers wait")
            await withTaskGroup { group in
                group.addTask { for reader in readers { reader.cancel() } }
                group.addTask { relay.finish() }
            }
            for reader in readers { await reader.value }
            #expect(relay.waitingReaderCount == 0)
        }
    }
}
