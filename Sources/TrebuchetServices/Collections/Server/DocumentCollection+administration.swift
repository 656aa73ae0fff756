internal import Trebuchet

/// What an administrator does with a collection, and what others look up in it.
extension DocumentCollection {
    /// Changes documents past the rules; returns when that is in the store and shown to readers, as far as it was done.
    func change<Outcome: Sendable>(
        _ body: @Sendable (inout DocumentTable, _ now: Int) -> Outcome
    ) async throws(CollectionError) -> Outcome {
        guard !isClosed else { throw .closed }
        calls += 1
        defer { closeIfUnused() }
        if table.isBatchFull { try await written(for: nil) }
        try checkOpen()
        table.limits = host.limits(of: name)
        let outcome = body(&table, host.clock.now())
        showExpired()
        watchForExpiry()
        try await written(for: nil)
        return outcome
    }

    /// Those of these documents that are in the store.
    func documents(_ ids: [DocumentID]) throws(CollectionError) -> [DocumentID: Document] {
        guard !isClosed else { throw .closed }
        calls += 1
        defer { closeIfUnused() }
        var found: [DocumentID: Document] = [:]
        for id in ids { found[id] = table.documents[id] }
        return found
    }

    /// All documents as they are in the store at one moment, those that have expired too. So many are not gone through on a reactor.
    func contents() throws(CollectionError) -> DocumentMap {
        guard !isClosed else { throw .closed }
        calls += 1
        defer { closeIfUnused() }
        return table.documents
    }
}
