internal import Platform
internal import Trebuchet
internal import TrebuchetActors

/// Collection operations for administrators.
extension CollectionHost {
    /// The number of documents that are deleted in one turn.
    private static let removedAtOnce = 500
    /// The number of collections that are read at once for links.
    private static let readAtOnce = 8

    /// Returns collections that have documents, sorted by the bytes of their names. When the store cannot list its contents,
    /// only active collections are returned.
    func summaries(after: String?, limit: Int) async throws -> [CollectionSummary] {
        guard let store = store as? any CatalogedStore else {
            return try await liveSummaries(after: after, limit: limit)
        }
        let prefix = StoredCollection.namespace("")
        var summaries: [CollectionSummary] = []
        var last = after.map { StoredCollection.namespace($0) }
        while summaries.count < limit {
            let page = try await store.namespaces(prefix: prefix, after: last, limit: limit)
            for namespace in page where summaries.count < limit {
                last = namespace
                let usage = try await StoredCollection.usage(of: namespace, in: store)
                guard usage.entries > 0 else { continue }
                let name = String(namespace.dropFirst(prefix.count))
                summaries.append(CollectionSummary(name: name, documents: usage.entries, bytes: usage.bytes))
            }
            guard page.count == limit else { break }
        }
        return summaries
    }

    private func liveSummaries(after: String?, limit: Int) async throws -> [CollectionSummary] {
        var summaries: [CollectionSummary] = []
        for (name, collection) in live.sorted(by: { $0.name.precedesInBytes($1.name) }) {
            guard after?.precedesInBytes(name) ?? true, summaries.count < limit else { continue }
            guard let contents = await collection.whenLocal({ try? $0.contents() }) ?? nil else { continue }
            let documents = unexpired(contents)
            guard !documents.isEmpty else { continue }
            let bytes = documents.reduce(0) { $0 + $1.byteCount }
            summaries.append(CollectionSummary(name: name, documents: documents.count, bytes: bytes))
        }
        return summaries
    }

    /// Returns all documents at one moment, in the order of their creation.
    func documents(of name: String) async throws -> [Document] {
        let contents = try await withCollection(name) { try $0.contents() }
        return unexpired(contents).sorted { $0.creationRevision < $1.creationRevision }
    }

    private func unexpired(_ documents: DocumentMap) -> [Document] {
        let now = clock.now()
        return documents.values.filter { !$0.isExpired(at: now) }
    }

    /// Deletes up to `limit` of the oldest documents.
    func removeOldest(_ limit: Int, from name: String) async throws -> Int {
        try await remove(documents(of: name).prefix(limit).map(\.id), from: name)
    }

    /// Deletes documents, in several parts.
    ///
    /// - Returns: the number of deleted documents.
    func remove(_ ids: [DocumentID], from name: String) async throws -> Int {
        var count = 0
        for start in stride(from: 0, to: ids.count, by: Self.removedAtOnce) {
            let part = ids[start..<min(start + Self.removedAtOnce, ids.count)]
            count += try await withCollection(name) { collection in
                let outcome = try await collection.change { table, now in
                    Result { () throws(CollectionError) in
                        var count = 0
                        for id in part where try table.delete(id, at: now) { count += 1 }
                        return count
                    }
                }
                return try outcome.get()
            }
        }
        return count
    }

    /// Restores documents in their order, up to the first that fails.
    func restore(_ documents: [Document], in name: String, replaces: Bool) async throws -> ImportOutcome {
        try await withCollection(name) { collection in
            try await collection.change { table, now in
                var outcome = ImportOutcome()
                for document in documents {
                    do throws(CollectionError) {
                        outcome.count(try table.restore(document, replaces: replaces, at: now))
                    } catch {
                        outcome.problem = "\(error)"
                        break
                    }
                }
                return outcome
            }
        }
    }

    /// Returns the beginning of the names of a collection's views. It contains the collection's name, so that views are in the
    /// same slot.
    func viewPrefix(_ collection: String) -> String { "\(CollectionView.prefix){\(Self.name)/\(collection)}/" }

