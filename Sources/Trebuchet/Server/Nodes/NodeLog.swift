internal import TrebuchetCluster

/// What a node says of its cluster, in lines for the log: who lives, how many slots it owns when that has come to rest, and whether the
/// engine is there. What comes and goes within a moment is left out.
struct NodeLog {
    private static let second: UInt64 = 1_000_000_000
    /// How long a number of slots has to stay, and an engine to be away, before a line is written of it.
    private static let rest = 2 * second
    /// A node that has just died lives by the engine for so long, and its next life beside it.
    private static let doubtful = 15 * second

    private let node: ClusterNode
    private var living: [ClusterNode] = []
    private var slots: (count: Int, since: UInt64, isSaid: Bool) = (0, 0, true)
    private var trouble: (since: UInt64, isSaid: Bool)?
    private var namesakeSince: UInt64?
    private var hasNamedNamesake = false

    init(_ node: ClusterNode) { self.node = node }

    /// - Parameters:
    ///   - living: those that lived when the node looked last.
    ///   - slots: how many it owns.
    ///   - trouble: what the engine failed with last; nil when it answers.
    ///   - now: nanoseconds.
    mutating func lines(living: [ClusterNode], slots count: Int, trouble error: ClusterEngineError?, at now: UInt64)
        -> [String]
    {
        var lines: [String] = []
        if Set(living) != Set(self.living) {
            let (gone, new) = (self.living.filter { !living.contains($0) }, living.filter { !self.living.contains($0) })
            self.living = living
            let changes = gone.map { "\($0.name) is gone" } + new.map { "\($0.name) is there" }
            lines.append("cluster: \(changes.joined(separator: ", ")); \(living.count) nodes live")
        }
        if count != slots.count { slots = (count, now, false) }
        if !slots.isSaid, now >= slots.since &+ Self.rest {
            slots.isSaid = true
            lines.append("cluster: node \(node.name) owns \(count) of \(ClusterSlot.count) slots")
        }
        if let error {
            let since = trouble?.since ?? now
            if trouble == nil { trouble = (now, false) }
            if trouble?.isSaid == false, now >= since &+ Self.rest {
                trouble?.isSaid = true
                lines.append("cluster: the engine does not answer as it should: \(error.message)")
            }
        } else {
            if trouble?.isSaid == true { lines.append("cluster: the engine answers again") }
            trouble = nil
        }
        let hasNamesake = living.contains { $0 != node && $0.name.utf8.elementsEqual(node.name.utf8) }
        namesakeSince = hasNamesake ? namesakeSince ?? now : nil
        if let since = namesakeSince, now >= since &+ Self.doubtful, !hasNamedNamesake {
            hasNamedNamesake = true
            lines.append("cluster: another node is called \(node.name) too: give each a name of its own")
        }
        return lines
    }
}
