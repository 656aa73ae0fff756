/// A table with a maximum number of entries that is fair to networks, and within a network to its hosts. Pure.
///
/// No insertion fails: the network with the most entries loses the oldest entry of its host with the most.
struct FairEvictionTable<Owner: QuotaHost, Key: Hashable, Value> {
    private struct Entry {
        var value: Value
        let owner: Owner
        /// Grows with each insertion.
        let number: UInt64
    }

    private let capacity: Int
    private var entries: [Key: Entry] = [:]
    private var lastNumber: UInt64 = 0

    init(capacity: Int) { self.capacity = max(1, capacity) }

    var count: Int { entries.count }
    var isFull: Bool { entries.count >= capacity }

    subscript(key: Key) -> Value? { entries[key]?.value }

    /// - Returns: the evicted entries.
    @discardableResult
    mutating func insert(_ value: Value, for key: Key, of owner: Owner) -> [(key: Key, value: Value)] {
        lastNumber += 1
        entries[key] = Entry(value: value, owner: owner, number: lastNumber)
        return entries.count > capacity ? makeRoom() : []
    }

    @discardableResult
    mutating func remove(_ key: Key) -> Value? { entries.removeValue(forKey: key)?.value }

    /// - Returns: the removed entries.
    @discardableResult
    mutating func removeAll(where isRemoved: (Value) -> Bool) -> [(key: Key, value: Value)] {
        let removed = entries.filter { isRemoved($0.value.value) }.map { (key: $0.key, value: $0.value.value) }
        for (key, _) in removed { remove(key) }
        return removed
    }

    /// Evicts a sixteenth of the entries at once, so that the search costs each insertion little.
    private mutating func makeRoom() -> [(key: Key, value: Value)] {
        let needed = entries.count - capacity + max(0, capacity / 16 - 1)
        // The number of newer entries of the same host, and then of entries in the network that stay longer.
        var newer: [Owner: Int] = [:]
        var networks: [Owner: [(round: Int, number: UInt64, key: Key)]] = [:]
        for (key, entry) in entries.sorted(by: { $0.value.number > $1.value.number }) {
            let round = newer[entry.owner, default: 0]
            newer[entry.owner] = round + 1
            networks[entry.owner.network, default: []].append((round, entry.number, key))
        }
        var ranked: [(rank: Int, number: UInt64, key: Key)] = []
        for members in networks.values {
            let inOrder = members.sorted { ($0.round, $1.number) < ($1.round, $0.number) }
            for (rank, member) in inOrder.enumerated() { ranked.append((rank, member.number, member.key)) }
        }
        ranked.sort { ($0.rank, $1.number) > ($1.rank, $0.number) }
        return ranked.prefix(needed).compactMap { member in remove(member.key).map { (member.key, $0) } }
    }
}
