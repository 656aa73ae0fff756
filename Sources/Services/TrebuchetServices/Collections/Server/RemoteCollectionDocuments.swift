internal import Platform
internal import Relays
internal import Synchronization
internal import Trebuchet
internal import TrebuchetActors

/// Reads documents of other nodes' collections in the coordination store, to check links.
///
/// The first read of a collection loads it as a whole; later reads load its changes.
final class RemoteCollectionDocuments: Sendable {
    /// The maximum number of collections in memory.
    private static let most = 8

    /// A collection as of the last read.
    private struct Replica {
        var contents = CollectionContents()
        var number: UInt64?
        var position: ActorLogPosition?
    }

    /// The replica of one collection.
    private final class LogView: Sendable {
        let readSemaphore = AsyncBinarySemaphore()
        /// The replica; empty while the holder of `readSemaphore` updates it, and after a failed read.
        private let replica = Mutex(Replica())

        func takeReplica() -> Replica {
            replica.withLock { replica in
                defer { replica = Replica() }
                return replica
            }
        }

        func setReplica(_ updated: Replica) { replica.withLock { $0 = updated } }
    }

    private let store: any PerActorStore
    private let contents = Mutex<(seen: [String: LogView], order: LRUOrder<String>)>(([:], LRUOrder()))

    init(_ store: any PerActorStore) { self.store = store }

    /// Returns those of the documents that exist, as of one moment after the call.
    func documents(
        _ ids: [DocumentID], of name: String, actor: String
    ) async throws -> [DocumentID: Document] {
        let seen = logView(of: name)
        await seen.readSemaphore.wait()
        var replica = seen.takeReplica()
        do {
            try await bringUpToDate(&replica, name, actor)
        } catch {
            await seen.readSemaphore.signal()
            throw error
        }
        var found: [DocumentID: Document] = [:]
        for id in ids { found[id] = replica.contents.documents[id] }
        seen.setReplica(replica)
        await seen.readSemaphore.signal()
        return found
    }

    private func logView(of name: String) -> LogView {
        contents.withLock { contents in
            let seen = contents.seen[name] ?? LogView()
            contents.seen[name] = seen
            contents.order.markUsed(name)
            if contents.seen.count > Self.most, let oldest = contents.order.first {
                contents.order.remove(oldest)
                contents.seen[oldest] = nil
            }
            return seen
        }
    }

    private func bringUpToDate(_ seen: inout Replica, _ name: String, _ actor: String) async throws {
        let key = StoredCollection.logKey(name, partition: actor)
        let read = try await store.readLog(at: key, after: seen.position)
        seen.position = read.seen
        switch read.found {
        case .entries(let entries):
            for entry in entries {
                guard entry.baseVersion == seen.number else {
                    throw StateStoreError(.conflict, "the log of '\(key)' was continued by another node")
                }
                try await StoredCollection.read(entry.bytes, entry.version, of: key, into: &seen.contents)
                seen.number = entry.version
            }
        case .complete(let log):
            (seen.contents, seen.number) = (CollectionContents(), log?.lastVersion)
            guard let log else { return }
            try await StoredCollection.read(log.snapshot.bytes, log.snapshot.version, of: key, into: &seen.contents)
            for entry in log.entries {
                try await StoredCollection.read(entry.bytes, entry.version, of: key, into: &seen.contents)
            }
        }
    }
}
