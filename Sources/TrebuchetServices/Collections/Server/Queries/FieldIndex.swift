/// An index of a collection's documents by one field. It is built in several parts, while documents change.
struct FieldIndex {
    let field: FieldPath
    private var slots: [JSONValue: Set<Int>] = [:]
    /// Documents before this slot are indexed.
    private var next = 0
    private(set) var isComplete = false

    init(_ field: FieldPath) { self.field = field }

    /// Indexes documents until the time is up; returns true when all are indexed.
    mutating func continueIndexing(_ rows: DocumentRows, _ slice: inout ScanSlice) -> Bool {
        while !isComplete {
            guard next < rows.slots.count else {
                isComplete = true
                break
            }
            let row = rows.slots[next]
            if let row { insert(row, next) }
            next += 1
            if slice.isOver(after: row) { return isComplete }
        }
        return true
    }

    mutating func apply(_ change: DocumentRows.Change) {
        guard isComplete || change.slot < next else { return }
        if let before = change.before {
            let value = value(before)
            slots[value]?.remove(change.slot)
            if slots[value]?.isEmpty == true { slots[value] = nil }
        }
        if let after = change.after { insert(after, change.slot) }
    }

    private mutating func insert(_ row: DocumentRow, _ slot: Int) { slots[value(row), default: []].insert(slot) }

    private func value(_ row: DocumentRow) -> JSONValue { JSONOrder.identity(field.value(in: row.document)) }

    /// Returns the slots of documents with one of these values, sorted.
    func slots(of values: [JSONValue]) -> [Int] {
        values.count == 1
            ? (slots[values[0]] ?? []).sorted() : values.reduce(into: Set()) { $0.formUnion(slots[$1] ?? []) }.sorted()
    }
}
