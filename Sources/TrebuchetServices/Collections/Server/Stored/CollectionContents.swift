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

    /// The revision that a collection continues from when it is loaded, so that no write gets the number of one that clients have seen and the store
    /// does not have: a backup was restored, or the store lost its end. A store without the collection may have lost all of it, so a
    /// new collection begins there too.
    ///
    /// It is behind all that were given before this time, at less than 64 writes a millisecond since 2026, as long as the clock was not set back.
    ///
    /// - Parameter now: milliseconds since 1970.
    func revision(loadedAt now: Int) -> Int {
        max(revision, (now - Self.firstMoment) * Self.revisionsPerMillisecond)
    }

    /// 2026-01-01, in milliseconds since 1970: with it a revision has 13 digits, and JavaScript can count on for 4,000 years.
    private static let firstMoment = 1_767_225_600_000
    private static let revisionsPerMillisecond = 64

    /// Whether there are no documents, and nobody is remembered.
    var isEmpty: Bool { documents.isEmpty && clients.isEmpty }
    /// Whether nothing was ever written.
    var isNew: Bool { isEmpty && revision == 0 && secret == nil }
}