    /// Returns documents as they are in the store; their collections are loaded for it, several at once.
    func documents(_ targets: Set<LinkTarget>) async throws(CollectionError) -> [LinkTarget: Document] {
        var waiting = Dictionary(grouping: targets, by: \.collection).filter { CollectionLimits.isName($0.key) }
        let result = await withTaskGroup(of: Result<[LinkTarget: Document], CollectionError>.self) { group in
            var (found, running): ([LinkTarget: Document], Int) = ([:], 0)
            while true {
                while running < Self.readAtOnce, let (name, targets) = waiting.popFirst() {
                    running += 1
                    group.addTask {
                        do throws(CollectionError) {
                            return .success(try await self.documents(targets, of: name))
                        } catch {
                            return .failure(error)
                        }
                    }
                }
                guard let part = await group.next() else { return Result<_, CollectionError>.success(found) }
                running -= 1
                switch part {
                case .success(let documents): found.merge(documents) { $1 }
                case .failure: return part
                }
            }
        }
        return try result.get()
    }

    /// Returns documents as they are now, and those of other nodes' collections as they were. A collection that has left the memory is
    /// loaded again: it may have changed before.
    func currentDocuments(
        _ found: [LinkTarget: Document]
    ) async throws(CollectionError) -> [LinkTarget: Document] {
        let own = found.keys.filter { remoteDocuments == nil || server?.owns("\(Self.name)/\($0.collection)") != false }
        guard !own.isEmpty else { return found }
        let current = try await documents(Set(own))
        var documents = found
        for target in own { documents[target] = current[target] }
        return documents
    }

    private func documents(
        _ targets: [LinkTarget], of name: String
    ) async throws(CollectionError) -> [LinkTarget: Document] {
        do {
            let ids = targets.map(\.id)
            let actor = "\(Self.name)/\(name)"
            let documents =
                if let remoteDocuments, server?.owns(actor) == false {
                    try await remoteDocuments.documents(ids, of: name, actor: actor)
                } else {
                    try await withCollection(name) { try $0.documents(ids) }
                }
            var found: [LinkTarget: Document] = [:]
            for target in targets { found[target] = documents[target.id] }
            return found
        } catch let error as CollectionError {
            throw error
        } catch  where Self.isOfOwnership(error) {
            // The commit was not executed, and the client repeats the call.
            throw .closed
        } catch {
            throw .storeFailed("reading the link target failed: \(error)")
        }
    }

    /// Returns true for an error of a collection that moves to another node, or whose lease is being renewed.
    private static func isOfOwnership(_ error: any Error) -> Bool {
        (error as? StateStoreError)?.isOfOwnership ?? ((error as? TrebuchetError)?.code == .unavailable)
    }

    /// A collection that is being deactivated is activated again.
    private func withCollection<Outcome: Sendable>(
        _ name: String, _ body: @Sendable (isolated DocumentCollection) async throws -> Outcome
    ) async throws -> Outcome {
        guard CollectionLimits.isName(name) else { throw CollectionError.invalidName }
        while true {
            guard let server,
                let collection = try await server.actor(DocumentCollection.self, named: "\(Self.name)/\(name)")
            else { throw CollectionError.closed }
            do {
                guard let outcome = try await collection.whenLocal(body) else { throw CollectionError.closed }
                return outcome
            } catch CollectionError.closed where server.status == .serving {
                try await Task.sleep(for: .milliseconds(1))
            }
        }
    }
}

/// A collection, as listed.
package struct CollectionSummary: Codable, Sendable, Equatable {
    package let name: String
    package let documents: Int
    /// The number of stored bytes.
    package let bytes: Int
}

/// The outcome of restoring documents.
package struct ImportOutcome: Codable, Sendable, Equatable {
    package var created = 0
    package var replaced = 0
    /// The number of documents that already existed.
    package var skipped = 0
    /// The reason why the next document failed; nil on success.
    package var problem: String?

    package init() {}

    /// The number of documents that were processed without a problem.
    package var done: Int { created + replaced + skipped }

    mutating func count(_ restored: DocumentTable.Restored) {
        switch restored {
        case .created: created += 1
        case .replaced: replaced += 1
        case .skipped: skipped += 1
        }
    }

    package mutating func merge(_ other: ImportOutcome) {
        created += other.created
        replaced += other.replaced
        skipped += other.skipped
        problem = other.problem
    }
}
