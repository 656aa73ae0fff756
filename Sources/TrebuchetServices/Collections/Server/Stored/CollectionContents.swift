internal import Platform

/// All that a store has of a collection, as of one write.
struct CollectionContents: Sendable {
    var documents = DocumentMap()
    /// What is remembered of its clients.
    var clients: [ByteText: MutationWindow] = [:]
    /// The number of the last write.
    var revision = 0
    /// The time of that, in milliseconds since 1970.
    var time = 0
    /// Of what hosts are told from each other by; nil as long as there was no write.
    var secret: UInt64?

    /// Whether there are no documents, and nobody is remembered.
    var isEmpty: Bool { documents.isEmpty && clients.isEmpty }
    /// Whether nothing was ever written.
    var isNew: Bool { isEmpty && revision == 0 && secret == nil }
}
