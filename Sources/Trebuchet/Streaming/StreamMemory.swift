internal import Networking
internal import Synchronization

/// How long a source that nobody observes goes on as if somebody did: so that who lost a connection finds, when it is back,
/// what it missed.
final class StreamMemory: Sendable {
    /// On the monotonic clock.
    private let until = Atomic<UInt64>(0)

    /// From now on, for so long at least. From anywhere.
    func keep(for time: Duration, at now: UInt64 = MonotonicClock.now) {
        until.max(now &+ time.nanoseconds, ordering: .relaxed)
    }

    /// Most sources never had such a subscriber, and ask for no time.
    var isKept: Bool { until.load(ordering: .relaxed) > 0 && isKept(at: MonotonicClock.now) }

    func isKept(at now: UInt64) -> Bool { now < until.load(ordering: .relaxed) }
}
