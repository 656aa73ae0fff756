internal import Trebuchet

/// A change of one document; nil for one that was not there before, or is not there after.
struct DocumentChange: Sendable, Equatable {
    let id: DocumentID
    let after: Document?
}

/// The documents that a query finds, kept in order as documents change, without looking at the others. Pure.
struct QueryView: Sendable {
    let query: CollectionQuery
    private let mayRead: @Sendable (Document) -> Bool
    /// All that match, those behind the limit too: they move up when others go.
    private var matching: [Document]
    private var byID: [DocumentID: Document]

    init(
        _ query: CollectionQuery, of documents: some Sequence<Document>,
        mayRead: @escaping @Sendable (Document) -> Bool = { _ in true }
    ) {
        self.query = query
        self.mayRead = mayRead
        matching = documents.filter { query.matches($0) && mayRead($0) }.sorted(by: query.precedes)
        byID = Dictionary(uniqueKeysWithValues: matching.map { ($0.id, $0) })
    }

    private var limit: Int { query.limit ?? .max }

    /// What the query's readers see.
    var shown: KeyedCollection<Document> { KeyedCollection(matching.prefix(limit)) }

    /// Brings a change into what is shown; false when nothing of that changes.
    mutating func apply(_ change: DocumentChange, to shown: inout KeyedCollection<Document>) -> Bool {
        let before = byID[change.id]
        let after = change.after.flatMap { query.matches($0) && mayRead($0) ? $0 : nil }
        guard before != after else { return false }
        byID[change.id] = after
        let from = before.map { place(of: $0) }
        if let from { matching.remove(at: from) }
        let to = after.map { place(of: $0) }
        if let to, let after { matching.insert(after, at: to) }
        return show(change.id, after, from: from ?? .max, to: to ?? .max, in: &shown)
    }

    private func show(
        _ id: DocumentID, _ after: Document?, from: Int, to: Int, in shown: inout KeyedCollection<Document>
    ) -> Bool {
        guard min(from, to) < limit else { return false }
        if let after, max(from, to) < limit {
            shown.update(id: id) { $0 = after }
            shown.move(id: id, to: to)
            return true
        }
        if from < limit {
            shown.remove(id: id)
            if matching.count >= limit { shown.append(matching[limit - 1]) }
        }
        if let after, to < limit {
            if shown.count == limit, let last = shown.last { shown.remove(id: last.id) }
            shown.insert(after, at: to)
        }
        return true
    }

    /// Where a document stands, or would.
    private func place(of document: Document) -> Int {
        var (low, high) = (0, matching.count)
        while low < high {
            let middle = (low + high) / 2
            if query.precedes(matching[middle], document) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
