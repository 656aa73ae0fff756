/// An index of the documents that a reader may read by the hashes of one field. It is built in several parts, while documents
/// change. Its memory is a few arrays, whatever the values are.
struct FieldIndex {
    /// Each reader identity has separate indexes: the number of candidates in a shared one would reveal values of documents that
    /// the reader may not read.
    struct Key: Hashable {
        let field: FieldPath
        /// Nil where all readers are alike.
        let reader: CollectionReader?
    }

    /// The documents with the same hash are a list.
    private struct Entry {
        var hash = 0
        var previous = FieldIndex.none
        var next = FieldIndex.none
    }

    private static let none: Int32 = -1
    /// The approximate bytes of memory without documents, and for each document.
    private static let (overhead, entryBytes) = (1 << 10, 48)

    private let field: FieldPath
    private let mayRead: @Sendable (Document) -> Bool
    private var included = SlotSet()
    /// By slots.
    private var entries: [Entry] = []
    /// The first slot of each hash.
    private var first: [Int: Int32] = [:]
    /// Documents before this slot are indexed.
    private var next = 0
    private(set) var isComplete = false

    init(_ field: FieldPath, mayRead: @escaping @Sendable (Document) -> Bool) {
        self.field = field
        self.mayRead = mayRead
    }

    /// Returns the bytes of memory of the index for a number of slots.
    static func byteCount(_ slots: Int) -> Int { overhead + slots * entryBytes }

    /// Indexes documents until the time is up; returns true when all are indexed.
    mutating func continueIndexing(_ rows: DocumentRows, _ slice: inout ScanSlice) -> Bool {
        if entries.isEmpty {
            entries.reserveCapacity(rows.slots.count)
            first.reserveCapacity(rows.slots.count)
        }
        while !isComplete {
            guard next < rows.slots.count else {
                isComplete = true
                break
            }
            let readable = rows.slots[next].flatMap { mayRead($0.document) ? $0 : nil }
            if let readable { insert(readable, next) }
            next += 1
            if slice.isOver(after: readable) { return isComplete }
        }
        return true
    }

    mutating func apply(_ change: DocumentRows.Change) {
        guard isComplete || change.slot < next else { return }
        if change.before != nil, included.remove(change.slot) { remove(change.slot) }
        if let after = change.after, mayRead(after.document) { insert(after, change.slot) }
    }

    private mutating func insert(_ row: DocumentRow, _ slot: Int) {
        while entries.count <= slot { entries.append(Entry()) }
        let hash = field.withText(in: row.document) { ValueHash.of($0) }
        let next = first.updateValue(Int32(slot), forKey: hash) ?? Self.none
        entries[slot] = Entry(hash: hash, next: next)
        if next != Self.none { entries[Int(next)].previous = Int32(slot) }
        included.insert(slot)
    }

    private mutating func remove(_ slot: Int) {
        let entry = entries[slot]
        if entry.next != Self.none { entries[Int(entry.next)].previous = entry.previous }
        if entry.previous != Self.none {
            entries[Int(entry.previous)].next = entry.next
        } else {
            first[entry.hash] = entry.next == Self.none ? nil : entry.next
        }
    }

    /// Returns the slots of documents whose values may have one of these hashes, sorted.
    func slots(of hashes: [Int]) -> [Int] {
        var slots: [Int] = []
        for hash in Set(hashes) {
            var slot = first[hash] ?? Self.none
            while slot != Self.none {
                slots.append(Int(slot))
                slot = entries[Int(slot)].next
            }
        }
        return slots.sorted()
    }
}
