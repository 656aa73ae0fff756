internal import TrebuchetWire

/// A document as of one write, shared by all results that contain it.
final class DocumentRow: Sendable {
    let document: Document
    /// Its index among all documents.
    let slot: Int
    /// Its approximate number of bytes in a result.
    let byteCount: Int

    /// The member names and the numbers.
    private static let overhead = 192

    init(_ document: Document, slot: Int) {
        self.document = document
        self.slot = slot
        byteCount =
            Self.overhead + document.byteCount + JSONString.byteCount(document.id.text)
            + (document.creator.map { JSONString.byteCount($0) } ?? 0)
    }
}

/// All documents of a collection, each with a fixed index. So a scan in several parts knows which changes are still ahead.
struct DocumentRows {
    private(set) var slots: [DocumentRow?] = []
    private var free: [Int] = []
    private var places: [Document.ID: Int] = [:]

    init(_ documents: some Collection<Document>) {
        slots.reserveCapacity(documents.count)
        places.reserveCapacity(documents.count)
        // In the order of creation; then most lists are built by appending.
        for document in documents.sorted(by: [QueryOrder]().precedes) {
            places[document.id] = slots.count
            slots.append(DocumentRow(document, slot: slots.count))
        }
    }

    var count: Int { places.count }

    /// Applies a change; returns the rows before and after it.
    mutating func apply(_ change: DocumentChange) -> (before: DocumentRow?, after: DocumentRow?) {
        let place = places[change.id]
        let before = place.flatMap { slots[$0] }
        guard let document = change.after else {
            if let place {
                places[change.id] = nil
                slots[place] = nil
                free.append(place)
            }
            return (before, nil)
        }
        let slot = place ?? newSlot()
        let after = DocumentRow(document, slot: slot)
        slots[slot] = after
        places[change.id] = slot
        return (before, after)
    }

    private mutating func newSlot() -> Int {
        if let slot = free.popLast() { return slot }
        slots.append(nil)
        return slots.count - 1
    }
}
