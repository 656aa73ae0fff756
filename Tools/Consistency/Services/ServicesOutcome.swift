/// The outcome of one or more seeds with services.
struct ServicesOutcome: SeedOutcome {
    var findings: [String] = []
    var kills = 0
    var stops = 0
    var cuts = 0
    var connections = 0
    var writes = 0
    var acknowledged = 0
    var unknown = 0
    var refused = 0
    /// The number of deliveries of events to members that should receive them.
    var shown = 0
    /// Delivered events whose publication had an unknown outcome.
    var shownUnknown = 0
    /// Acknowledged, and not shown because the server was killed.
    var lost = 0
    var attempts = 0

    mutating func add(_ other: ServicesOutcome) {
        findings += other.findings
        kills += other.kills
        stops += other.stops
        cuts += other.cuts
        connections += other.connections
        writes += other.writes
        acknowledged += other.acknowledged
        unknown += other.unknown
        refused += other.refused
        shown += other.shown
        shownUnknown += other.shownUnknown
        lost += other.lost
        attempts += other.attempts
    }

    var description: String {
        """
        \(writes) writes acknowledged; \(acknowledged) events acknowledged, \(unknown) with unknown outcome, \(refused) refused; \
        \(shown) deliveries, \(shownUnknown) of them with unknown outcome, \(lost) missing after a kill; \(attempts) attempts to read \
        private data; \(kills) kills, \(stops) ordered restarts, \(cuts) cuts, \(connections) connections
        """
    }
}
