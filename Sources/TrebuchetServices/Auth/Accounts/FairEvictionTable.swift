/// A table with a maximum number of entries. When it is full, the owners with the most entries lose their oldest, so an owner
/// that fills the table evicts its entries and no insertion fails. Pure.
struct FairEvictionTable<Owner: Hashable, Key: Hashable, Value> {
    private struct Entry {
        var value: Value
        let owner: Owner
        /// Grows with each insertion.
        let number: UInt64
    }

    private let capacity: Int
    private var entries: [Key: Entry] = [:]
    private var counts: [Owner: Int] = [:]
    private var lastNumber: UInt64 = 0

    init(capacity: Int) { self.capacity = max(1, capacity) }

    var count: Int { entries.count }
    var isFull: Bool { entries.count >= capacity }

    /// The value of a key. `update` changes an existing entry; `insert` adds one.
    subscript(key: Key) -> Value? { entries[key]?.value }

    mutating func update(_ key: Key, to value: Value) { entries[key]?.value = value }

    /// - Returns: the evicted entries.
    @discardableResult
    mutating func insert(_ value: Value, for key: Key, of owner: Owner) -> [(key: Key, value: Value)] {
        remove(key)
        // The new entry counts before room is made; otherwise it could evict an entry of an owner that has just as many.
        counts[owner, default: 0] += 1
        let evicted = isFull ? makeRoom() : []
        lastNumber += 1
        entries[key] = Entry(value: value, owner: owner, number: lastNumber)
        return evicted
    }

    @discardableResult
    mutating func remove(_ key: Key) -> Value? {
        guard let entry = entries.removeValue(forKey: key) else { return nil }
        let count = counts[entry.owner, default: 1] - 1
        counts[entry.owner] = count > 0 ? count : nil
        return entry.value
    }

    /// - Returns: the removed entries.
    @discardableResult
    mutating func removeAll(where isGone: (Value) -> Bool) -> [(key: Key, value: Value)] {
        let gone = entries.filter { isGone($0.value.value) }.map { (key: $0.key, value: $0.value.value) }
        for (key, _) in gone { remove(key) }
        return gone
    }

    /// Evicts a sixteenth of the entries at once, so that the search costs each insertion little.
    private mutating func makeRoom() -> [(key: Key, value: Value)] {
        let needed = entries.count - capacity + max(1, capacity / 16)
        // Finds the largest number per owner above which there are enough entries to evict; all owners keep that many.
        var (low, high) = (0, counts.values.max() ?? 0)
        while low < high {
            let middle = (low + high + 1) / 2
            let above = counts.values.reduce(0) { $0 + max(0, $1 - middle) }
            if above >= needed { low = middle } else { high = middle - 1 }
        }
        var gone: [(key: Key, value: Value)] = []
        for (key, entry) in entries.sorted(by: { $0.value.number < $1.value.number }) {
            guard gone.count < needed else { break }
            guard counts[entry.owner, default: 0] > low else { continue }
            remove(key)
            gone.append((key, entry.value))
        }
        return gone
    }
}
