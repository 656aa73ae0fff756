internal import Platform
internal import Synchronization
package import Transports

/// The clock of a reactor's timers.
extension Reactor {
    /// The time used by the timers, in nanoseconds: the monotonic clock plus the time that tests add. Callable from any thread.
    package var now: UInt64 { MonotonicClock.now &+ ahead.load(ordering: .relaxed) }

    /// The offset from the monotonic clock, in nanoseconds.
    package var timeAhead: UInt64 { ahead.load(ordering: .relaxed) }

    /// Advances the clock. Timers that are due then fire soon.
    package func advance(by nanoseconds: UInt64) {
        ahead.add(nanoseconds, ordering: .relaxed)
        execute {}
    }

    /// Suspends a test clock while an operation takes real time, such as a connection attempt or a deactivation, until
    /// `releaseTime()`. Otherwise a limit could pass only because the test advanced the clock. Callable from any thread.
    package func holdTime() { timeHolds.add(1, ordering: .relaxed) }

    package func releaseTime() { timeHolds.subtract(1, ordering: .relaxed) }

    package var isTimeHeld: Bool { timeHolds.load(ordering: .relaxed) > 0 }

    /// Runs `work` after a delay; keep the timer to cancel it.
    @discardableResult
    package func schedule(after delay: Duration, _ work: @escaping () -> Void) -> LoopTimer {
        schedule(at: now &+ delay.nanoseconds, work)
    }

    /// Runs `work` at a time of the reactor's clock, in nanoseconds.
    @discardableResult
    package func schedule(at deadline: UInt64, _ work: @escaping () -> Void) -> LoopTimer {
        assertCurrent()
        let timer = LoopTimer(deadline: deadline, work: work)
        timers.insert(timer)
        return timer
    }

    /// Runs `work` after a delay unless `owner` is freed by then. The timer does not retain it.
    @discardableResult
    package func schedule<Owner: AnyObject>(
        after delay: Duration, for owner: Owner, _ work: @escaping (Owner) -> Void
    ) -> LoopTimer {
        schedule(after: delay) { [weak owner] in if let owner { work(owner) } }
    }

    /// The number of active timers, found by a linear scan. Only on the reactor.
    package var liveTimerCount: Int {
        assertCurrent()
        return timers.liveCount
    }

    /// The due time of the next timer. Only on the reactor.
    package var nextDeadline: UInt64? {
        assertCurrent()
        return timers.nextDeadline()
    }
}

/// A series of small work items whose duration is measured for several items together.
package protocol BatchTimed: AnyObject {
    /// Called with the monotonic clock in nanoseconds: the items since `Reactor.workBegan` have taken until `now`.
    func didWork(until now: UInt64)
}

extension Reactor {
    /// Calls `work.didWork` when its current items are done, at the latest when other work starts. Only on the reactor.
    @inline(__always)
    package func measure(_ work: any BatchTimed) {
        if let measured, measured !== work { beginPart(at: MonotonicClock.now) }
        measured = work
    }

    /// Ends the measurement; the next work starts at `now`.
    package func didMeasure(until now: UInt64) {
        measured = nil
        workBegan = now
    }

    func beginPart(at now: UInt64) {
        if let measured {
            self.measured = nil
            measured.didWork(until: now)
        }
        workBegan = now
    }
}

/// The turns of a reactor with their durations, for load metrics.
package struct TurnCount: Sendable {
    /// The window of `longest` in nanoseconds: the maximum covers one to two windows.
    private static let window: UInt64 = 30_000_000_000

    /// The number of turns.
    package private(set) var count: UInt64 = 0
    /// The total duration of the turns in nanoseconds.
    package private(set) var busy: UInt64 = 0
    private var longest: UInt64 = 0
    private var longestBefore: UInt64 = 0
    private var windowBegan: UInt64 = 0

    @inline(__always)
    mutating func record(from start: UInt64, to end: UInt64) {
        let elapsed = end &- start
        count &+= 1
        busy &+= elapsed
        if end &- windowBegan >= Self.window { beginWindow(at: end) }
        if elapsed > longest { longest = elapsed }
    }

    private mutating func beginWindow(at now: UInt64) {
        longestBefore = now &- windowBegan < 2 &* Self.window ? longest : 0
        longest = 0
        windowBegan = now
    }

    /// Returns the longest turn in nanoseconds within the last 30 to 60 s.
    package func longest(at now: UInt64) -> UInt64 {
        guard now &- windowBegan < Self.window else { return now &- windowBegan < 2 &* Self.window ? longest : 0 }
        return max(longest, longestBefore)
    }
}
