internal import TrebuchetWire

/// A document as of one write, as an element of results.
struct DocumentRow: Sendable {
    let document: Document

    /// The member names and the numbers.
    private static let overhead = 192
    /// The bytes that count as a step of a time slice.
    fileprivate static let bytesOfStep = 4 << 10

    init(_ document: Document) { self.document = document }

    /// Its approximate number of bytes in a result.
    var byteCount: Int {
        let texts = document.withMembers { members in
            2 * JSONString.byteCount(members.id) + (members.creator.map { JSONString.byteCount($0) } ?? 0)
        }
        return Self.overhead + document.fields.byteCount + texts
    }
}

/// All documents of a collection, each with a fixed index. So a scan in several parts knows which changes are still ahead.
struct DocumentRows {
    /// A document before and after a change.
    struct Change {
        let slot: Int
        let before: DocumentRow?
        let after: DocumentRow?
    }

    private(set) var slots: [DocumentRow?] = []
    private var free: [Int] = []
    private var index = DocumentIndex()

    init(_ documents: some Collection<Document>) {
        // In the order of creation; then most lists are built by appending.
        let unordered = [Document](documents)
        var order = unordered.indices.map { (created: unordered[$0].creationRevision, place: $0) }
        order.sort { one, other in
            one.created == other.created
                ? unordered[one.place].id < unordered[other.place].id : one.created < other.created
        }
        slots.reserveCapacity(order.count)
        index = DocumentIndex(capacity: order.count)
        for (_, place) in order { append(unordered[place]) }
    }

    var count: Int { index.count }

    private mutating func append(_ document: Document) {
        slots.append(DocumentRow(document))
        insert(slots.count - 1, document.idHash)
    }

    private mutating func insert(_ slot: Int, _ hash: Int) {
        index.insert(slot, hash) { slots[$0]?.document.idHash ?? 0 }
    }

    /// Applies a change; nil when the document did not and does not exist.
    mutating func apply(_ change: DocumentChange) -> Change? {
        let hash = DocumentIndex.hash(change.id)
        var text = change.id.text
        let place = text.withUTF8 { id in
            index.place(hash) { slots[$0]?.document.hasID(UnsafeRawBufferPointer(id)) ?? false }
        }
        let before = place.flatMap { slots[$0] }
        guard let document = change.after else {
            guard let place else { return nil }
            index.remove(place, hash) { slots[$0]?.document.idHash ?? 0 }
            slots[place] = nil
            free.append(place)
            return Change(slot: place, before: before, after: nil)
        }
        let slot = place ?? newSlot()
        let after = DocumentRow(document)
        slots[slot] = after
        if place == nil { insert(slot, hash) }
        return Change(slot: slot, before: before, after: after)
    }

    private mutating func newSlot() -> Int {
        if let slot = free.popLast() { return slot }
        slots.append(nil)
        return slots.count - 1
    }
}

extension ScanSlice {
    /// Returns whether the slice has ended; called once for each scanned document, with nil for an empty slot. A large document
    /// counts as several steps.
    mutating func isOver(after row: DocumentRow?) -> Bool {
        isOver(afterSteps: 1 + (row?.byteCount ?? 0) / DocumentRow.bytesOfStep)
    }
}
