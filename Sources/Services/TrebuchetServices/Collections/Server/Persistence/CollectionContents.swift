internal import Platform

/// The contents of a collection in its store, as of one write.
struct CollectionContents: Sendable {
    var documents = DocumentMap()
    /// The recorded mutations of its clients.
    var clients: [ByteText: MutationDeduplicationWindow] = [:]
    /// The number of the last write.
    var revision = 0
    /// The time of that write, in milliseconds since 1970.
    var time = 0
    /// The key for identifiers of hosts; nil before the first write.
    var secret: UInt64?
    /// Returns the clients of a loaded collection, which takes a while; nil when `clients` has them.
    var copyClients: (@Sendable () -> [ByteText: MutationDeduplicationWindow])?

    /// The revision that a loaded collection continues from. After a restored backup, or a loss at the end of the store, no write
    /// may get the number of a lost write that clients have seen. A store without the collection may have lost all of it, so a new
    /// collection begins there too.
    ///
    /// It is greater than all numbers before this time, with fewer than 64 writes a millisecond since 2026 and a clock that was
    /// not set back.
    ///
    /// - Parameter now: milliseconds since 1970.
    func revision(loadedAt now: Int) -> Int {
        max(revision, (now - Self.firstMoment) * Self.revisionsPerMillisecond)
    }

    /// 2026-01-01, in milliseconds since 1970. With it a revision has 13 digits, and stays exact in JavaScript for 4,000 years.
    private static let firstMoment = 1_767_225_600_000
    private static let revisionsPerMillisecond = 64

    /// True without documents and recorded clients.
    var isEmpty: Bool { documents.isEmpty && clients.isEmpty && copyClients == nil }
    /// True when the collection has never had a write.
    var isNew: Bool { isEmpty && revision == 0 && secret == nil }
}

extension CollectionContents {
    private static let maximumExpected = 200_000

    /// Creates empty contents with room for a number of documents, but not for any number that a store may have.
    init(expecting documents: Int?) {
        self.init()
        self.documents.reserveCapacity(min(documents ?? 0, Self.maximumExpected))
    }
}
