/// A table from the hash of each id to the label of the leaf that holds its element.
///
/// The elements contain the ids: for two ids with the same hash, both labels are found and both leaves are searched. Hashes are
/// seeded, so a peer cannot choose ids that collide.
///
/// The table is a tree that branches by hash bits, of nested arrays like `LeafTree`. A change copies only the nodes on its path
/// that a copy of the table shares.
@usableFromInline
struct LabelTable: Sendable {
    /// A hash with a label.
    @usableFromInline
    struct Entry: Equatable, Sendable {
        @usableFromInline let hash: Int
        @usableFromInline var label: UInt64
    }

    private static let bitsPerLevel = 4
    /// The maximum number of entries of a node with unused hash bits; with more it gets branches.
    private static let maximumEntries = 32
    /// The number of entries in all branches below which they are merged into one node.
    private static let fewestEntries = 12

    /// The number of entries in this node and below.
    private(set) var count = 0
    /// The entries; empty if there are branches.
    private(set) var entries: [Entry] = []
    /// The branches: none, or one for each value of the hash bits.
    private(set) var branches: [LabelTable] = []

    @usableFromInline
    init() {}

    /// Returns a small number of entries that include those with this hash.
    @usableFromInline
    func neighbours(of hash: Int) -> [Entry] { neighbours(hash, 0) }

    @usableFromInline
    mutating func insert(_ label: UInt64, for hash: Int) { insert(Entry(hash: hash, label: label), 0) }

    /// Removes a label that is present.
    mutating func remove(_ label: UInt64, for hash: Int) { remove(Entry(hash: hash, label: label), 0) }

    /// Replaces a label that is present.
    mutating func change(_ label: UInt64, to new: UInt64, for hash: Int) {
        guard label != new else { return }
        change(Entry(hash: hash, label: label), to: new, 0)
    }

    private static func branch(_ hash: Int, _ level: Int) -> Int {
        Int(UInt(bitPattern: hash) >> UInt(level * bitsPerLevel) & (1 << UInt(bitsPerLevel) - 1))
    }

    private func neighbours(_ hash: Int, _ level: Int) -> [Entry] {
        if branches.isEmpty { return entries }
        // Accessed in place: copying an element out of the array would do reference counting.
        return branches.withUnsafeBufferPointer { $0[Self.branch(hash, level)].neighbours(hash, level + 1) }
    }

    private mutating func insert(_ entry: Entry, _ level: Int) {
        count += 1
        if !branches.isEmpty { return branches[Self.branch(entry.hash, level)].insert(entry, level + 1) }
        entries.append(entry)
        guard count > Self.maximumEntries, level * Self.bitsPerLevel < Int.bitWidth else { return }
        branches = Array(repeating: LabelTable(), count: 1 << Self.bitsPerLevel)
        for entry in entries { branches[Self.branch(entry.hash, level)].insert(entry, level + 1) }
        entries = []
    }

    private mutating func remove(_ entry: Entry, _ level: Int) {
        count -= 1
        if branches.isEmpty {
            entries.remove(at: entries.firstIndex(of: entry)!)
        } else {
            branches[Self.branch(entry.hash, level)].remove(entry, level + 1)
        }
        guard !branches.isEmpty, count < Self.fewestEntries else { return }
        // Branches with so few entries have no branches themselves.
        entries = branches.flatMap(\.entries)
        branches = []
    }

    private mutating func change(_ entry: Entry, to label: UInt64, _ level: Int) {
        if branches.isEmpty {
            entries[entries.firstIndex(of: entry)!].label = label
        } else {
            branches[Self.branch(entry.hash, level)].change(entry, to: label, level + 1)
        }
    }
}
