import Platform
import Testing

@testable import Networking
@testable import Transports

@Suite("Durations as numbers, and timers")
struct TimesTests {
    @Test(
        "a duration in nanoseconds is never below 0, and has a limit",
        arguments: [
            (.zero, 0), (.nanoseconds(1), 1), (.seconds(1), 1_000_000_000), (.milliseconds(1_500), 1_500_000_000),
            (.seconds(2) + .nanoseconds(7), 2_000_000_007), (.nanoseconds(-1), 0), (.seconds(-5), 0),
            (.seconds(-1) + .nanoseconds(1), 0), (Duration(secondsComponent: 0, attosecondsComponent: 1), 0),
            (Duration(secondsComponent: 0, attosecondsComponent: 999_999_999), 0),
            (.seconds(4_611_686_017), 4_611_686_017_000_000_000),
            // From here on it is not exact, and does not trap.
            (.seconds(4_611_686_019), UInt64(Int64.max) / 2), (.seconds(Int64.max), UInt64(Int64.max)),
        ] as [(Duration, UInt64)])
    func nanoseconds(_ duration: Duration, _ number: UInt64) {
        #expect(duration.nanoseconds == number)
    }

    @Test(
        "milliseconds are rounded up",
        arguments: [
            (.zero, 0), (.nanoseconds(1), 1), (.milliseconds(1), 1), (.milliseconds(1) + .nanoseconds(1), 2),
            (.microseconds(1_999), 2), (.seconds(3), 3_000), (.seconds(-3), 0),
        ] as [(Duration, Int)])
    func milliseconds(_ duration: Duration, _ number: Int) {
        #expect(duration.milliseconds == number)
    }

    @Test("the clock advances, in nanoseconds")
    func clock() {
        let (before, began) = (MonotonicClock.now, ContinuousClock.now)
        while ContinuousClock.now - began < .milliseconds(2) {}
        let passed = MonotonicClock.now - before
        #expect(passed >= 2_000_000)
        #expect(passed < 60_000_000_000)
    }

    @Test("64 cancelled timers are retained, and released when one more is added")
    func sweptAtFirst() {
        var queue = TimerQueue()
        weak var first: LoopTimer?
        for number in 0..<64 {
            let timer = LoopTimer(deadline: UInt64(number)) {}
            if number == 0 { first = timer }
            queue.insert(timer)
            timer.cancel()
        }
        #expect(first != nil)
        #expect(queue.liveCount == 0)
        queue.insert(LoopTimer(deadline: 0) {})
        #expect(first == nil)
        #expect(queue.liveCount == 1)
    }

    @Test("with many live timers the next sweep is at twice as many")
    func sweptLater() {
        var queue = TimerQueue()
        for number in 0..<64 { queue.insert(LoopTimer(deadline: UInt64(number)) {}) }
        // The 65th triggers a sweep: 64 are live, so the next sweep is at 128.
        weak var cancelled: LoopTimer?
        do {
            let timer = LoopTimer(deadline: 1_000) {}
            cancelled = timer
            queue.insert(timer)
            timer.cancel()
        }
        for number in 65..<128 { queue.insert(LoopTimer(deadline: UInt64(number)) {}) }
        #expect(cancelled != nil)
        #expect(queue.liveCount == 127)
        queue.insert(LoopTimer(deadline: 128) {})
        #expect(cancelled == nil)
        #expect(queue.liveCount == 128)
        #expect(queue.nextDeadline() == 0)
    }

    @Test("a timer is due at its deadline, and fires once")
    func due() {
        var queue = TimerQueue()
        let timer = LoopTimer(deadline: 10) {}
        queue.insert(timer)
        #expect(queue.popDue(at: 9) == nil)
        #expect(queue.liveCount == 1)
        #expect(queue.popDue(at: 10) != nil)
        #expect(timer.work == nil)
        #expect(queue.popDue(at: 10) == nil)
        #expect(queue.liveCount == 0)
        #expect(queue.nextDeadline() == nil)
    }

    @Test("timers in any order fire in the order of their deadlines, whatever is removed in between")
    func heap() {
        var queue = TimerQueue()
        var waiting: [UInt64] = []
        var seed: UInt64 = 88_172_645_463_325_252
        for round in 0..<3_000 {
            seed ^= seed << 13
            seed ^= seed >> 7
            seed ^= seed << 17
            // More are added than removed, then more are removed than added.
            if seed % 5 < (round < 1_500 ? 3 : 2) {
                let deadline = seed >> 40
                waiting.append(deadline)
                queue.insert(LoopTimer(deadline: deadline) {})
            } else if let least = waiting.min() {
                #expect(queue.nextDeadline() == least)
                #expect(queue.popDue(at: least) != nil)
                waiting.remove(at: waiting.firstIndex(of: least)!)
            }
        }
        #expect(queue.liveCount == waiting.count)
    }
}
