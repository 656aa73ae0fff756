internal import Platform
internal import Bytes
internal import Trebuchet
internal import TrebuchetWire

/// A collection in the store: a namespace with its documents, what is remembered of its clients, and the count of its writes.
struct StoredCollection: Sendable {
    private static let pageSize = 1_000
    static let documents = "document/"
    private static let clients = "client/"
    /// The key of what `Head` is.
    private static let head = "revision"

    /// How far the collection's writes have come.
    private struct Head: Codable {
        let revision: Int
        let time: Int
        let secret: UInt64?

        init(revision: Int, time: Int, secret: UInt64?) {
            (self.revision, self.time, self.secret) = (revision, time, secret)
        }

        /// The number alone is what older servers wrote.
        init(from decoder: any Decoder) throws {
            if let revision = try? decoder.singleValueContainer().decode(Int.self) {
                self.init(revision: revision, time: 0, secret: nil)
                return
            }
            let members = try decoder.container(keyedBy: CodingKeys.self)
            self.init(
                revision: try members.decode(Int.self, forKey: .revision),
                time: try members.decode(Int.self, forKey: .time),
                secret: try members.decodeIfPresent(UInt64.self, forKey: .secret))
        }
    }

    let store: any StateStore
    private let name: String
    private var namespace: String { Self.namespace(name) }

    init(_ name: String, in store: any StateStore) {
        self.store = store
        self.name = name
    }

    static func namespace(_ collection: String) -> String { "collection.\(collection)" }

    /// - Parameter now: milliseconds since 1970: documents that have expired by then are not there.
    func load(
        _ limits: CollectionLimits, at server: TrebuchetServer, now: Int
    ) async throws(CollectionError) -> DocumentTable {
        do {
            try server.take(store, for: "collections")
            let documents = try await load(Document.self, Self.documents) { DocumentID($0) }
            let clients = try await load(MutationWindow.self, Self.clients) { ByteText($0) }
            let head = try await store.get(StateKey(namespace, Self.head)).map { try Self.decode(Head.self, $0) }
            return DocumentTable(
                name, limits: limits, documents: documents, clients: clients, revision: head?.revision ?? 0,
                time: head?.time ?? 0, secret: head?.secret, at: now)
        } catch let error as StateStoreError {
            throw .storeFailed("collection '\(namespace)' cannot be loaded: \(error)")
        } catch {
            // It shows what is stored, and who calls need not be who may see that.
            let reason = server.disclose(error, of: "loading collection '\(namespace)'")
            throw .storeFailed("collection '\(namespace)' cannot be loaded: \(reason)")
        }
    }

    /// Documents of this collection and others, as they are in the store.
    func documents(_ targets: Set<LinkTarget>) async throws(CollectionError) -> [LinkTarget: Document] {
        guard !targets.isEmpty else { return [:] }
        do {
            var keys: [LinkTarget: StateKey] = [:]
            for target in targets {
                keys[target] = StateKey(Self.namespace(target.collection), Self.documents + target.id.text)
            }
            let values = try await store.get(Array(keys.values))
            var documents: [LinkTarget: Document] = [:]
            for (target, key) in keys {
                if let value = values[key] { documents[target] = try Self.decode(Document.self, value) }
            }
            return documents
        } catch {
            throw .storeFailed("what is linked to cannot be looked up: \(error)")
        }
    }

    func write(_ batch: DocumentTable.Batch) async throws(CollectionError) {
        do {
            var writes: [StateWrite] = []
            for (id, unwritten) in batch.documents {
                let key = StateKey(namespace, Self.documents + id.text)
                writes.append(unwritten.document.map { .put($0.storedJSON, key) } ?? .delete(key))
            }
            for (client, window) in batch.clients { writes.append(try write(window, Self.clients + client.text)) }
            writes.append(try write(Head(revision: batch.revision, time: batch.time, secret: batch.secret), Self.head))
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
        try ValueCoder().encode(value, into: &buffer)
        return .put(Array(buffer.bytes), key)
    }

    private func load<Key: Hashable, Value: Decodable>(
        _ type: Value.Type, _ prefix: String, key: (String) -> Key
    ) async throws -> [Key: Value] {
        var values: [Key: Value] = [:]
        var last: String?
        while true {
            let page = try await store.list(namespace, prefix: prefix, after: last, limit: Self.pageSize)
            for entry in page {
                do {
                    let name = entry.key.name.dropFirst(bytes: prefix.utf8.count)
                    values[key(name)] = try Self.decode(type, entry.value)
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
        try bytes.withUnsafeBytes { try ValueCoder().decode(type, from: $0) }
    }
}
