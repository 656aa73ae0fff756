internal import Trebuchet

/// The documents that match some conditions, in an order. Queries that differ in other properties share it. It is built in
/// several parts; the part that is built is kept up to date.
///
/// It is used in its collection's isolation only.
final class MatchList {
    struct Key: Hashable {
        let conditions: [QueryCondition]
        let order: [QueryOrder]
        /// The reader identity, where readers differ.
        let reader: CollectionReader?

        init(_ query: CollectionQuery, for reader: CollectionReader?) {
            conditions = query.conditions
            order = query.order
            self.reader = reader
        }
    }

    /// The effect of a change: the removed row with its index, and the inserted row with its index after the removal.
    struct Change {
        var removed: (row: DocumentRow, index: Int)?
        var inserted: (row: DocumentRow, index: Int)?
    }

    /// Documents that have not been scanned yet.
    private enum Ahead {
        case nothing
        /// From a slot on.
        case from(Int)
        /// These slots, from an index on.
        case some([Int], from: Int)
    }

    let key: Key
    let number: Int
    private let mayRead: @Sendable (Document) -> Bool
    private(set) var rows = RowList()
    private var included = SlotSet()
    private var ahead: Ahead
    /// The evaluation for the next document to scan, when it has taken longer than a time slice.
    private var scanned: (evaluation: ConditionEvaluation, cache: ConditionCache)?
    /// The number of documents that its conditions were evaluated for; for tests.
    private(set) var evaluations = 0
    /// The number of queries and calls that use it.
    var users = 0
    /// Counts how often it has lost its last user.
    var left = 0

    /// - Parameter slots: the slots of candidate documents, sorted; nil for all.
    init(_ key: Key, number: Int, slots: [Int]?, mayRead: @escaping @Sendable (Document) -> Bool) {
        self.key = key
        self.number = number
        self.mayRead = mayRead
        ahead = slots.map { .some($0, from: 0) } ?? .from(0)
    }

    /// The approximate size in bytes of the list and of an incomplete evaluation, divided by the users.
    var byteCount: Int { (rows.count * RowList.rowBytes + (scanned?.cache.byteCount ?? 0)) / max(1, users) }

    var isComplete: Bool { if case .nothing = ahead { true } else { false } }

    /// Scans documents until the time is up; returns true when all were scanned.
    func continueScan(_ all: DocumentRows, _ slice: inout ScanSlice) -> Bool {
        while let slot = nextSlot(of: all) {
            // The time of a scan must not depend on the content of documents that the reader may not read.
            let readable = all.slots[slot].flatMap { mayRead($0.document) ? $0 : nil }
            if let readable {
                guard let isMatch = continueEvaluation(of: readable, &slice) else { return false }
                if isMatch { insert(readable, slot) }
            }
            advance()
            if slice.isOver(after: readable) { return isComplete }
        }
        ahead = .nothing
        return true
    }

    /// Returns the slot to scan next.
    private func nextSlot(of all: DocumentRows) -> Int? {
        switch ahead {
        case .nothing: nil
        case .from(let slot): slot < all.slots.count ? slot : nil
        case .some(let slots, let place): place < slots.count ? slots[place] : nil
        }
    }

    private func advance() {
        switch ahead {
        case .nothing: break
        case .from(let slot): ahead = .from(slot + 1)
        case .some(let slots, let place): ahead = .some(slots, from: place + 1)
        }
    }

    /// Evaluates the conditions for the document that is scanned. Returns nil when the time is up.
    private func continueEvaluation(of row: DocumentRow, _ slice: inout ScanSlice) -> Bool? {
        // Another document when it has changed meanwhile.
        let resumed = scanned?.evaluation.row.document.isSame(as: row.document) == true ? scanned : nil
        var (evaluation, cache) = resumed ?? (beginEvaluation(of: row), ConditionCache())
        let isMatch = evaluation.resume(key.conditions, &cache, &slice)
        scanned = isMatch == nil ? (evaluation, cache) : nil
        return isMatch
    }

    private func beginEvaluation(of row: DocumentRow) -> ConditionEvaluation {
        evaluations += 1
        return ConditionEvaluation(row)
    }

    /// Returns whether the document belongs to the list after a change; nil when the evaluation must be resumed.
    ///
    /// - Parameters:
    ///   - evaluation: nil at first.
    ///   - cache: the cache for the document.
    func matches(
        _ change: DocumentRows.Change, _ evaluation: inout ConditionEvaluation?, _ cache: inout ConditionCache,
        _ slice: inout ScanSlice
    ) -> Bool? {
        guard let after = change.after, !isAhead(change.slot) else { return false }
        if evaluation == nil {
            guard mayRead(after.document) else { return false }
            evaluation = beginEvaluation(of: after)
        }
        return evaluation?.resume(key.conditions, &cache, &slice)
    }

    /// Returns nil when the list does not change.
    ///
    /// - Parameter isMatch: whether the list contains the document after the change.
    func apply(_ changed: DocumentRows.Change, isMatch: Bool) -> Change? {
        guard !isAhead(changed.slot) else { return nil }
        var change = Change()
        if let before = changed.before, included.remove(changed.slot) {
            let place = position(of: before, sortKey(of: before))
            change.removed = (before, rows.index(of: place))
            rows.remove(at: place)
        }
        if let after = changed.after, isMatch {
            let sortKey = sortKey(of: after)
            let place = position(of: after, sortKey)
            change.inserted = (after, rows.index(of: place))
            insert(after, changed.slot, sortKey, at: place)
        }
        return change.removed == nil && change.inserted == nil ? nil : change
    }

    /// Returns whether the slot will be scanned later.
    private func isAhead(_ slot: Int) -> Bool {
        switch ahead {
        case .nothing: return false
        case .from(let next): return slot >= next
        case .some(let slots, let next):
            var (low, high) = (next, slots.count)
            while low < high {
                let middle = (low + high) / 2
                if slots[middle] < slot { low = middle + 1 } else { high = middle }
            }
            return low < slots.count && slots[low] == slot
        }
    }

    private func sortKey(of row: DocumentRow) -> SortKey { SortKey(row.document, in: key.order) }

    private func position(of row: DocumentRow, _ sortKey: SortKey) -> RowList.Position {
        rows.position(of: sortKey) { key.order.precedes($0.document, row.document) }
    }

    private func insert(_ row: DocumentRow, _ slot: Int) {
        let sortKey = sortKey(of: row)
        insert(row, slot, sortKey, at: position(of: row, sortKey))
    }

    private func insert(_ row: DocumentRow, _ slot: Int, _ sortKey: SortKey, at place: RowList.Position) {
        rows.insert(row, key: sortKey, at: place)
        included.insert(slot)
    }
}
