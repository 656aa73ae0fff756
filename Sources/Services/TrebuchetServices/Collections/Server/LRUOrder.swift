/// Keys in the order of their last use. Each call takes constant time. Pure.
struct LRUOrder<Key: Hashable & Sendable>: Sendable {
    private struct Slot: Sendable {
        let key: Key
        var older: Int
        var newer: Int
    }

    private static var none: Int { -1 }

    private var places: [Key: Int] = [:]
    private var slots: [Slot] = []
    private var oldest = -1
    private var newest = -1

    var count: Int { slots.count }
    /// The least recently used key.
    var first: Key? { oldest == Self.none ? nil : slots[oldest].key }

    /// Makes a key the most recently used.
    mutating func markUsed(_ key: Key) {
        if let place = places[key] {
            guard place != newest else { return }
            unlink(place)
            link(place)
        } else {
            places[key] = slots.count
            slots.append(Slot(key: key, older: Self.none, newer: Self.none))
            link(slots.count - 1)
        }
    }

    mutating func remove(_ key: Key) {
        guard let place = places.removeValue(forKey: key) else { return }
        unlink(place)
        let last = slots.removeLast()
        guard place < slots.count else { return }
        // The last slot moves to the free one.
        slots[place] = last
        places[last.key] = place
        if last.older == Self.none { oldest = place } else { slots[last.older].newer = place }
        if last.newer == Self.none { newest = place } else { slots[last.newer].older = place }
    }

    private mutating func link(_ place: Int) {
        slots[place].older = newest
        slots[place].newer = Self.none
        if newest == Self.none { oldest = place } else { slots[newest].newer = place }
        newest = place
    }

    private mutating func unlink(_ place: Int) {
        let (older, newer) = (slots[place].older, slots[place].newer)
        if older == Self.none { oldest = newer } else { slots[older].newer = newer }
        if newer == Self.none { newest = older } else { slots[newer].older = older }
    }
}
