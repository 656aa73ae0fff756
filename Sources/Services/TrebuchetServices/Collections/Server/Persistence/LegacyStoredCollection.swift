internal import Platform
internal import Trebuchet
internal import TrebuchetWire

/// The form of a collection before the log: one value for each document, and one for each client's recorded mutations.
struct LegacyStoredCollection: Sendable {
    private static let pageSize = 1_000
    static let documents = "document/"
    private static let clients = "client/"

    /// The number and time of the collection's last write.
    private struct Head: Decodable {
        private enum CodingKeys: CodingKey { case revision, time, secret }

        let revision: Int
        let time: Int
        let secret: UInt64?

        /// The oldest servers stored the number alone.
        init(from decoder: any Decoder) throws {
            if let revision = try? decoder.singleValueContainer().decode(Int.self) {
                (self.revision, time, secret) = (revision, 0, nil)
                return
            }
            let members = try decoder.container(keyedBy: CodingKeys.self)
            revision = try members.decode(Int.self, forKey: .revision)
            time = try members.decode(Int.self, forKey: .time)
            secret = try members.decodeIfPresent(UInt64.self, forKey: .secret)
        }
    }

    private let namespace: String
    private let store: any StateStore

    init(_ namespace: String, in store: any StateStore) {
        self.namespace = namespace
        self.store = store
    }

    /// Returns all contents; empty when the store never had the collection in this form.
    func contents() async throws -> CollectionContents {
        var contents = CollectionContents()
        try await eachPage(Self.documents) { id, value in contents.documents[DocumentID(id)] = try Document(json: value)
        }
        let coder = ValueCoder()
        try await eachPage(Self.clients) { name, value in
            contents.clients[ByteText(name)] = try value.withUnsafeBytes {
                try coder.decode(MutationDeduplicationWindow.self, from: $0)
            }
        }
        if let value = try await store.get(DocumentCount.key(namespace)) {
            let head = try value.withUnsafeBytes { try coder.decode(Head.self, from: $0) }
            (contents.revision, contents.time, contents.secret) = (head.revision, head.time, head.secret)
        }
        return contents
    }

    /// Deletes the values, some at a time. A failed deletion is repeated by the next call.
    func remove() async {
        for prefix in [Self.documents, Self.clients] {
            var isMore = true
            while isMore {
                guard
                    let page = try? await store.list(namespace, prefix: prefix, after: nil, limit: Self.pageSize),
                    !page.isEmpty, (try? await store.write(page.map { .delete($0.key) })) != nil
                else { break }
                isMore = page.count == Self.pageSize
            }
        }
    }

    private func eachPage(_ prefix: String, _ body: (String, [UInt8]) throws -> Void) async throws {
        var last: String?
        while true {
            let page = try await store.list(namespace, prefix: prefix, after: last, limit: Self.pageSize)
            for entry in page {
                do {
                    try body(entry.key.name.dropFirst(bytes: prefix.utf8.count), entry.value)
                } catch {
                    throw UnreadableStoredEntry(key: entry.key, reason: "\(error)")
                }
            }
            guard page.count == Self.pageSize else { return }
            last = page.last?.key.name
        }
    }
}

/// The error for stored data that cannot be decoded; for the log.
struct UnreadableStoredEntry: Error, CustomStringConvertible {
    let key: StateKey
    let reason: String

    var description: String { "\(key): \(reason)" }
}
