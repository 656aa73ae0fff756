internal import Trebuchet

/// What a result looks like with the writes that are not in it yet.
extension PendingWrites {
    /// Behind all documents that the server has created.
    private static let createdHere = 1 << 60

    /// The documents of a result as they will be when the writes are done. The result itself stays as the server sent it: so
    /// a newer one never undoes a write that waits, and a refused write leaves nothing behind.
    ///
    /// - Parameter revision: of the last write that is in the result; nil when there is no result yet.
    func show(over documents: KeyedCollection<Document>, _ query: CollectionQuery, seen revision: Int?) -> [Document] {
        var touched: [DocumentID: Document?] = [:]
        for entry in entries where entry.revision.map({ $0 > revision ?? 0 }) ?? true {
            let id = entry.mutation.command.id
            let before = touched[id] ?? documents[id: id]
            touched[id] = .some(Self.perform(entry.mutation, on: before))
        }
        guard !touched.isEmpty else { return Array(documents) }
        var shown = documents.filter { touched[$0.id] == nil }
        for case let document? in touched.values where query.matches(document) {
            let place = shown.partitioningIndex { !query.precedes($0, document) }
            shown.insert(document, at: place)
        }
        if let limit = query.limit, shown.count > limit { shown.removeLast(shown.count - limit) }
        return shown
    }

    private static func perform(_ mutation: DocumentMutation, on document: Document?) -> Document? {
        var document = document
        switch mutation.command {
        case .create(let id, let fields):
            // The server may have done it, and the answer not be here.
            return document ?? Document(id: id, fields: fields, created: createdHere + mutation.number)
        case .update(_, let fields): document?.set(fields)
        case .link(_, let field, let target): document?.setLink(true, field, target)
        case .unlink(_, let field, let target): document?.setLink(false, field, target)
        case .delete: return nil
        }
        return document
    }
}

extension Array {
    /// The first place for which the condition holds, in an array in which it holds for all behind one for which it does.
    fileprivate func partitioningIndex(_ holds: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if holds(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
