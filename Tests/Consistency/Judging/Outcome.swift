/// What came of a seed, or of several.
struct Outcome: SeedOutcome {
    var findings: [String] = []
    var acknowledged = 0
    var unknown = 0
    var refused = 0
    /// Of those with unknown outcome, how many have run.
    var unknownThatRan = 0
    var kills = 0
    var stops = 0
    /// Nodes that stood still for a while.
    var pauses = 0
    var engineKills = 0
    /// Times in which a node and its engine heard nothing of each other.
    var cutOffs = 0
    var killedCrews = 0
    var totals = Totals()

    mutating func add(_ other: Outcome) {
        findings += other.findings
        acknowledged += other.acknowledged
        unknown += other.unknown
        refused += other.refused
        unknownThatRan += other.unknownThatRan
        kills += other.kills
        stops += other.stops
        pauses += other.pauses
        engineKills += other.engineKills
        cutOffs += other.cutOffs
        killedCrews += other.killedCrews
        totals.add(other.totals)
    }

    var description: String {
        let nodes =
            pauses + engineKills + cutOffs == 0
            ? "" : "\(pauses) pauses, \(cutOffs) nodes cut off, \(engineKills) kills of the engine, "
        let megabytes = Int((Double(totals.stalledBytes) / 1_048_576).rounded())
        return """
            \(acknowledged) calls acknowledged, \(unknown) unknown (\(unknownThatRan) ran), \(refused) refused; \
            \(kills) kills, \(stops) restarts in order, \(nodes)\(killedCrews) crews killed, \
            \(totals.cuts) cuts, \(totals.connections) connections, \(totals.shortStalls) short stalls; \
            \(totals.stalls) backlogs of \(megabytes) MiB; \(totals.values) values, \(totals.events) events; \
            overflows: \(totals.overflowsOfNewLives) new lives, \(totals.overflowsOfReaders) readers, \
            \(totals.overflowsOfConnections) connections; \(totals.takenBack) events of calls that a kill took back
            """
    }
}
