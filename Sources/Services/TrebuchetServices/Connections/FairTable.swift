/// A table with a maximum number of entries that is fair to networks, and within a network to its hosts. Pure.
///
/// An entry that does not fit replaces the oldest one of the host with the most entries, in the network with the most. Entries of
/// others are replaced only when that network has more than its guaranteed entries, and more than the network of the new entry.
/// Otherwise the new entry replaces the oldest one of the same host, or of a host of the same network with more than one, or it
/// is refused. So no number of other networks can take the place of an entry.
struct FairTable<Owner: QuotaHost, Key: Hashable, Value> {
    private struct Entry {
        let value: Value
        let owner: Owner
        /// Grows with each insertion.
        let number: UInt64
    }

    /// The entries of one network.
    private struct Network {
        var hosts = CountRanking<Owner>()
        var orders: [Owner: EntryOrder<Key>] = [:]
    }

    private let capacity: Int
    /// The number of entries that a network keeps, whatever others insert.
    private let guaranteed: Int
    private var entries: [Key: Entry] = [:]
    private var networks: [Owner: Network] = [:]
    private var ranking = CountRanking<Owner>()
    private var order = EntryOrder<Key>()
    private var lastNumber: UInt64 = 0

    init(capacity: Int) {
        self.capacity = max(1, capacity)
        guaranteed = max(1, capacity / 1_024)
    }

    var count: Int { entries.count }

    subscript(key: Key) -> Value? { entries[key]?.value }

    /// The oldest entry.
    var oldest: (key: Key, value: Value)? {
        mutating get { Self.oldest(in: &order, of: entries).flatMap { key in self[key].map { (key, $0) } } }
    }

    /// Returns whether an entry of an owner would be inserted.
    func hasRoom(for key: Key, of owner: Owner) -> Bool {
        entries[key] != nil || count < capacity || loser(to: owner) != nil
    }

    /// Returns the key of the entry that a new one should replace: as `insert` in a full table. An owner without entries elsewhere
    /// may replace the oldest one of all.
    ///
    /// - Parameters:
    ///   - others: the number of entries that the owner's network has here and elsewhere.
    ///   - isOwn: whether only entries of the owner may be replaced.
    mutating func victim(for owner: Owner, having others: Int, isOwn: Bool) -> Key? {
        if isOwn { return oldest(of: owner) }
        return loser(to: owner, having: others).flatMap { oldest(of: $0) } ?? (others == 0 ? oldest?.key : nil)
    }

    /// Makes an entry the newest one; returns false when there is none.
    mutating func renew(_ key: Key) -> Bool {
        guard let entry = entries[key] else { return false }
        guard entry.number != lastNumber else { return true }
        lastNumber += 1
        entries[key] = Entry(value: entry.value, owner: entry.owner, number: lastNumber)
        order.append(key, lastNumber)
        networks[entry.owner.network]?.orders[entry.owner]?.append(key, lastNumber)
        trim(entry.owner)
        return true
    }

    /// Inserts an entry, in place of an earlier one with its key.
    ///
    /// - Returns: false when it was refused, and the entry that it has replaced.
    @discardableResult
    mutating func insert(_ value: Value, for key: Key, of owner: Owner) -> (
        isInserted: Bool, evicted: (key: Key, value: Value)?
    ) {
        remove(key)
        var evicted: (key: Key, value: Value)?
        if count >= capacity {
            guard let loser = loser(to: owner), let oldest = oldest(of: loser), let value = remove(oldest) else {
                return (false, nil)
            }
            evicted = (oldest, value)
        }
        lastNumber += 1
        entries[key] = Entry(value: value, owner: owner, number: lastNumber)
        order.append(key, lastNumber)
        ranking.increment(owner.network)
        networks[owner.network, default: Network()].hosts.increment(owner)
        networks[owner.network]?.orders[owner, default: EntryOrder()].append(key, lastNumber)
        return (true, evicted)
    }

    @discardableResult
    mutating func remove(_ key: Key) -> Value? {
        guard let entry = entries.removeValue(forKey: key) else { return nil }
        let network = entry.owner.network
        ranking.decrement(network)
        networks[network]?.hosts.decrement(entry.owner)
        trim(entry.owner)
        return entry.value
    }

    /// Drops outdated parts of the orders with the entries of an owner.
    private mutating func trim(_ owner: Owner) {
        let (network, entries) = (owner.network, entries)
        order.trim(to: entries.count) { entries[$0]?.number == $1 }
        let remaining = networks[network]?.hosts[owner] ?? 0
        if remaining == 0 {
            networks[network]?.orders[owner] = nil
            if networks[network]?.hosts.isEmpty == true { networks[network] = nil }
        } else {
            networks[network]?.orders[owner]?.trim(to: remaining) { entries[$0]?.number == $1 }
        }
    }

    /// Returns the host that loses an entry to a new one; nil when the new one is refused.
    private func loser(to owner: Owner, having count: Int? = nil) -> Owner? {
        let network = owner.network
        if ranking.largestCount > max(guaranteed, (count ?? ranking[network]) + 1), let largest = ranking.largest {
            return networks[largest]?.hosts.largest
        }
        guard let own = networks[network]?.hosts else { return nil }
        return own[owner] > 0 ? owner : own.largestCount > 1 ? own.largest : nil
    }

    private mutating func oldest(of owner: Owner) -> Key? {
        guard var order = networks[owner.network]?.orders[owner] else { return nil }
        let key = Self.oldest(in: &order, of: entries)
        networks[owner.network]?.orders[owner] = order
        return key
    }

    private static func oldest(in order: inout EntryOrder<Key>, of entries: [Key: Entry]) -> Key? {
        order.first { entries[$0]?.number == $1 }
    }
}

/// Keys in the order of their insertion. Removed keys stay until they come first, or until they are the majority.
private struct EntryOrder<Key: Hashable> {
    private var items: ArraySlice<(key: Key, number: UInt64)> = []

    mutating func append(_ key: Key, _ number: UInt64) { items.append((key, number)) }

    /// Returns the first key that is present.
    mutating func first(where isPresent: (Key, UInt64) -> Bool) -> Key? {
        while let item = items.first {
            if isPresent(item.key, item.number) { return item.key }
            items.removeFirst()
        }
        return nil
    }

    /// Drops removed keys when they are many.
    ///
    /// - Parameter count: the number of present keys.
    mutating func trim(to count: Int, where isPresent: (Key, UInt64) -> Bool) {
        guard items.count > 2 * count + 16 else { return }
        items = ArraySlice(items.filter { isPresent($0.key, $0.number) })
    }
}
