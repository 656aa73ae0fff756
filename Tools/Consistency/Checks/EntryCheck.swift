/// Checks the persisted events of a reader: each event once, in order, across restarts of the server. Pure.
struct EntryCheck {
    /// The received calls, from the first turn on.
    private(set) var calls: [Int] = []
    private var first: Int?
    private var isOver = false

    mutating func take(_ entry: Entry) -> String? {
        guard let first else {
            first = entry.isLast ? entry.turn + 1 : entry.turn
            if !entry.isLast { calls.append(entry.call) }
            isOver = entry.isLast
            return nil
        }
        let next = first + calls.count
        if entry.isLast {
            isOver = true
            return entry.turn == next - 1 ? nil : "the last entry came after \(entry.turn), and \(next - 1) were there"
        }
        calls.append(entry.call)
        if isOver { return "entry \(entry.turn) came after the last one" }
        return entry.turn == next ? nil : "entry \(entry.turn) came in the place of \(next)"
    }

    /// Returns the difference from the final ledger; nil if there is none.
    func compare(with ledger: [Int]) -> String? {
        guard let first, !calls.isEmpty else { return nil }
        let written = ledger.dropFirst(first - 1).prefix(calls.count)
        return written.elementsEqual(calls) ? nil : "the entries from \(first) on are not what the ledger has"
    }

    var isEmpty: Bool { first == nil }

    var description: String { "entry \((first ?? 1) + calls.count - 1)" }
}
