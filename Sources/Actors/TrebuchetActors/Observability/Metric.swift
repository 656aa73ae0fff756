/// A counter. Each reactor counts separately.
///
/// Counters of one metric that differ only in a label are adjacent: `MetricList` defines the labels for scrapers.
package enum Metric: Int, CaseIterable, Sendable {
    case connectionsOpened, connectionsClosed
    // Reasons for closed connections.
    case closedByClient, closedLost, closedSilent, closedViolation, closedLimit, closedByServer
    /// Calls that were not answered in place: started and answered ones.
    case callsBegun, callsEnded
    case callsForwarded

    // Errors sent to clients, by code.
    case actorNotFound, methodNotFound, invalidArguments, unauthenticated, unauthorized, rateLimited, timeout
    case cancelled, unavailable, unknownOutcome, overflow, application, `internal`, malformedEnvelope
    /// Codes that an app defines.
    case otherError

    case versionsMade
    case patchesDelivered, wholesDelivered, eventsDelivered
    case versionsSkipped
    /// Subscribers that could not accept data when a new version was available.
    case subscribersBlocked
    case streamsBegun, streamsEnded

    // Outcomes of stream resumption.
    case resumedInPlace, resumedWithSnapshot, resumedTooLate

    // Outcomes of calls that clients sent again.
    case repeatsRun, repeatsJoined, repeatsAnswered, repeatsForgotten, repeatsRefused

    case storeWritesFailed
    case actorsActivated, actorsDeactivated
    case alarmsDelivered, alarmsFailed

    package static let codes: [(code: String, metric: Metric)] = [
        ("actorNotFound", .actorNotFound), ("methodNotFound", .methodNotFound),
        ("invalidArguments", .invalidArguments), ("unauthenticated", .unauthenticated),
        ("unauthorized", .unauthorized), ("rateLimited", .rateLimited), ("timeout", .timeout),
        ("cancelled", .cancelled), ("unavailable", .unavailable), ("unknownOutcome", .unknownOutcome),
        ("overflow", .overflow), ("application", .application), ("internal", .internal),
        ("malformedEnvelope", .malformedEnvelope), ("other", .otherError),
    ]

    private static let byCode = Dictionary(uniqueKeysWithValues: codes.map { ($0.code, $0.metric) })

    /// Returns the counter of an error, by its code on the wire.
    package static func error(_ code: String) -> Metric { byCode[code] ?? .otherError }
}

/// An operation whose duration is measured, other than calls of known methods.
package enum TimedOperation: Int, CaseIterable, Sendable {
    /// Calls of methods without an entry in a dispatch table.
    case otherCalls
    case storeWrites
    /// The time from the creation of a version until every writable subscriber of a reactor has received it.
    case deliveries
}

/// The buckets of duration histograms.
package enum DurationBuckets {
    /// The upper bounds in nanoseconds. Longer times are counted in an additional bucket.
    package static let bounds: [UInt64] = [
        50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000,
        100_000_000, 250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000,
    ]

    /// The number of values for one operation: its buckets, then the sum of all times.
    package static let width = 19

    @inline(__always)
    static func index(of time: UInt64) -> Int { time <= 50_000 ? 0 : laterIndex(of: time) }

    @inline(never)
    private static func laterIndex(of time: UInt64) -> Int {
        bounds.firstIndex { time <= $0 } ?? bounds.count
    }
}
