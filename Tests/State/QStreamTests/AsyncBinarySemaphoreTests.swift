@testable import QStream
import Relays
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct AsyncBinarySemaphoreTests {
    /// Changed under the lock alone.
    private final class Counter: @unchecked Sendable {
        // Unchecked: the tested lock protects it.
        var value = 0
    }

    @Test("fifty tasks count to half a million under the lock", arguments: [false, true])
    func mutualExclusion(isReentrant: Bool) async {
        let lock = AsyncBinarySemaphore(allowTaskReentrancy: isReentrant)
        let counter = Counter()
        await (0..<50).forEachConcurrent { _ in
            for _ in 0..<100 { await lock.withLock { for _ in 0..<100 { counter.value += 1 } } }
        }
        #expect(counter.value == 500_000)
    }

    @Test("the lock is held across suspensions")
    func suspension() async {
        let lock = AsyncBinarySemaphore()
        let log = Log<String>()
        await ["a", "b", "c"].forEachConcurrent { name in
            await lock.withLock {
                log.record("\(name) in")
                for _ in 0..<5 { await Task.yield() }
                log.record("\(name) out")
            }
        }
        for index in stride(from: 0, to: 6, by: 2) {
            #expect(log.values[index].prefix(1) == log.values[index + 1].prefix(1))
        }
    }

    @Test("waiters get the lock in the order of their arrival")
    func fairness() async {
        let lock = AsyncBinarySemaphore(value: false)
        let log = Log<Int>()
        var tasks: [Task<Void, Never>] = []
        for number in 0..<10 {
            tasks.append(
                Task {
                    await lock.wait()
                    log.record(number)
                    await lock.signal()
                })
            #expect(await eventually { lock.waitingCount == number + 1 }, "it waits")
        }
        await lock.signal()
        for task in tasks { await task.value }
        #expect(log.values == Array(0..<10))
    }

    @Test("one signal without a waiter is stored")
    func signal() async {
        let signal = AsyncBinarySemaphore(value: false)
        await signal.signal()
        signal.signalNow()
        await signal.wait()
        let second = Task { try await signal.waitCancelable() }
        #expect(await eventually { signal.waitingCount == 1 }, "the second signal is not stored")
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        #expect(signal.waitingCount == 0)
    }

    @Test("a cancelled waiter leaves, does no work and takes no turn")
    func cancellation() async throws {
        let lock = AsyncBinarySemaphore()
        await lock.wait()
        let waiting = Task { try await lock.withLockCancelable { Issue.record("a cancelled waiter has the lock") } }
        #expect(await eventually { lock.waitingCount == 1 }, "it waits")
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        await lock.signal()
        #expect(try await lock.withLockCancelable { 7 } == 7)
        #expect(try await lock.withLockSendableCancelable { 8 } == 8)
        #expect(await lock.withLockSendable { 9 } == 9)
    }

    @Test("a wait without Cancelable continues when the task is cancelled")
    func uncancelled() async {
        let lock = AsyncBinarySemaphore(value: false)
        let waiting = Task { await lock.withLock { Task.isCancelled } }
        #expect(await eventually { lock.waitingCount == 1 }, "it waits")
        waiting.cancel()
        await lock.signal()
        #expect(await waiting.value)
    }

    @Test("an error in the work unlocks")
    func errors() async throws {
        struct Refusal: Error {}
        for lock in [AsyncBinarySemaphore(), AsyncBinarySemaphore(allowTaskReentrancy: true)] {
            await #expect(throws: Refusal.self) { try await lock.withLock { throw Refusal() } }
            await lock.withLock {}
        }
    }

    @Test("a reentrant lock lets its task lock again; another task waits until both sections end")
    func reentrancy() async {
        let lock = AsyncBinarySemaphore(allowTaskReentrancy: true)
        let log = Log<String>()
        let other = Mutex<Task<Void, Never>?>(nil)
        await lock.withLock {
            // Detached: it does not belong to this section.
            other.withLock { $0 = Task.detached { await lock.withLock { log.record("other") } } }
            #expect(await eventually { lock.waitingCount == 1 }, "the other task waits")
            await lock.withLock {
                await lock.withLock { log.record("innermost") }
                log.record("inner")
            }
            log.record("outer")
        }
        await other.withLock { $0 }?.value
        #expect(log.values == ["innermost", "inner", "outer", "other"])
    }

    @Test("children of a holder exclude each other")
    func children() async {
        let lock = AsyncBinarySemaphore(allowTaskReentrancy: true)
        let counter = Counter()
        await lock.withLock {
            await (0..<20).forEachConcurrent { _ in
                await lock.withLock {
                    let value = counter.value
                    await Task.yield()
                    counter.value = value + 1
                }
            }
        }
        #expect(counter.value == 20)
    }

    @Test("a task that was started inside a section and runs after it waits like any other")
    func stragglers() async {
        let lock = AsyncBinarySemaphore(allowTaskReentrancy: true)
        let latch = Latch()
        let straggler = await lock.withLock {
            Task {
                await latch.wait()
                return await lock.withLock { true }
            }
        }
        await lock.wait()
        await latch.open()
        #expect(await eventually { lock.waitingCount == 1 }, "the late task waits")
        await lock.signal()
        #expect(await straggler.value)
    }
}
