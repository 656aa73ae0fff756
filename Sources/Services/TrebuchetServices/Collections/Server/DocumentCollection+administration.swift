internal import Trebuchet

/// Operations of administrators on a collection, and reads for other collections.
extension DocumentCollection {
    /// Changes documents without the rules. Returns when the changes are in the store and readers have them.
    func change<Outcome: Sendable>(
        _ body: @Sendable (inout DocumentTable, _ now: Int) -> Outcome
    ) async throws(CollectionError) -> Outcome {
        guard !isClosed else { throw .closed }
        calls += 1
        defer { closeIfUnused() }
        if table.isBatchFull { try await waitUntilWritten(for: nil) }
        try checkOpen()
        updateLimits()
        let outcome = body(&table, host.clock.now())
        applyExpired()
        countDocuments()
        watchForExpiry()
        try await waitUntilWritten(for: nil)
        return outcome
    }

    /// Returns those of the documents that are in the store.
    func documents(_ ids: [DocumentID]) throws(CollectionError) -> [DocumentID: Document] {
        guard !isClosed else { throw .closed }
        calls += 1
        defer { closeIfUnused() }
        var found: [DocumentID: Document] = [:]
        for id in ids { found[id] = table.documents[id] }
        return found
    }

    /// Returns all documents of the store at one moment, including expired ones. They are not filtered here, because that is
    /// too much for a reactor.
    func contents() throws(CollectionError) -> DocumentMap {
        guard !isClosed else { throw .closed }
        calls += 1
        defer { closeIfUnused() }
        return table.documents
    }
}
