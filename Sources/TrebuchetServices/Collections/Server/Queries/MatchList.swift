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

    var isComplete: Bool { if case .nothing = ahead { true } else { false } }

    /// Scans documents until the time is up; returns true when all were scanned.
    func continueScan(_ all: DocumentRows, _ slice: inout ScanSlice) -> Bool {
        while true {
            let row: DocumentRow?
            switch ahead {
            case .nothing: return true
            case .from(let slot):
                guard slot < all.slots.count else {
                    ahead = .nothing
                    return true
                }
                row = all.slots[slot]
                ahead = .from(slot + 1)
            case .some(let slots, let place):
                guard place < slots.count else {
                    ahead = .nothing
                    return true
                }
                row = all.slots[slots[place]]
                ahead = .some(slots, from: place + 1)
            }
            // The time of a scan must not depend on the content of documents that the reader may not read.
            let readable = row.flatMap { mayRead($0.document) ? $0 : nil }
            if let readable {
                var elements = ArrayElements()
                if matches(readable, &elements) { insert(readable) }
            }
            if slice.isOver(after: readable) { return isComplete }
        }
    }

    /// Returns nil when the list does not change.
    ///
    /// - Parameter elements: the cache for the document after the change.
    func apply(_ before: DocumentRow?, _ after: DocumentRow?, _ elements: inout ArrayElements) -> Change? {
        guard let slot = (before ?? after)?.slot, !isAhead(slot) else { return nil }
        var change = Change()
        if let before, included.remove(slot) {
            let place = position(of: before, sortKey(of: before))
            change.removed = (before, rows.index(of: place))
            rows.remove(at: place)
        }
        if let after, mayRead(after.document), matches(after, &elements) {
            let sortKey = sortKey(of: after)
            let place = position(of: after, sortKey)
            change.inserted = (after, rows.index(of: place))
            insert(after, sortKey, at: place)
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

    /// - Parameter row: must be readable, because the time of the evaluation depends on its content.
    private func matches(_ row: DocumentRow, _ elements: inout ArrayElements) -> Bool {
        evaluations += 1
        return key.conditions.allMatch(row.document, &elements)
    }

    private func sortKey(of row: DocumentRow) -> SortKey { SortKey(row.document, in: key.order) }

    private func position(of row: DocumentRow, _ sortKey: SortKey) -> RowList.Position {
        rows.position(of: sortKey) { key.order.precedes($0.document, row.document) }
    }

    private func insert(_ row: DocumentRow) {
        let sortKey = sortKey(of: row)
        insert(row, sortKey, at: position(of: row, sortKey))
    }

    private func insert(_ row: DocumentRow, _ sortKey: SortKey, at place: RowList.Position) {
        rows.insert(row, key: sortKey, at: place)
        included.insert(row.slot)
    }
}
