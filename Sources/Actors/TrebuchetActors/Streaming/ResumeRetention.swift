internal import Platform
internal import Transports
internal import Synchronization

/// The resume retention of a stream: the time for which a source without subscribers continues, so that a client that has lost
/// its connection can resume without loss.
final class ResumeRetention: Sendable {
    /// The end of the retention, by the clock of the reactor that the actor lives on.
    private let until = Atomic<UInt64>(0)

    /// Extends the retention to at least `time` from now. Called on any thread.
    ///
    /// - Parameter home: the shard of the actor; nil for an actor without a reactor.
    func extend(for time: Duration, on home: SystemShard?) { extend(for: time, at: Self.now(on: home)) }

    func extend(for time: Duration, at now: UInt64) { until.max(now &+ time.nanoseconds, ordering: .relaxed) }

    /// Reads the clock only after a first retention, because most sources never have one.
    func isRetained(on home: SystemShard?) -> Bool {
        until.load(ordering: .relaxed) > 0 && isRetained(at: Self.now(on: home))
    }

    private static func now(on home: SystemShard?) -> UInt64 { home?.reactor.now ?? MonotonicClock.now }

    func isRetained(at now: UInt64) -> Bool { now < until.load(ordering: .relaxed) }
}
