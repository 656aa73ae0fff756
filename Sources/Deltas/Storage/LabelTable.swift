/// For the hash of each id, the label of the leaf that its element is in.
///
/// Ids themselves are in the elements: where two have one hash, both labels are found and both leaves looked into. Hashes
/// are seeded, so ids that a peer chose to collide do not.
///
/// A tree that branches by the bits of the hash, of arrays in arrays as `LeafTree` is: a change copies what lies on the way
/// to it when a copy shares it.
@usableFromInline
struct LabelTable: Sendable {
    @usableFromInline
    struct Entry: Equatable, Sendable {
        @usableFromInline let hash: Int
        @usableFromInline var label: UInt64
    }

    private static let bitsPerLevel = 4
    /// More entries than this make branches of a node, as long as the hash has bits left.
    private static let mostEntries = 32
    /// Fewer than this in all branches, and they become one node again.
    private static let fewestEntries = 12

    /// Entries in this node and all below.
    private(set) var count = 0
    /// Empty when there are branches.
    private(set) var entries: [Entry] = []
    /// None, or one for each value of the bits.
    private(set) var branches: [LabelTable] = []

    @usableFromInline
    init() {}

    /// Few entries, those of a hash among them.
    @usableFromInline
    func neighbours(of hash: Int) -> [Entry] { neighbours(hash, 0) }

    @usableFromInline
    mutating func add(_ label: UInt64, for hash: Int) { add(Entry(hash: hash, label: label), 0) }

    /// Removes a label that is there.
    mutating func remove(_ label: UInt64, for hash: Int) { remove(Entry(hash: hash, label: label), 0) }

    /// Puts a label in the place of one that is there.
    mutating func change(_ label: UInt64, to new: UInt64, for hash: Int) {
        guard label != new else { return }
        change(Entry(hash: hash, label: label), to: new, 0)
    }

    private static func branch(_ hash: Int, _ level: Int) -> Int {
        Int(UInt(bitPattern: hash) >> UInt(level * bitsPerLevel) & (1 << UInt(bitsPerLevel) - 1))
    }

    private func neighbours(_ hash: Int, _ level: Int) -> [Entry] {
        if branches.isEmpty { return entries }
        // In place: an element that is taken out of an array is copied, which counts references.
        return branches.withUnsafeBufferPointer { $0[Self.branch(hash, level)].neighbours(hash, level + 1) }
    }

    private mutating func add(_ entry: Entry, _ level: Int) {
        count += 1
        if !branches.isEmpty { return branches[Self.branch(entry.hash, level)].add(entry, level + 1) }
        entries.append(entry)
        guard count > Self.mostEntries, level * Self.bitsPerLevel < Int.bitWidth else { return }
        branches = Array(repeating: LabelTable(), count: 1 << Self.bitsPerLevel)
        for entry in entries { branches[Self.branch(entry.hash, level)].add(entry, level + 1) }
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
        // Branches with so few entries have none themselves.
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
