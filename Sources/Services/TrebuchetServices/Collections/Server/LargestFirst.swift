/// Keys with sizes; the one with the largest size is found in constant time, and changed in logarithmic time. Among equal sizes the
/// one whose size was changed least recently comes first. Pure.
struct LargestFirst<Key: Hashable & Sendable>: Sendable {
    private struct Entry: Sendable {
        let key: Key
        let size: Int
        /// Grows with each change.
        let number: UInt64

        func precedes(_ other: Entry) -> Bool { (size, other.number) > (other.size, number) }
    }

    /// A binary heap.
    private var entries: [Entry] = []
    private var places: [Key: Int] = [:]
    private var lastNumber: UInt64 = 0

    var first: Key? { entries.first?.key }

    /// Sets a size; 0 removes the key.
    mutating func setSize(_ size: Int, of key: Key) {
        lastNumber += 1
        let place = places[key]
        guard size > 0 else {
            if let place { remove(at: place) }
            return
        }
        let entry = Entry(key: key, size: size, number: lastNumber)
        guard let place else {
            entries.append(entry)
            places[key] = entries.count - 1
            return move(entries.count - 1)
        }
        guard entries[place].size != size else { return }
        entries[place] = entry
        move(place)
    }

    private mutating func remove(at place: Int) {
        places[entries[place].key] = nil
        let last = entries.removeLast()
        guard place < entries.count else { return }
        entries[place] = last
        places[last.key] = place
        move(place)
    }

    /// Moves an entry up or down to its place.
    private mutating func move(_ start: Int) {
        var place = start
        while place > 0, entries[place].precedes(entries[(place - 1) / 2]) {
            swap(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
        while true {
            var best = place
            for child in [2 * place + 1, 2 * place + 2] where child < entries.count {
                if entries[child].precedes(entries[best]) { best = child }
            }
            guard best != place else { return }
            swap(place, best)
            place = best
        }
    }

    private mutating func swap(_ one: Int, _ other: Int) {
        entries.swapAt(one, other)
        places[entries[one].key] = one
        places[entries[other].key] = other
    }
}
