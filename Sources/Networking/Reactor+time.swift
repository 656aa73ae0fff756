internal import Platform
internal import Synchronization
package import Transports

/// The clock that a reactor's timers go by.
extension Reactor {
    /// The time by which its timers go, in nanoseconds: the monotonic clock, unless a test has turned it on. From anywhere.
    package var now: UInt64 { MonotonicClock.now &+ ahead.load(ordering: .relaxed) }

    /// How far it is ahead of the monotonic clock, in nanoseconds.
    package var timeAhead: UInt64 { ahead.load(ordering: .relaxed) }

    /// Turns its clock on. Timers that are due then fire soon.
    package func advance(by nanoseconds: UInt64) {
        ahead.add(nanoseconds, ordering: .relaxed)
        execute {}
    }

    /// What takes the machine's time begins: an attempt to connect, an actor that goes. A test's clock stands still until it
    /// ends, lest a limit pass only because the test turned the clock on. From anywhere.
    package func holdTime() { timeHolds.add(1, ordering: .relaxed) }

    package func releaseTime() { timeHolds.subtract(1, ordering: .relaxed) }

    package var isTimeHeld: Bool { timeHolds.load(ordering: .relaxed) > 0 }

    /// Runs `work` after a delay; keep the timer to cancel it.
    @discardableResult
    package func schedule(after delay: Duration, _ work: @escaping () -> Void) -> LoopTimer {
        schedule(at: now &+ delay.nanoseconds, work)
    }

    /// The same at a moment of its clock, in nanoseconds.
    @discardableResult
    package func schedule(at deadline: UInt64, _ work: @escaping () -> Void) -> LoopTimer {
        assertCurrent()
        let timer = LoopTimer(deadline: deadline, work: work)
        timers.add(timer)
        return timer
    }

    /// The same for an owner whom the timer does not hold: nothing happens when it has gone.
    @discardableResult
    package func schedule<Owner: AnyObject>(
        after delay: Duration, for owner: Owner, _ work: @escaping (Owner) -> Void
    ) -> LoopTimer {
        schedule(after: delay) { [weak owner] in if let owner { work(owner) } }
    }

    /// Timers that are still to fire; on the reactor. It looks at each of them.
    package var liveTimerCount: Int {
        assertCurrent()
        return timers.liveCount
    }

    /// When the next timer fires; on the reactor.
    package var nextDeadline: UInt64? {
        assertCurrent()
        return timers.nextDeadline()
    }
}

/// Work in small pieces whose time is looked at for several of them together.
package protocol MeasuredWork: AnyObject {
    /// The pieces so far have taken until now, in nanoseconds of the monotonic clock, since `Reactor.workBegan`.
    func didWork(until now: UInt64)
}

extension Reactor {
    /// Has `work` told when what it does now is over, at the latest when other work begins. On the reactor.
    @inline(__always)
    package func measure(_ work: any MeasuredWork) {
        if let measured, measured !== work { beginPart(at: MonotonicClock.now) }
        measured = work
    }

    /// Nothing waits to be measured any more, and what comes now begins at `now`.
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

/// The turns of a reactor, for who wants to know whether it has time left.
package struct TurnCount: Sendable {
    /// Nanoseconds: the longest turn is that of this time, or of up to twice of it.
    private static let window: UInt64 = 30_000_000_000

    /// Turns so far.
    package private(set) var count: UInt64 = 0
    /// Nanoseconds that they have taken, all together.
    package private(set) var busy: UInt64 = 0
    private var longest: UInt64 = 0
    private var longestBefore: UInt64 = 0
    private var windowBegan: UInt64 = 0

    @inline(__always)
    mutating func note(from start: UInt64, to end: UInt64) {
        let took = end &- start
        count &+= 1
        busy &+= took
        if end &- windowBegan >= Self.window { beginWindow(at: end) }
        if took > longest { longest = took }
    }

    private mutating func beginWindow(at now: UInt64) {
        longestBefore = now &- windowBegan < 2 &* Self.window ? longest : 0
        longest = 0
        windowBegan = now
    }

    /// Nanoseconds: of the last half minute at least, and the last minute at most.
    package func longest(at now: UInt64) -> UInt64 {
        guard now &- windowBegan < Self.window else { return now &- windowBegan < 2 &* Self.window ? longest : 0 }
        return max(longest, longestBefore)
    }
}
