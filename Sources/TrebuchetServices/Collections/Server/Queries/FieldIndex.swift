/// An index of the documents that a reader may read by one field. It is built in several parts, while documents change.
struct FieldIndex {
    /// Each reader identity has separate indexes: the number of candidates in a shared one would reveal values of documents that
    /// the reader may not read.
    struct Key: Hashable {
        let field: FieldPath
        /// Nil where all readers are alike.
        let reader: CollectionReader?
    }

    private let field: FieldPath
    private let mayRead: @Sendable (Document) -> Bool
    private var included = SlotSet()
    private var slots: [JSONValue: Set<Int>] = [:]
    /// Documents before this slot are indexed.
    private var next = 0
    private(set) var isComplete = false

    init(_ field: FieldPath, mayRead: @escaping @Sendable (Document) -> Bool) {
        self.field = field
        self.mayRead = mayRead
    }

    /// Indexes documents until the time is up; returns true when all are indexed.
    mutating func continueIndexing(_ rows: DocumentRows, _ slice: inout ScanSlice) -> Bool {
        while !isComplete {
            guard next < rows.slots.count else {
                isComplete = true
                break
            }
            let readable = rows.slots[next].flatMap { mayRead($0.document) ? $0 : nil }
            if let readable { insert(readable, next) }
            next += 1
            if slice.isOver(after: readable) { return isComplete }
        }
        return true
    }

    mutating func apply(_ change: DocumentRows.Change) {
        guard isComplete || change.slot < next else { return }
        if let before = change.before, included.remove(change.slot) {
            let value = value(before)
            slots[value]?.remove(change.slot)
            if slots[value]?.isEmpty == true { slots[value] = nil }
        }
        if let after = change.after, mayRead(after.document) { insert(after, change.slot) }
    }

    private mutating func insert(_ row: DocumentRow, _ slot: Int) {
        slots[value(row), default: []].insert(slot)
        included.insert(slot)
    }

    private func value(_ row: DocumentRow) -> JSONValue { JSONOrder.identity(field.value(in: row.document)) }

    /// Returns the slots of documents with one of these values, sorted.
    func slots(of values: [JSONValue]) -> [Int] {
        values.count == 1
            ? (slots[values[0]] ?? []).sorted() : values.reduce(into: Set()) { $0.formUnion(slots[$1] ?? []) }.sorted()
    }
}
