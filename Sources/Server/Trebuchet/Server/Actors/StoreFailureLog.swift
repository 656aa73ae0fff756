internal import Platform
internal import Synchronization

/// Logs when writes to a store begin to fail, and when they succeed again: two lines per failure, however many reactors write
/// and however long it lasts. A `ServerLog` has a line for each failed write instead.
final class StoreFailureLog: Sendable {
    private struct Failure {
        var writers = 0
        var since: UInt64 = 0
    }

    private let failures = Mutex<[String: Failure]>([:])
    private let log: @Sendable (String) -> Void
    private let clock: @Sendable () -> UInt64

    /// - Parameter clock: returns nanoseconds, never less than before.
    init(_ log: @escaping @Sendable (String) -> Void, clock: @escaping @Sendable () -> UInt64 = { MonotonicClock.now })
    {
        (self.log, self.clock) = (log, clock)
    }

    /// Returns the function that one writer calls with the error of its first failed write, and with nil after its recovery.
    ///
    /// - Parameter store: what the writer writes to, for the log.
    func reporter(_ store: String) -> @Sendable (String?) -> Void {
        { self.report(store, $0) }
    }

    private func report(_ store: String, _ error: String?) {
        let now = clock()
        let line: String? = failures.withLock { failures in
            var failure = failures[store] ?? Failure()
            defer { failures[store] = failure }
            guard let error else {
                failure.writers -= 1
                guard failure.writers == 0 else { return nil }
                return "\(store) accepts writes again, after \((now &- failure.since) / 1_000_000_000) s"
            }
            failure.writers += 1
            guard failure.writers == 1 else { return nil }
            failure.since = now
            return "\(store) does not accept writes; calls that change persisted states fail until it does: \(error)"
        }
        if let line { log(line) }
    }
}
