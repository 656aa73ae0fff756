internal import Platform

/// A list of names, sorted by their bytes. Pure.
struct RoomNames: Sendable {
    private var names: [ByteText] = []

    var count: Int { names.count }

    mutating func insert(_ name: ByteText) {
        let place = first { !($0 < name) }
        guard place == names.count || names[place] != name else { return }
        names.insert(name, at: place)
    }

    mutating func remove(_ name: ByteText) {
        let place = first { !($0 < name) }
        guard place < names.count, names[place] == name else { return }
        names.remove(at: place)
    }

    /// Returns the first `limit` names that begin with `prefix` and follow `after`.
    func page(prefix: String, after: String?, limit: Int) -> ArraySlice<ByteText> {
        var begin = first { !$0.text.precedesInBytes(prefix) }
        if let after { begin = max(begin, first { after.precedesInBytes($0.text) }) }
        let end = names[begin...].prefix(max(0, limit)).firstIndex { !$0.text.utf8.starts(with: prefix.utf8) }
        return names[begin..<(end ?? min(names.count, begin + min(max(0, limit), names.count - begin)))]
    }

    /// Returns the first index for which the condition holds, by binary search; it must hold for all later ones.
    private func first(where holds: (ByteText) -> Bool) -> Int {
        var (low, high) = (0, names.count)
        while low < high {
            let middle = (low + high) / 2
            if holds(names[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
