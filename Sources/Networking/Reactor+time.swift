internal import Platform
internal import Synchronization
internal import Transports

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

    /// When the next timer fires; on the reactor.
    package var nextDeadline: UInt64? {
        assertCurrent()
        return timers.nextDeadline()
    }
}
