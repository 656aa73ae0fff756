/// A change of one document; nil for one that is not there after.
struct DocumentChange: Sendable, Equatable {
    let id: Document.ID
    let after: Document?
}
