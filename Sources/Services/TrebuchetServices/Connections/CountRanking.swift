/// Counts by key, with the key of the largest count at any time. Each change takes constant time. Pure.
struct CountRanking<Key: Hashable> {
    private var counts: [Key: Int] = [:]
    /// The keys with each count; the index is the count.
    private var keys: [Set<Key>] = [[]]

    /// The largest count; 0 without keys.
    private(set) var largestCount = 0

    /// A key with the largest count; nil without keys.
    var largest: Key? { largestCount > 0 ? keys[largestCount].first : nil }
    var isEmpty: Bool { counts.isEmpty }

    subscript(key: Key) -> Int { counts[key] ?? 0 }

    /// Returns this key when no other has a larger count, else one with the largest.
    func largest(preferring key: Key) -> Key? { self[key] == largestCount && largestCount > 0 ? key : largest }

    mutating func increment(_ key: Key) {
        let count = self[key] + 1
        move(key, to: count)
        largestCount = max(largestCount, count)
    }

    mutating func decrement(_ key: Key) {
        let count = self[key] - 1
        move(key, to: count)
        if keys[largestCount].isEmpty { largestCount = max(0, count) }
    }

    private mutating func move(_ key: Key, to count: Int) {
        let before = self[key]
        if before > 0 { keys[before].remove(key) }
        counts[key] = count > 0 ? count : nil
        guard count > 0 else { return }
        if count == keys.count { keys.append([]) }
        keys[count].insert(key)
    }
}
