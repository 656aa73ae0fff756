/// The outcome of one or more seeds.
struct Outcome: SeedOutcome {
    var findings: [String] = []
    var acknowledged = 0
    var unknown = 0
    var refused = 0
    /// The number of calls with unknown outcome that have run.
    var unknownThatRan = 0
    var kills = 0
    var stops = 0
    /// The number of suspensions of nodes.
    var pauses = 0
    var engineKills = 0
    /// Times in which a node and its engine received nothing from each other.
    var cutOffs = 0
    var killedPools = 0
    /// With namespaces: by their kind how many faults, and how long at most until all nodes answered again.
    var faults: [String: (count: Int, healing: Duration)] = [:]
    /// Acknowledged calls that an engine lost which may lose.
    var lost = 0
    /// Failovers that no fault of the seed caused.
    var unplannedFailovers = 0
    /// Nodes that were started again because of that.
    var lostNodes = 0
    /// How often Redis gave a connection up on which too much waited.
    var overflows = 0
    /// How long a call was kept that ended with `unavailable` without an engine, and how long until all nodes had noticed FLUSHALL.
    var slowestRefusal = Duration.zero
    var slowestToNotice = Duration.zero
    var totals = Totals()
    /// Mutations of the collection, and events of the room, that were acknowledged.
    var mutations = 0
    var published = 0
    /// Events that room members received again because the room had lost its history.
    var shownAgain = 0
    /// Events that room members were not shown, and were told so; and how often a room had ended while all its members were away.
    var missed = 0
    var roomRestarts = 0

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
        killedPools += other.killedPools
        totals.add(other.totals)
        faults.merge(other.faults) { ($0.count + $1.count, max($0.healing, $1.healing)) }
        lost += other.lost
        unplannedFailovers += other.unplannedFailovers
        mutations += other.mutations
        published += other.published
        shownAgain += other.shownAgain
        missed += other.missed
        roomRestarts += other.roomRestarts
        lostNodes += other.lostNodes
        overflows += other.overflows
        slowestRefusal = max(slowestRefusal, other.slowestRefusal)
        slowestToNotice = max(slowestToNotice, other.slowestToNotice)
    }

    mutating func note(_ fault: NetworkPlan.Fault, _ healing: Duration) {
        let old = faults[fault.kind, default: (0, .zero)]
        faults[fault.kind] = (old.count + 1, max(old.healing, healing))
    }

    private var network: String {
        guard !faults.isEmpty else { return "" }
        let each = faults.sorted { $0.key < $1.key }.map { "\($0.value.count) \($0.key) (\($0.value.healing.tenths))" }
        return each.joined(separator: ", ")
            + (unplannedFailovers > 0 ? "; \(unplannedFailovers) failovers without a fault" : "")
            + "; \(lost) lost, \(lostNodes) nodes that had lost their slots, \(overflows) overflows of Redis, "
            + "unavailable within \(slowestRefusal.tenths), FLUSHALL noticed within \(slowestToNotice.tenths); "
    }

    private var writing: String {
        guard mutations + published > 0 else { return "" }
        let notes = [(shownAgain, "shown again"), (missed, "reported as missed"), (roomRestarts, "ends of the room")]
        return "\(mutations) mutations of a collection, \(published) events of a room"
            + notes.filter { $0.0 > 0 }.map { ", \($0.0) \($0.1)" }.joined() + "; "
    }

    var description: String {
        let nodes =
            pauses + engineKills + cutOffs == 0
            ? "" : "\(pauses) pauses, \(cutOffs) nodes cut off, \(engineKills) kills of the engine, "
        let megabytes = Int((Double(totals.stalledBytes) / 1_048_576).rounded())
        return """
            \(acknowledged) calls acknowledged, \(unknown) unknown (\(unknownThatRan) ran), \(refused) refused; \(writing)\(network)\
            \(kills) kills, \(stops) restarts in order, \(nodes)\(killedPools) crews killed, \
            \(totals.cuts) cuts, \(totals.connections) connections, \(totals.shortStalls) short stalls; \
            \(totals.stalls) backlogs of \(megabytes) MiB; \(totals.values) values, \(totals.events) events; \
            overflows: \(totals.overflowsOfNewIncarnations) new incarnations, \(totals.overflowsOfReaders) readers, \
            \(totals.overflowsOfConnections) connections; \(totals.takenBack) events of calls that a kill took back
            """
    }
}

extension Duration {
    var tenths: String { "\((self / .milliseconds(100)).rounded() / 10) s" }
}
