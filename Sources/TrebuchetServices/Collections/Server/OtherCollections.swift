internal import Platform
internal import Relays
internal import Synchronization
internal import Trebuchet
internal import TrebuchetActors

/// Documents of collections that other nodes own, as they are at the engine: for links that are checked.
///
/// A collection is read as a whole when it is first asked for, and then what has changed since.
final class OtherCollections: Sendable {
    /// Collections that are in memory for that.
    private static let most = 8

    /// `@unchecked Sendable`: touched by who holds the turn.
    private final class Seen: @unchecked Sendable {
        let turn = AsyncBinarySemaphore()
        var contents = CollectionContents()
        var number: UInt64?
        var place: PartitionSeen?
    }

    private let store: any PartitionedStore
    private let contents = Mutex<(seen: [String: Seen], order: LeastRecent<String>)>(([:], LeastRecent()))

    init(_ store: any PartitionedStore) { self.store = store }

    /// Those of these documents that there are, of one moment after this was called.
    func documents(
        _ ids: [DocumentID], of name: String, actor: String
    ) async throws -> [DocumentID: Document] {
        let seen = seen(name)
        await seen.turn.wait()
        do {
            try await bringUpToDate(seen, name, actor)
        } catch {
            (seen.contents, seen.number, seen.place) = (CollectionContents(), nil, nil)
            await seen.turn.signal()
            throw error
        }
        var found: [DocumentID: Document] = [:]
        for id in ids { found[id] = seen.contents.documents[id] }
        await seen.turn.signal()
        return found
    }

    private func seen(_ name: String) -> Seen {
        contents.withLock { contents in
            let seen = contents.seen[name] ?? Seen()
            contents.seen[name] = seen
            contents.order.use(name)
            if contents.seen.count > Self.most, let oldest = contents.order.first {
                contents.order.remove(oldest)
                contents.seen[oldest] = nil
            }
            return seen
        }
    }

    private func bringUpToDate(_ seen: Seen, _ name: String, _ actor: String) async throws {
        let key = StoredCollection.logKey(name, partition: actor)
        let look = try await store.look(at: key, after: seen.place)
        seen.place = look.seen
        switch look.found {
        case .entries(let entries):
            for entry in entries {
                guard entry.base == seen.number else {
                    throw StateStoreError(.conflict, "the log of '\(key)' went on elsewhere")
                }
                try await StoredCollection.read(entry.bytes, entry.number, of: key, into: &seen.contents)
                seen.number = entry.number
            }
        case .whole(let log):
            (seen.contents, seen.number) = (CollectionContents(), log?.last)
            guard let log else { return }
            try await StoredCollection.read(log.snapshot.bytes, log.snapshot.number, of: key, into: &seen.contents)
            for entry in log.entries {
                try await StoredCollection.read(entry.bytes, entry.number, of: key, into: &seen.contents)
            }
        }
    }
}
