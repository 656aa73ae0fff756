internal import TrebuchetClient

/// The rendering of a result with the pending writes that it does not include.
extension PendingWrites {
    /// Sorts after all documents that the server has created.
    private static let createdHere = 1 << 60

    /// Returns the documents of a result with the pending writes applied. The result itself stays as the server sent it: a
    /// newer result never undoes a pending write, and a refused write leaves no trace.
    ///
    /// - Parameters:
    ///   - revision: the revision of the last write that the result includes; nil without a result.
    ///   - hasMore: true when more documents match after those of the result. A new document that would be last is not shown
    ///     then, because unknown documents come before it.
    ///   - uncertain: replacements for documents of the result, which may include writes without a response.
    func apply(
        over documents: KeyedCollection<Document>, _ query: CollectionQuery, seen revision: Int?,
        hasMore: Bool = false, uncertain: [DocumentID: Document?] = [:]
    ) -> [Document] {
        var touched: [DocumentID: Document?] = [:]
        for entry in entries where entry.revision.map({ $0 > revision ?? 0 }) ?? true {
            let isAnswered = entry.revision != nil
            Self.perform(entry, on: &touched, excluding: { isAnswered && uncertain[$0] != nil }) {
                uncertain[$0] ?? documents[id: $0]
            }
        }
        guard !touched.isEmpty else { return Array(documents) }
        let start = try? query.start
        let last = hasMore ? documents.last : nil
        var shown = documents.filter { touched[$0.id] == nil }
        for case let document? in touched.values where query.matches(document) {
            guard start?.precedes(document, in: query.order) ?? true else { continue }
            if let last, !documents.contains(id: document.id), query.precedes(last, document) { continue }
            let index = shown.partitioningIndex { !query.precedes($0, document) }
            shown.insert(document, at: index)
        }
        if let limit = query.limit, shown.count > limit { shown.removeLast(shown.count - limit) }
        return shown
    }

    /// Returns a document of a result with the confirmed writes that it does not include, and without unconfirmed writes.
    func answered(_ id: DocumentID, over documents: KeyedCollection<Document>, seen revision: Int?) -> Document? {
        var touched: [DocumentID: Document?] = [:]
        for entry in entries where entry.revision.map({ $0 > revision ?? 0 }) ?? false {
            Self.perform(entry, on: &touched, excluding: { $0 != id }) { documents[id: $0] }
        }
        return touched[id] ?? documents[id: id]
    }

    /// Skips an entry that cannot be applied as a whole: the server may have executed it, and the response may be on its way.
    private static func perform(
        _ entry: Entry, on touched: inout [DocumentID: Document?], excluding isExcluded: (DocumentID) -> Bool,
        _ document: (DocumentID) -> Document?
    ) {
        let number = createdHere + entry.mutation.number
        let context = CommandContext(number: number, time: entry.madeAt ?? 0)
        var changed: [DocumentID: Document?] = [:]
        for write in entry.mutation.writes {
            let id = write.command.id
            guard !isExcluded(id) else { continue }
            let before = changed[id] ?? touched[id] ?? document(id)
            guard write.condition.map({ $0.isSatisfied(by: before) }) ?? true,
                var after = try? Optional.some(write.command.perform(on: before, context))
            else { return }
            if after != before {
                after?.revision = number
                after?.updatedMilliseconds = context.time
            }
            changed[id] = .some(after)
        }
        for (id, document) in changed { touched[id] = .some(document) }
    }
}

extension Array {
    /// Returns the first index for which the condition holds, by binary search; it must hold for all later ones.
    fileprivate func partitioningIndex(_ holds: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if holds(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
