internal import Trebuchet

/// Where the log of a collection stands in the store.
struct LogPlace: Sendable {
    /// A log is never too long by less, in bytes: what is written anew for less costs more than it saves.
    static let least = 64 << 10

    /// Of the life of the log; new with each one that does not go on with what the store has.
    var epoch = ""
    /// Of the last entry, or of the snapshot.
    var number: UInt64 = 0
    /// Whether the next entry goes on with what the store has.
    var isBegun = false
    /// How many documents the store says that there are; nil when it does not.
    var documents: Int?
    var snapshotBytes = 0
    var entryBytes = 0
    /// Of the snapshot, what is about clients.
    var clientBytes = 0
    /// No snapshot is written before the log has more: the last one failed.
    var mostBytes = 0

    /// A log that begins here, under a number that no other one has.
    static func new() -> LogPlace {
        LogPlace(
            epoch: String(UInt64.random(in: .min ... .max), radix: 36), number: .random(in: 1...(1 << 32)),
            isBegun: true)
    }

    var byteCount: Int { snapshotBytes + entryBytes }

    /// Whether a new snapshot would have less than half of the bytes.
    ///
    /// - Parameter documentBytes: of all documents now.
    func isOutweighed(by documentBytes: Int) -> Bool {
        byteCount > 2 * (documentBytes + clientBytes) + Self.least && byteCount > mostBytes
    }
}
