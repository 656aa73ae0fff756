internal import Platform
internal import Bytes
internal import TrebuchetWire

/// The stored result of a query, as of the last update from the server.
struct CachedQueryResult: Codable, Sendable {
    /// Identifies a stored result: each server, account, collection and query has a separate file.
    struct Key: Codable, Hashable, Sendable {
        let server: String
        /// The account, as in the name of its folder.
        let account: String
        let collection: String
        let query: CollectionQuery
    }

    let key: Key
    /// Seconds since 1970.
    let syncedAt: Double
    let revision: Int
    let documents: [Document]
    var count: Int?
    var hasMore: Bool?

    private static let digits = 16

    /// The content of a file: a line with a digest, then JSON.
    var bytes: [UInt8] {
        get throws {
            var buffer = ByteBuffer()
            try ValueCoder().encode(self, into: &buffer)
            return Array(Self.line(of: buffer.bytes).utf8) + Array(buffer.bytes)
        }
    }

    /// Returns nil for damaged content.
    init?(_ bytes: [UInt8]) {
        let read = bytes.withUnsafeBytes { bytes -> CachedQueryResult? in
            guard bytes.count > Self.digits else { return nil }
            let json = UnsafeRawBufferPointer(rebasing: bytes[(Self.digits + 1)...])
            guard bytes.prefix(Self.digits + 1).elementsEqual(Self.line(of: json).utf8) else { return nil }
            return try? ValueCoder().decode(CachedQueryResult.self, from: json)
        }
        guard let read else { return nil }
        self = read
    }

    init(
        key: Key, syncedAt: Double, revision: Int, documents: [Document], count: Int? = nil, hasMore: Bool? = nil
    ) {
        self.key = key
        self.syncedAt = syncedAt
        self.revision = revision
        self.documents = documents
        self.count = count
        self.hasMore = hasMore
    }

    private static func line(of json: UnsafeRawBufferPointer) -> String {
        var digest = StableDigest()
        digest.combine(json)
        let text = String(digest.value, radix: 16)
        return String(repeating: "0", count: digits - text.count) + text + "\n"
    }
}
