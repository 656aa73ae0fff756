internal import Platform
internal import TrebuchetActors
internal import TrebuchetCluster

/// Produces the log lines of a node about its cluster: live nodes, its number of slots once that is stable, and the state of
/// the engine. Short-lived changes are omitted.
struct NodeLog {
    /// A log line with its level.
    struct Line: Equatable {
        let level: ServerEvent.Level
        let text: String

        init(_ level: ServerEvent.Level, _ text: String) { (self.level, self.text) = (level, "cluster: \(text)") }
    }

    private static let second: UInt64 = 1_000_000_000
    /// The time for which a slot count must be stable before it is logged.
    private static let settleTime = 2 * second
    /// The time for which an engine must fail before it is logged; an engine counts as silent after 2 s.
    private static let patience = second
    /// The maximum time between two rounds, which are due 4 times a second.
    private static let maximumInterval = 2 * second
    /// The time for which the engine may list a crashed node as live beside its next incarnation.
    private static let restartInterval = 15 * second

    private let node: ClusterNode
    private var liveNodes: [ClusterNode] = []
    private var slots: (count: Int, since: UInt64, isLogged: Bool) = (0, 0, true)
    private var outage: (since: UInt64, isLogged: Bool)?
    private var namesakeSince: UInt64?
    private var hasNamedNamesake = false
    private var lastCheck: UInt64?
    /// Nil until the node was ready for the first time.
    private var isReady: Bool?

    init(_ node: ClusterNode) { self.node = node }

    /// Returns the lines that are due.
    ///
    /// - Parameters:
    ///   - nodes: the nodes that were live in the last round.
    ///   - slots: the number of slots that the node owns.
    ///   - engineError: the last error of the engine; nil while it responds.
    ///   - problem: the reason why the node cannot serve; nil when it can.
    ///   - now: nanoseconds, including time in which the machine slept.
    mutating func lines(
        nodes: [ClusterNode], slots count: Int, engineError error: ClusterEngineError?, problem: String? = nil,
        at now: UInt64
    ) -> [Line] {
        var lines: [Line] = []
        if let lastCheck, now > lastCheck &+ Self.maximumInterval {
            lines.append(
                Line(
                    .warning,
                    "this process was suspended for \((now - lastCheck) / Self.second) s: it was stopped, or the machine slept or was "
                        + "overloaded"))
        }
        lastCheck = now
        if Set(nodes) != Set(liveNodes) {
            let (removed, new) = (
                liveNodes.filter { !nodes.contains($0) }, nodes.filter { !liveNodes.contains($0) }
            )
            liveNodes = nodes
            let changes = removed.map { "\($0.name) left" } + new.map { "\($0.name) joined" }
            lines.append(Line(.notice, "\(changes.joined(separator: ", ")); \(liveNodes.count.counted("live node"))"))
        }
        if count != slots.count { slots = (count, now, false) }
        if !slots.isLogged, now >= slots.since &+ Self.settleTime {
            slots.isLogged = true
            lines.append(Line(.notice, "node \(node.name) owns \(count) of \(ClusterSlot.count) slots"))
        }
        // A data loss is reported as the node's problem.
        if let error, error.code != .dataLoss {
            let since = outage?.since ?? now
            if outage == nil { outage = (now, false) }
            if outage?.isLogged == false, now >= since &+ Self.patience {
                outage?.isLogged = true
                lines.append(Line(.error, "the coordination store is failing: \(error.message)"))
            }
        } else {
            if outage?.isLogged == true { lines.append(Line(.notice, "the coordination store responds again")) }
            outage = nil
        }
        if let problem {
            if isReady == true {
                isReady = false
                lines.append(Line(.error, "node \(node.name) cannot serve: \(problem)"))
            }
        } else {
            if isReady == false { lines.append(Line(.notice, "node \(node.name) can serve again")) }
            isReady = true
        }
        let hasNamesake = nodes.contains { $0 != node && $0.name.utf8.elementsEqual(node.name.utf8) }
        namesakeSince = hasNamesake ? namesakeSince ?? now : nil
        if let since = namesakeSince, now >= since &+ Self.restartInterval, !hasNamedNamesake {
            hasNamedNamesake = true
            lines.append(Line(.warning, "another node is also named \(node.name): give each node a unique name"))
        }
        return lines
    }
}
