/// For each id, the label of the leaf that its element is in.
///
/// A tree that branches by the bits of the id's hash, of arrays in arrays as `ElementTree` is: a change copies what lies on
/// the way to it when a copy shares it. Hashes are seeded, so ids that a peer chose to collide do not.
struct LabelTable<ID: Hashable & Sendable>: Sendable {
    struct Entry: Sendable {
        let id: ID
        let hash: Int
        var label: UInt64
    }

    private static var bitsPerLevel: Int { 4 }
    /// More entries than this make branches of a node, as long as the hash has bits left.
    private static var mostEntries: Int { 8 }
    /// Fewer than this in all branches, and they become one node again.
    private static var fewestEntries: Int { 4 }

    /// Entries in this node and all below.
    private(set) var count = 0
    /// Empty when there are branches.
    private(set) var entries: [Entry] = []
    /// None, or one for each value of the bits.
    private(set) var branches: [LabelTable] = []

    func label(of id: ID) -> UInt64? { find(id, id.hashValue, 0) }

    mutating func set(_ label: UInt64, for id: ID) { set(Entry(id: id, hash: id.hashValue, label: label), 0) }

    mutating func remove(_ id: ID) { _ = remove(id, id.hashValue, 0) }

    private static func branch(_ hash: Int, _ level: Int) -> Int {
        Int(UInt(bitPattern: hash) >> UInt(level * bitsPerLevel) & (1 << UInt(bitsPerLevel) - 1))
    }

    private func find(_ id: ID, _ hash: Int, _ level: Int) -> UInt64? {
        if !branches.isEmpty { return branches[Self.branch(hash, level)].find(id, hash, level + 1) }
        return place(id, hash).map { entries[$0].label }
    }

    private func place(_ id: ID, _ hash: Int) -> Int? {
        entries.firstIndex { $0.hash == hash && $0.id == id }
    }

    /// Whether the id is a new one.
    @discardableResult
    private mutating func set(_ entry: Entry, _ level: Int) -> Bool {
        if !branches.isEmpty {
            guard branches[Self.branch(entry.hash, level)].set(entry, level + 1) else { return false }
            count += 1
            return true
        }
        if let place = place(entry.id, entry.hash) {
            entries[place].label = entry.label
            return false
        }
        entries.append(entry)
        count += 1
        guard count > Self.mostEntries, level * Self.bitsPerLevel < Int.bitWidth else { return true }
        branches = Array(repeating: LabelTable(), count: 1 << Self.bitsPerLevel)
        for entry in entries { branches[Self.branch(entry.hash, level)].set(entry, level + 1) }
        entries = []
        return true
    }

    /// Whether the id was there.
    private mutating func remove(_ id: ID, _ hash: Int, _ level: Int) -> Bool {
        if branches.isEmpty {
            guard let place = place(id, hash) else { return false }
            entries.remove(at: place)
        } else {
            guard branches[Self.branch(hash, level)].remove(id, hash, level + 1) else { return false }
        }
        count -= 1
        guard !branches.isEmpty, count < Self.fewestEntries else { return true }
        // Branches with so few entries have none themselves.
        entries = branches.flatMap(\.entries)
        branches = []
        return true
    }
}
