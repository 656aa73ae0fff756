import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// The queue of calls that wait for the activation of an actor.
@Suite struct ActivationQueueTests {
    private struct CallerGone: Error {}

    /// Resumes up to `count` waiters; returns whether more wait.
    private func resume(_ queue: ActivationQueue, _ count: Int, isLongStep: Bool = false) -> Bool {
        var left = count
        return queue.resume(isLongStep: isLongStep, .failure(CallerGone())) {
            left -= 1
            return left == 0
        }
    }

    @Test("waiters resume in order and in batches; a new waiter is queued behind them")
    func parts() {
        let queue = ActivationQueue(for: QuotaScopes(connection: 1, principal: nil, host: nil))
        var resumed: [Int] = []
        for number in 0..<100 { _ = queue.addWaiter(isLarge: false) { _ in resumed.append(number) } }
        #expect(resume(queue, 32))
        #expect(resumed == Array(0..<32))
        #expect(queue.count == 68)
        _ = queue.addWaiter(isLarge: false) { _ in resumed.append(100) }
        #expect(resume(queue, 32))
        #expect(resume(queue, 32))
        #expect(!resume(queue, 32))
        #expect(resumed == Array(0...100))
        #expect(queue.count == 0)
    }

    @Test("a waiter that left is not resumed, and its memory is freed at once")
    func leaving() {
        final class RetainedByWaiter {}
        let queue = ActivationQueue(for: QuotaScopes(connection: 1, principal: nil, host: nil))
        var resumed: [Int] = []
        weak var retained: RetainedByWaiter?
        var waiters: [ActivationWaiter] = []
        for number in 0..<50 {
            let load = RetainedByWaiter()
            if number == 7 { retained = load }
            waiters.append(
                queue.addWaiter(isLarge: false) { _ in
                    resumed.append(number); _ = load
                })
        }
        #expect(retained != nil)
        waiters[7].cancel()
        #expect(retained == nil)
        #expect(resume(queue, 10))
        for waiter in waiters[20...] { waiter.cancel() }
        #expect(queue.count == 10)
        #expect(!resume(queue, 32))
        #expect(resumed == Array(0..<7) + Array(8..<20))
    }

    @Test("a large call is resumed in a long step, one in each, and later calls wait for it")
    func large() {
        let queue = ActivationQueue(for: QuotaScopes(connection: 1, principal: nil, host: nil))
        var resumed: [Int] = []
        var waiters: [ActivationWaiter] = []
        for number in 0..<6 {
            waiters.append(queue.addWaiter(isLarge: (2...4).contains(number)) { _ in resumed.append(number) })
        }
        #expect(resume(queue, 32))
        #expect(resumed == [0, 1])
        #expect(resume(queue, 32))
        #expect(resumed == [0, 1])
        #expect(resume(queue, 32, isLongStep: true))
        #expect(resumed == [0, 1, 2])
        // One that has left needs no step.
        waiters[3].cancel()
        #expect(resume(queue, 32))
        #expect(!resume(queue, 32, isLongStep: true))
        #expect(resumed == [0, 1, 2, 4, 5])
    }
}
