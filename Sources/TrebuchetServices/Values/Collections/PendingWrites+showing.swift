internal import Trebuchet

/// What a result looks like with the writes that are not in it yet.
extension PendingWrites {
    /// Behind all documents that the server has created.
    private static let createdHere = 1 << 60

    /// The documents of a result as they will be when the writes are done. The result itself stays as the server sent it: so
    /// a newer one never undoes a write that waits, and a refused write leaves nothing behind.
    ///
    /// - Parameters:
    ///   - revision: of the last write that is in the result; nil when there is no result yet.
    ///   - hasMore: whether more documents match behind those of the result. One that is new and stands behind all of these is then
    ///     not shown: others, that are not known here, stand before it.
    ///   - kept: documents in place of those of the result, which may have writes already that wait for their answers.
    func show(
        over documents: KeyedCollection<Document>, _ query: CollectionQuery, seen revision: Int?,
        hasMore: Bool = false, kept: [DocumentID: Document?] = [:]
    ) -> [Document] {
        var touched: [DocumentID: Document?] = [:]
        for entry in entries where entry.revision.map({ $0 > revision ?? 0 }) ?? true {
            let isAnswered = entry.revision != nil
            Self.perform(entry, on: &touched, leavingOut: { isAnswered && kept[$0] != nil }) {
                kept[$0] ?? documents[id: $0]
            }
        }
        guard !touched.isEmpty else { return Array(documents) }
        let start = try? query.start
        let last = hasMore ? documents.last : nil
        var shown = documents.filter { touched[$0.id] == nil }
        for case let document? in touched.values where query.matches(document) {
            guard start?.precedes(document, in: query.order) ?? true else { continue }
            if let last, !documents.contains(id: document.id), query.precedes(last, document) { continue }
            let place = shown.partitioningIndex { !query.precedes($0, document) }
            shown.insert(document, at: place)
        }
        if let limit = query.limit, shown.count > limit { shown.removeLast(shown.count - limit) }
        return shown
    }

    /// A document of a result with the writes that have their answers and are not in it: without those that wait for them.
    func answered(_ id: DocumentID, over documents: KeyedCollection<Document>, seen revision: Int?) -> Document? {
        var touched: [DocumentID: Document?] = [:]
        for entry in entries where entry.revision.map({ $0 > revision ?? 0 }) ?? false {
            Self.perform(entry, on: &touched, leavingOut: { $0 != id }) { documents[id: $0] }
        }
        return touched[id] ?? documents[id: id]
    }

    /// What cannot be done is left out, with all that belongs together: the server may have done it, and the answer not be here.
    private static func perform(
        _ entry: Entry, on touched: inout [DocumentID: Document?], leavingOut isLeftOut: (DocumentID) -> Bool,
        _ document: (DocumentID) -> Document?
    ) {
        let number = createdHere + entry.mutation.number
        let context = CommandContext(number: number, time: entry.madeAt ?? 0)
        var changed: [DocumentID: Document?] = [:]
        for write in entry.mutation.writes {
            let id = write.command.id
            guard !isLeftOut(id) else { continue }
            let before = changed[id] ?? touched[id] ?? document(id)
            guard write.condition.map({ $0.holds(for: before) }) ?? true,
                var after = try? Optional.some(write.command.perform(on: before, context))
            else { return }
            if after != before {
                after?.revision = number
                after?.updatedAt = context.time
            }
            changed[id] = .some(after)
        }
        for (id, document) in changed { touched[id] = .some(document) }
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
