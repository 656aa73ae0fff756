internal import Bytes
internal import Trebuchet
internal import TrebuchetWire

/// A collection in the store: a namespace with its documents, what is remembered of its clients, and the count of its writes.
struct StoredCollection: Sendable {
    private static let pageSize = 1_000
    private static let documents = "document/"
    private static let clients = "client/"
    private static let revision = "revision"

    let store: any StateStore
    let namespace: String

    init(_ name: String, in store: any StateStore) {
        self.store = store
        namespace = "collection.\(name)"
    }

    func load(_ limits: CollectionLimits, at server: TrebuchetServer) async throws(CollectionError) -> DocumentTable {
        do {
            try server.take(store, for: "collections")
            let documents = try await load(Document.self, Self.documents)
            let clients = try await load(MutationWindow.self, Self.clients)
            let revision = try await store.get(StateKey(namespace, Self.revision)).map { try Self.decode(Int.self, $0) }
            return DocumentTable(limits: limits, documents: documents, clients: clients, revision: revision ?? 0)
        } catch let error as StateStoreError {
            throw .storeFailed("collection '\(namespace)' cannot be loaded: \(error)")
        } catch {
            // It shows what is stored, and who calls need not be who may see that.
            let reason = server.disclose(error, of: "loading collection '\(namespace)'")
            throw .storeFailed("collection '\(namespace)' cannot be loaded: \(reason)")
        }
    }

    func write(_ batch: DocumentTable.Batch) async throws(CollectionError) {
        do {
            var writes: [StateWrite] = []
            for (id, unwritten) in batch.documents {
                writes.append(try write(unwritten.document, Self.documents + id))
            }
            for (client, window) in batch.clients { writes.append(try write(window, Self.clients + client)) }
            writes.append(try write(batch.revision, Self.revision))
            try await store.write(writes)
        } catch {
            throw .storeFailed("\(error)")
        }
    }

    /// Nil deletes.
    private func write(_ value: (some Encodable)?, _ name: String) throws -> StateWrite {
        let key = StateKey(namespace, name)
        guard let value else { return .delete(key) }
        var buffer = ByteBuffer()
        try ValueCoder(version: .v3).encode(value, into: &buffer)
        return .put(Array(buffer.bytes), key)
    }

    private func load<Value: Decodable>(_ type: Value.Type, _ prefix: String) async throws -> [String: Value] {
        var values: [String: Value] = [:]
        var last: String?
        while true {
            let page = try await store.list(namespace, prefix: prefix, after: last, limit: Self.pageSize)
            for entry in page {
                do {
                    values[String(entry.key.name.dropFirst(prefix.count))] = try Self.decode(type, entry.value)
                } catch {
                    throw Unreadable(key: entry.key, reason: "\(error)")
                }
            }
            guard page.count == Self.pageSize else { return values }
            last = page.last?.key.name
        }
    }

    /// For the log.
    private struct Unreadable: Error, CustomStringConvertible {
        let key: StateKey
        let reason: String

        var description: String { "\(key): \(reason)" }
    }

    private static func decode<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8]) throws -> Value {
        try bytes.withUnsafeBytes { try ValueCoder(version: .v3).decode(type, from: $0) }
    }
}
