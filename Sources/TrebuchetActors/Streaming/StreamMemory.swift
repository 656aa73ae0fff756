internal import Platform
internal import Transports
internal import Synchronization

/// How long a source that nobody observes goes on as if somebody did: so that who lost a connection finds, when it is back,
/// what it missed.
final class StreamMemory: Sendable {
    /// By the clock of the reactor that its actor lives on.
    private let until = Atomic<UInt64>(0)

    /// From now on, for so long at least. From anywhere.
    ///
    /// - Parameter home: of the actor; nil for one that lives on no reactor.
    func keep(for time: Duration, on home: SystemShard?) { keep(for: time, at: Self.now(on: home)) }

    func keep(for time: Duration, at now: UInt64) { until.max(now &+ time.nanoseconds, ordering: .relaxed) }

    /// Most sources never had such a subscriber, and ask for no time.
    func isKept(on home: SystemShard?) -> Bool {
        until.load(ordering: .relaxed) > 0 && isKept(at: Self.now(on: home))
    }

    private static func now(on home: SystemShard?) -> UInt64 { home?.reactor.now ?? MonotonicClock.now }

    func isKept(at now: UInt64) -> Bool { now < until.load(ordering: .relaxed) }
}
