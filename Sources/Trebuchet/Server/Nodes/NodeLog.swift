internal import TrebuchetActors
internal import TrebuchetCluster

/// What a node says of its cluster, in lines for the log: who lives, how many slots it owns when that has come to rest, and whether the
/// engine is there. What comes and goes within a moment is left out.
struct NodeLog {
    struct Line: Equatable {
        let level: ServerEvent.Level
        let text: String

        init(_ level: ServerEvent.Level, _ text: String) { (self.level, self.text) = (level, "cluster: \(text)") }
    }

    private static let second: UInt64 = 1_000_000_000
    /// How long a number of slots has to stay before a line is written of it.
    private static let rest = 2 * second
    /// How long an engine has to be in trouble; it counts as silent after 2 s.
    private static let patience = second
    /// How long after a look the next one may come, which is due 4 times a second.
    private static let mostBetween = 2 * second
    /// A node that has just died lives by the engine for so long, and its next life beside it.
    private static let doubtful = 15 * second

    private let node: ClusterNode
    private var living: [ClusterNode] = []
    private var slots: (count: Int, since: UInt64, isSaid: Bool) = (0, 0, true)
    private var trouble: (since: UInt64, isSaid: Bool)?
    private var namesakeSince: UInt64?
    private var hasNamedNamesake = false
    private var looked: UInt64?
    /// Nil until it was ready for the first time.
    private var isReady: Bool?

    init(_ node: ClusterNode) { self.node = node }

    /// - Parameters:
    ///   - living: those that lived when the node looked last.
    ///   - slots: how many it owns.
    ///   - trouble: what the engine failed with last; nil when it answers.
    ///   - problem: why the node cannot serve; nil when it can.
    ///   - now: nanoseconds, in which the sleep of a machine counts.
    mutating func lines(
        living: [ClusterNode], slots count: Int, trouble error: ClusterEngineError?, problem: String? = nil,
        at now: UInt64
    ) -> [Line] {
        var lines: [Line] = []
        if let looked, now > looked &+ Self.mostBetween {
            lines.append(
                Line(
                    .warning,
                    "this process stood still for \((now - looked) / Self.second) s: it was stopped, or the machine slept or had "
                        + "no time for it"))
        }
        looked = now
        if Set(living) != Set(self.living) {
            let (gone, new) = (self.living.filter { !living.contains($0) }, living.filter { !self.living.contains($0) })
            self.living = living
            let changes = gone.map { "\($0.name) is gone" } + new.map { "\($0.name) is there" }
            lines.append(Line(.notice, "\(changes.joined(separator: ", ")); \(living.count) nodes live"))
        }
        if count != slots.count { slots = (count, now, false) }
        if !slots.isSaid, now >= slots.since &+ Self.rest {
            slots.isSaid = true
            lines.append(Line(.notice, "node \(node.name) owns \(count) of \(ClusterSlot.count) slots"))
        }
        // That of an engine which has lost what it kept is told as the node's problem.
        if let error, error.code != .dataLoss {
            let since = trouble?.since ?? now
            if trouble == nil { trouble = (now, false) }
            if trouble?.isSaid == false, now >= since &+ Self.patience {
                trouble?.isSaid = true
                lines.append(Line(.error, "the engine does not answer as it should: \(error.message)"))
            }
        } else {
            if trouble?.isSaid == true { lines.append(Line(.notice, "the engine answers again")) }
            trouble = nil
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
        let hasNamesake = living.contains { $0 != node && $0.name.utf8.elementsEqual(node.name.utf8) }
        namesakeSince = hasNamesake ? namesakeSince ?? now : nil
        if let since = namesakeSince, now >= since &+ Self.doubtful, !hasNamedNamesake {
            hasNamedNamesake = true
            lines.append(Line(.warning, "another node is called \(node.name) too: give each a name of its own"))
        }
        return lines
    }
}
