/// Values by keys, so many at the most. When there is no more room, those who have brought the most lose their oldest: who
/// fills the table pushes out what is his own, and nobody else is refused. Pure.
struct FairTable<Owner: Hashable, Key: Hashable, Value> {
    private struct Entry {
        var value: Value
        let owner: Owner
        /// They grow with time.
        let number: UInt64
    }

    private let capacity: Int
    private var entries: [Key: Entry] = [:]
    private var counts: [Owner: Int] = [:]
    private var lastNumber: UInt64 = 0

    init(capacity: Int) { self.capacity = max(1, capacity) }

    var count: Int { entries.count }
    var isFull: Bool { entries.count >= capacity }

    /// To change what is there; use `insert` for what is not.
    subscript(key: Key) -> Value? { entries[key]?.value }

    mutating func update(_ key: Key, to value: Value) { entries[key]?.value = value }

    /// - Returns: what had to go.
    @discardableResult
    mutating func insert(_ value: Value, for key: Key, of owner: Owner) -> [(key: Key, value: Value)] {
        remove(key)
        // It counts before there is room for it: else who brings it might push out somebody who has as many as he has.
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

    /// - Returns: what has gone.
    @discardableResult
    mutating func removeAll(where isGone: (Value) -> Bool) -> [(key: Key, value: Value)] {
        let gone = entries.filter { isGone($0.value.value) }.map { (key: $0.key, value: $0.value.value) }
        for (key, _) in gone { remove(key) }
        return gone
    }

    /// Takes out a sixteenth at once, so that the looking costs each new one little.
    private mutating func makeRoom() -> [(key: Key, value: Value)] {
        let needed = entries.count - capacity + max(1, capacity / 16)
        // What is above this many of one owner's is enough; all owners keep as many.
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
