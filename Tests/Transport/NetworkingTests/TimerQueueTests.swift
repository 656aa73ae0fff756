import Testing

@testable import Networking
@testable import Transports

@Suite struct TimerQueueTests {
    @Test("timers fire in the order of their deadlines, cancelled ones not at all")
    func order() {
        var queue = TimerQueue()
        var fired: [UInt64] = []
        var timers: [LoopTimer] = []
        for deadline: UInt64 in [50, 10, 40, 20, 30, 20] {
            let timer = LoopTimer(deadline: deadline) { fired.append(deadline) }
            timers.append(timer)
            queue.insert(timer)
        }
        timers[4].cancel()
        #expect(queue.nextDeadline() == 10)
        while let work = queue.popDue(at: 40) { work() }
        #expect(fired == [10, 20, 20, 40])
        #expect(queue.nextDeadline() == 50)
        #expect(queue.popDue(at: 49) == nil)
    }

    @Test("the timers that remain after a sweep of cancelled ones fire in order")
    func sweepWithSomeLeft() {
        var queue = TimerQueue()
        var fired: [UInt64] = []
        // Every seventh remains; the deadlines are not sorted.
        let deadlines = (0..<1_000 as Range<UInt64>).map { $0 * 7_919 % 1_009 }
        for (number, deadline) in deadlines.enumerated() {
            let timer = LoopTimer(deadline: deadline) { fired.append(deadline) }
            queue.insert(timer)
            if number % 7 != 0 { timer.cancel() }
        }
        while let next = queue.nextDeadline() {
            while let work = queue.popDue(at: next) { work() }
        }
        #expect(fired == deadlines.enumerated().filter { $0.offset % 7 == 0 }.map(\.element).sorted())
    }

    @Test("ten thousand cancelled timers do not stay in memory")
    func sweep() {
        var queue = TimerQueue()
        final class RetainedByTimer {}
        weak var last: RetainedByTimer?
        for deadline in 0..<10_000 {
            let retained = RetainedByTimer()
            last = retained
            let timer = LoopTimer(deadline: UInt64(deadline)) { _ = retained }
            queue.insert(timer)
            timer.cancel()
        }
        #expect(last == nil)
        #expect(queue.nextDeadline() == nil)
    }
}
