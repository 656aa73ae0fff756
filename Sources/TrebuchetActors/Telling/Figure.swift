/// What is counted as it happens, on each reactor for itself.
///
/// What has one name with several labels stands together: `MetricList` says which names these have for who scrapes them.
package enum Figure: Int, CaseIterable, Sendable {
    case connectionsOpened, connectionsClosed
    // Why connections have ended.
    case closedByClient, closedLost, closedSilent, closedViolation, closedLimit, closedByServer
    /// Calls that were not answered where they came in: those that have begun, and those that are answered.
    case callsBegun, callsEnded
    case callsForwarded

    // Errors that clients were told, by their codes.
    case actorNotFound, methodNotFound, invalidArguments, unauthenticated, unauthorized, rateLimited, timeout
    case cancelled, unavailable, unknownOutcome, overflow, application, `internal`, malformedEnvelope
    /// Codes of an app's own.
    case otherError

    case versionsMade
    case patchesDelivered, wholesDelivered, eventsDelivered
    case versionsSkipped
    /// Subscribers that could not be written to when there was something new.
    case subscribersBehind
    case streamsBegun, streamsEnded

    // How streams went on that clients took up again.
    case resumedInPlace, resumedAnew, resumedTooLate

    // What became of calls that clients sent again.
    case repeatsRun, repeatsJoined, repeatsAnswered, repeatsForgotten, repeatsRefused

    case storeWritesFailed
    case actorsMade, actorsLetGo

    package static let codes: [(code: String, figure: Figure)] = [
        ("actorNotFound", .actorNotFound), ("methodNotFound", .methodNotFound),
        ("invalidArguments", .invalidArguments), ("unauthenticated", .unauthenticated),
        ("unauthorized", .unauthorized), ("rateLimited", .rateLimited), ("timeout", .timeout),
        ("cancelled", .cancelled), ("unavailable", .unavailable), ("unknownOutcome", .unknownOutcome),
        ("overflow", .overflow), ("application", .application), ("internal", .internal),
        ("malformedEnvelope", .malformedEnvelope), ("other", .otherError),
    ]

    private static let byCode = Dictionary(uniqueKeysWithValues: codes.map { ($0.code, $0.figure) })

    /// That of an error, by its code on the wire.
    package static func error(_ code: String) -> Figure { byCode[code] ?? .otherError }
}

/// Work whose time is measured, beside calls.
package enum TimedWork: Int, CaseIterable, Sendable {
    /// Calls of methods that no dispatch table has.
    case otherCalls
    case storeWrites
    /// From when a version was made to when all who can be written to on a reactor had it.
    case deliveries
}

/// The buckets in which times are counted.
package enum TimeBuckets {
    /// Upper bounds in nanoseconds; what takes longer than the last is in a bucket of its own.
    package static let bounds: [UInt64] = [
        50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000,
        100_000_000, 250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000,
    ]

    /// Numbers that one kind of work takes: its buckets, then the sum of all times.
    package static let width = 19

    @inline(__always)
    static func place(of time: UInt64) -> Int { time <= 50_000 ? 0 : laterPlace(of: time) }

    @inline(never)
    private static func laterPlace(of time: UInt64) -> Int {
        bounds.firstIndex { time <= $0 } ?? bounds.count
    }
}
