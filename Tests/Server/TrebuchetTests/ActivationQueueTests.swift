import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// The queue of calls that wait for the activation of an actor.
@Suite struct ActivationQueueTests {
    private struct CallerGone: Error {}

    @Test("waiters resume in order and in batches; a new waiter is queued behind them")
    func parts() {
        let queue = ActivationQueue(for: QuotaScopes(connection: 1, principal: nil, host: nil))
        var resumed: [Int] = []
        for number in 0..<100 { _ = queue.addWaiter { _ in resumed.append(number) } }
        #expect(queue.resume(atMost: 32, .failure(CallerGone())))
        #expect(resumed == Array(0..<32))
        #expect(queue.count == 68)
        _ = queue.addWaiter { _ in resumed.append(100) }
        #expect(queue.resume(atMost: 32, .failure(CallerGone())))
        #expect(queue.resume(atMost: 32, .failure(CallerGone())))
        #expect(!queue.resume(atMost: 32, .failure(CallerGone())))
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
                queue.addWaiter { _ in
                    resumed.append(number); _ = load
                })
        }
        #expect(retained != nil)
        waiters[7].cancel()
        #expect(retained == nil)
        #expect(queue.resume(atMost: 10, .failure(CallerGone())))
        for waiter in waiters[20...] { waiter.cancel() }
        #expect(queue.count == 10)
        #expect(!queue.resume(atMost: 32, .failure(CallerGone())))
        #expect(resumed == Array(0..<7) + Array(8..<20))
    }
}
