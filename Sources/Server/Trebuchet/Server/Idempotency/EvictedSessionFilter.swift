internal import Platform
internal import TrebuchetActors

/// A record of the evicted entries of connections of other nodes whose calls ran here: a late repeat of such a call may have run.
/// A pure value.
///
/// A limited number of each principal or host is known by name. The last names beyond that are known for all scopes (`ApproximateNameFilter`).
/// A scope also has the greatest number for each node: its connections there up to that number may have been among them. The
/// numbers of scopes beyond the limit are merged into places, which a scope selects by a secret of this process.
///
/// So memory is bounded, and a scope whose call has run here never gets the answer that it has not, whatever others do. Very many
/// others can share its place: then calls of its older connections that have not run may count as run.
struct EvictedSessionFilter {
    struct Limits {
        var all = 100_000
        var perScope = 10_000
        /// Scopes whose greatest numbers are kept separately.
        var scopes = 10_000
        /// Nodes for each scope: the oldest one is removed first, and its number then counts for all nodes.
        var nodesPerScope = 16
        /// Places for the greatest numbers of other scopes.
        var slots = 65_536
        /// The minimum number of removed names that are recognized.
        var filterCapacity = 131_072
    }

    private struct Entry {
        var call: UInt64
        let scope: QuotaScope
    }

    /// The greatest numbers of one scope.
    private struct Numbers {
        var nodes: [(instance: UInt64, number: UInt64)] = []
        /// The greatest number for all nodes.
        var rest: UInt64 = 0

        var greatest: UInt64 { nodes.reduce(rest) { max($0, $1.number) } }

        func contains(_ session: QualifiedCallSessionID) -> Bool {
            session.number <= rest || nodes.contains { $0.instance == session.instance && session.number <= $0.number }
        }

        mutating func insert(_ session: QualifiedCallSessionID, nodes limit: Int) {
            if let index = nodes.firstIndex(where: { $0.instance == session.instance }) {
                nodes[index].number = max(nodes[index].number, session.number)
                return
            }
            if nodes.count >= limit { rest = max(rest, nodes.removeFirst().number) }
            nodes.append((session.instance, session.number))
        }
    }

    private let limits: Limits
    private var entries: [QualifiedCallSessionID: Entry] = [:]
    /// In order of arrival; some have been removed.
    private var order = WorkQueue<QualifiedCallSessionID>()
    private var scopes: [QuotaScope: WorkQueue<QualifiedCallSessionID>] = [:]
    private var last: ApproximateNameFilter
    private var numbers: [QuotaScope: Numbers] = [:]
    private var numbered = WorkQueue<QuotaScope>()
    /// The greatest numbers of other scopes, by place; 0 where there are none. Empty until there is one.
    private var slots: [UInt64] = []

    init(_ limits: Limits = Limits()) {
        self.limits = limits
        last = ApproximateNameFilter(atLeast: limits.filterCapacity)
    }

    var count: Int { entries.count }

    func contains(_ call: UInt64, over session: QualifiedCallSessionID, of scope: QuotaScope) -> Bool {
        if let entry = entries[session] { return call <= entry.call }
        if last.contains(session) { return true }
        if let own = numbers[scope], own.contains(session) { return true }
        return !slots.isEmpty && session.number <= slots[slot(of: scope)]
    }

    private func slot(of scope: QuotaScope) -> Int {
        // Hash values are secret to this process: no client knows which scopes share a place.
        Int(UInt(bitPattern: scope.hashValue) % UInt(limits.slots))
    }

    /// - Parameter call: The greatest call number that may have run.
    mutating func insert(_ session: QualifiedCallSessionID, upTo call: UInt64, of scope: QuotaScope) {
        if let entry = entries[session] {
            entries[session]?.call = max(entry.call, call)
            return
        }
        if let own = scopes[scope]?.count, own >= limits.perScope { removeFirst(of: scope) }
        if entries.count >= limits.all { removeFirst() }
        entries[session] = Entry(call: call, scope: scope)
        order.append(session)
        scopes[scope, default: WorkQueue()].append(session)
        if order.count > 2 * limits.all { sweep() }
    }

    private mutating func removeFirst() {
        while !order.isEmpty {
            // The oldest of all is the oldest of its scope.
            if let entry = entries[order.removeFirst()] { return removeFirst(of: entry.scope) }
        }
    }

    private mutating func removeFirst(of scope: QuotaScope) {
        guard let session = scopes[scope]?.removeFirst() else { return }
        if scopes[scope]?.isEmpty == true { scopes[scope] = nil }
        entries[session] = nil
        last.insert(session)
        if numbers[scope] == nil {
            if numbers.count >= limits.scopes { mergeNumbers(of: numbered.removeFirst()) }
            numbered.append(scope)
        }
        numbers[scope, default: Numbers()].insert(session, nodes: limits.nodesPerScope)
    }

    /// Merges the separate greatest numbers of a scope into its place.
    private mutating func mergeNumbers(of scope: QuotaScope) {
        guard let own = numbers.removeValue(forKey: scope) else { return }
        if slots.isEmpty { slots = Array(repeating: 0, count: limits.slots) }
        let slot = slot(of: scope)
        slots[slot] = max(slots[slot], own.greatest)
    }

    private mutating func sweep() {
        var rest = WorkQueue<QualifiedCallSessionID>()
        while !order.isEmpty {
            let session = order.removeFirst()
            if entries[session] != nil { rest.append(session) }
        }
        order = rest
    }
}

/// A probabilistic set that recognizes at least a given number of the names inserted last. A false positive has a probability of at
/// most 1 in 100,000, and cannot be provoked without this process's hash seed. A pure value.
struct ApproximateNameFilter {
    private static let bitsPerName = 32
    private static let bitsOfName = 8

    private let limit: Int
    /// Empty until the first insertion.
    private var newer: [UInt64] = []
    private var older: [UInt64] = []
    private var count = 0

    init(atLeast limit: Int) { self.limit = limit }

    func contains(_ name: QualifiedCallSessionID) -> Bool {
        guard !newer.isEmpty else { return false }
        let slots = slots(of: name)
        return [newer, older].contains { words in
            !words.isEmpty && slots.allSatisfy { words[$0 / 64] & 1 << UInt64($0 % 64) != 0 }
        }
    }

    mutating func insert(_ name: QualifiedCallSessionID) {
        if newer.isEmpty || count >= limit {
            older = newer
            newer = Array(repeating: 0, count: (limit * Self.bitsPerName + 63) / 64)
            count = 0
        }
        count += 1
        for slot in slots(of: name) { newer[slot / 64] |= 1 << UInt64(slot % 64) }
    }

    private func slots(of name: QualifiedCallSessionID) -> [Int] {
        let bits = UInt((limit * Self.bitsPerName + 63) / 64 * 64)
        return (0..<Self.bitsOfName).map { index in
            var hasher = Hasher()
            hasher.combine(index)
            hasher.combine(name)
            return Int(UInt(bitPattern: hasher.finalize()) % bits)
        }
    }
}
