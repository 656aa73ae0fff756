internal import Platform
internal import TrebuchetActors

/// The connections of other nodes whose calls have run here and have no records any more: a late repeat of such a call may have
/// run. A pure value; an answer never changes from true to false.
///
/// The connections that were forgotten last are known by name, with their greatest call. For earlier ones there is a watermark for
/// each node, since a node numbers its connections in ascending order. A repeat of a call that has not run is refused too if its
/// connection is not above the watermark.
///
/// Only the connection's own node can verify a name. A name that a client has used elsewhere counts for the caller's scope instead of
/// the node: otherwise one invented name with a large number would refuse the repeats of all clients of that node.
struct ForgottenCallWatermarks {
    struct Limits {
        /// Connections that are known by name.
        var names = 200_000
        /// Nodes with a watermark.
        var nodes = 1_024
        /// Scopes with a watermark.
        var scopes = 10_000
    }

    private struct Entry {
        /// The greatest call that may have run.
        var call: UInt64
        var scope: QuotaScope
        var isVerified: Bool
    }

    private let limits: Limits
    private var entries: [QualifiedCallSessionID: Entry] = [:]
    /// The names in `entries`, the oldest first.
    private var order = WorkQueue<QualifiedCallSessionID>()
    private var nodes: Watermarks<UInt64>
    private var scopes: Watermarks<QuotaScope>

    init(_ limits: Limits = Limits()) {
        self.limits = limits
        nodes = Watermarks(capacity: limits.nodes)
        scopes = Watermarks(capacity: limits.scopes)
    }

    /// The number of connections that are known by name.
    var nameCount: Int { entries.count }
    /// The numbers of nodes and scopes with a watermark.
    var watermarkCount: (nodes: Int, scopes: Int) { (nodes.count, scopes.count) }

    /// - Parameter scope: the quota scope of the caller.
    func mayHaveRun(_ call: UInt64, over session: QualifiedCallSessionID, of scope: QuotaScope) -> Bool {
        if let entry = entries[session], call <= entry.call { return true }
        return session.number <= nodes[session.instance] || session.number <= scopes[scope]
    }

    /// Records that calls of a connection may have run and have no records any more.
    ///
    /// - Parameters:
    ///   - call: the greatest of them.
    ///   - scope: the quota scope of the caller.
    ///   - isVerified: whether the name has arrived from its own node.
    mutating func insert(
        _ session: QualifiedCallSessionID, upTo call: UInt64, of scope: QuotaScope, isVerified: Bool
    ) {
        if let before = entries[session] {
            let isVerified = before.isVerified || isVerified
            // An entry counts for one scope.
            if !isVerified, before.scope != scope { scopes.raise(before.scope, to: session.number) }
            entries[session] = Entry(call: max(before.call, call), scope: scope, isVerified: isVerified)
            return
        }
        if entries.count >= limits.names { removeOldest() }
        entries[session] = Entry(call: call, scope: scope, isVerified: isVerified)
        order.append(session)
    }

    private mutating func removeOldest() {
        guard !order.isEmpty else { return }
        let session = order.removeFirst()
        guard let entry = entries.removeValue(forKey: session) else { return }
        if entry.isVerified {
            nodes.raise(session.instance, to: session.number)
        } else {
            scopes.raise(entry.scope, to: session.number)
        }
    }
}

/// The greatest number of each key, for a limited number of keys. The key that was raised least recently is merged into a watermark
/// for all keys. A pure value; a watermark never falls.
struct Watermarks<Key: Hashable> {
    private let capacity: Int
    private var marks: [Key: (number: UInt64, raised: UInt64)] = [:]
    /// The watermark of keys without a separate one.
    private var rest: UInt64 = 0
    private var changes: UInt64 = 0

    init(capacity: Int) { self.capacity = max(1, capacity) }

    var count: Int { marks.count }

    /// The watermark of a key; 0 if there is none.
    subscript(key: Key) -> UInt64 { max(rest, marks[key]?.number ?? 0) }

    mutating func raise(_ key: Key, to number: UInt64) {
        changes += 1
        if marks[key] == nil, marks.count >= capacity { mergeOldest() }
        marks[key] = (max(number, marks[key]?.number ?? 0), changes)
    }

    private mutating func mergeOldest() {
        guard let oldest = marks.min(by: { $0.value.raised < $1.value.raised }) else { return }
        marks[oldest.key] = nil
        rest = max(rest, oldest.value.number)
    }
}
