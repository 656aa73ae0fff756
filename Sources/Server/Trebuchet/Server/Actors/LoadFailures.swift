internal import Platform
internal import Synchronization
internal import TrebuchetActors

/// Actors whose persisted states cannot be loaded, for the log and for `trebuchet_actors_unloadable`.
final class LoadFailures: Sendable {
    /// A failure that lasts this long is logged.
    static let patience = Duration.seconds(10)
    /// A failure counts for this long after the last attempt to load the actor.
    static let memory = Duration.seconds(60)
    /// The maximum number of recorded failures: clients may request any number of virtual actors while a store is unavailable.
    static let most = 1_024
    static let maximumLines = 16

    private struct Failure {
        let since: UInt64
        var last: UInt64
        var isLogged = false
    }

    private let failures = Mutex<[ActorName: Failure]>([:])
    private let log: @Sendable (ServerEvent.Level, String) -> Void
    private let clock: @Sendable () -> UInt64

    /// - Parameter clock: Returns nanoseconds, never less than before.
    init(
        log: @escaping @Sendable (ServerEvent.Level, String) -> Void,
        clock: @escaping @Sendable () -> UInt64 = { MonotonicClock.now }
    ) {
        (self.log, self.clock) = (log, clock)
    }

    /// The number of actors whose last attempt to load failed.
    var count: Int {
        let now = clock()
        return failures.withLock { failures in
            Self.remove(&failures, at: now)
            return failures.count
        }
    }

    /// Runs `load`, and records whether it failed. An actor that lives on another server by now does not count as a failure.
    func recordingFailure<Loaded>(of name: String, _ load: () async throws -> Loaded) async throws -> Loaded {
        do {
            let loaded = try await load()
            didLoad(ActorName(name))
            return loaded
        } catch {
            if !ActorMoved.isIt(error) { didFail(ActorName(name), error) }
            throw error
        }
    }

    private func didFail(_ name: ActorName, _ error: any Error) {
        let now = clock()
        let duration: UInt64? = failures.withLock { failures in
            var failure =
                failures[name].flatMap { Self.isRecent($0, at: now) ? $0 : nil } ?? Failure(since: now, last: now)
            failure.last = now
            let duration = now - min(now, failure.since)
            let shouldLog =
                !failure.isLogged && duration >= Self.patience.nanoseconds
                && failures.values.count(where: { $0.isLogged && Self.isRecent($0, at: now) }) < Self.maximumLines
            failure.isLogged = failure.isLogged || shouldLog
            if failures[name] == nil, failures.count >= Self.most { Self.remove(&failures, at: now) }
            if failures[name] != nil || failures.count < Self.most { failures[name] = failure }
            return shouldLog ? duration : nil
        }
        guard let duration else { return }
        let reason = (error as? TrebuchetError)?.message ?? "\(error)"
        log(
            .error,
            "actor '\(name.text)' could not be loaded for \(duration / 1_000_000_000) s, and its calls fail: \(reason); repair the "
                + "store, each call retries the load")
    }

    private func didLoad(_ name: ActorName) {
        let failure = failures.withLock { $0.isEmpty ? nil : $0.removeValue(forKey: name) }
        if failure?.isLogged == true { log(.notice, "actor '\(name.text)' was loaded after failures") }
    }

    private static func isRecent(_ failure: Failure, at now: UInt64) -> Bool {
        now - min(now, failure.last) < memory.nanoseconds
    }

    private static func remove(_ failures: inout [ActorName: Failure], at now: UInt64) {
        failures = failures.filter { isRecent($0.value, at: now) }
    }
}
