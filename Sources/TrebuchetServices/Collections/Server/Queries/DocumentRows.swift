internal import TrebuchetWire

/// A document as of one write, shared by all that finds it.
final class DocumentRow: Sendable {
    let document: Document
    /// Its place among all documents.
    let slot: Int
    /// About how many bytes it has in a result.
    let byteCount: Int

    /// The names of its members, and the numbers.
    private static let overhead = 192

    init(_ document: Document, slot: Int) {
        self.document = document
        self.slot = slot
        byteCount =
            Self.overhead + document.byteCount + JSONString.byteCount(document.id.text)
            + (document.creator.map { JSONString.byteCount($0) } ?? 0)
    }
}

/// All documents of a collection, each at a place that it keeps: so who goes through them a part at a time knows what of a change is
/// still ahead.
struct DocumentRows {
    private(set) var slots: [DocumentRow?] = []
    private var free: [Int] = []
    private var places: [Document.ID: Int] = [:]

    init(_ documents: some Collection<Document>) {
        slots.reserveCapacity(documents.count)
        places.reserveCapacity(documents.count)
        // As they were created: then most lists are made by appending.
        for document in documents.sorted(by: [QueryOrder]().precedes) {
            places[document.id] = slots.count
            slots.append(DocumentRow(document, slot: slots.count))
        }
    }

    var count: Int { places.count }

    /// What is there before and after a change.
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
