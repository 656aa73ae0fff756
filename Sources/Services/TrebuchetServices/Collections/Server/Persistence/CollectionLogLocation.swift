internal import Trebuchet

/// The position of a collection's log in the store.
struct CollectionLogLocation: Sendable {
    /// The minimum excess of a log in bytes that justifies a snapshot, because a smaller one costs more than it saves.
    static let least = 64 << 10

    /// The epoch of the log; a log that does not continue the store's contents has a new one.
    var epoch = ""
    /// The number of the last entry, or of the snapshot.
    var number: UInt64 = 0
    /// True when the next entry continues the store's contents.
    var isBegun = false
    /// The number of documents in the store's value; nil when it is unknown.
    var documents: Int?
    var snapshotBytes = 0
    var entryBytes = 0
    /// The bytes of the snapshot's lines about clients.
    var clientBytes = 0
    /// No snapshot is written until the log has more bytes, because the last one failed.
    var maximumBytes = 0

    /// Returns the position of a new log, with a random number that no other log has.
    static func new() -> CollectionLogLocation {
        CollectionLogLocation(
            epoch: String(UInt64.random(in: .min ... .max), radix: 36), number: .random(in: 1...(1 << 32)),
            isBegun: true)
    }

    var byteCount: Int { snapshotBytes + entryBytes }

    /// Returns whether a new snapshot would have less than half of the bytes.
    ///
    /// - Parameter documentBytes: the current bytes of all documents.
    func isSnapshotDue(by documentBytes: Int) -> Bool {
        byteCount > 2 * (documentBytes + clientBytes) + Self.least && byteCount > maximumBytes
    }
}
