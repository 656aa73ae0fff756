/// A change in a log, from the version `base` to the version `number`.
public struct LogEntry: Equatable, Sendable {
    /// The number of the resulting version; larger than `base`, but not always by one.
    public let number: UInt64
    /// The number of the version before the change: that of the previous entry or of the snapshot.
    public let base: UInt64
    /// The content, which is opaque to a store.
    public let bytes: [UInt8]

    /// Creates an entry.
    ///
    /// - Parameters:
    ///   - number: the number of the resulting version.
    ///   - base: the number of the version before the change.
    ///   - bytes: the change.
    public init(number: UInt64, base: UInt64, bytes: [UInt8]) {
        self.number = number
        self.base = base
        self.bytes = bytes
    }
}

/// A whole value in a log.
///
/// In a single write it contains all bytes. A large one is written in slices: parts first
/// (`StateWrite.Operation.snapshotPart`), in separate writes, and then this with the rest.
public struct LogSnapshot: Equatable, Sendable {
    /// The epoch of the log incarnation: numbers are comparable within one epoch.
    public let epoch: String
    /// The number of the version.
    public let number: UInt64
    /// The number of parts with this version number that were written before, with indices from 0. They precede `bytes`.
    public let parts: Int
    /// The value, or its end.
    public let bytes: [UInt8]

    /// Creates a snapshot.
    ///
    /// - Parameters:
    ///   - epoch: the epoch of the log incarnation.
    ///   - number: the number of the version.
    ///   - parts: the number of parts that were written before. If one of them is missing, the write fails with `conflict`.
    ///   - bytes: the value, or the rest after the parts.
    public init(epoch: String, number: UInt64, parts: Int = 0, bytes: [UInt8]) {
        self.epoch = epoch
        self.number = number
        self.parts = parts
        self.bytes = bytes
    }
}

/// The content of a log: a whole value, and the changes since then.
public struct StoredLog: Equatable, Sendable {
    /// The whole value, with `parts` 0.
    public let snapshot: LogSnapshot
    /// The changes since then, in order; the base of each is the number of the previous one.
    public let entries: [LogEntry]
    /// The incarnations before the snapshot's epoch, the oldest first. A subscriber with a version of one of them that the log
    /// contains resumes from there.
    public let earlier: [StreamIncarnation]
    /// The retained changes before the snapshot, in order; the last one leads to it.
    package let passed: [LogEntry]

    /// Creates a stored log.
    ///
    /// - Parameters:
    ///   - snapshot: the whole value, with `parts` 0.
    ///   - entries: the changes since then.
    ///   - earlier: the incarnations before the snapshot's epoch; empty if each process that continues a log has the complete
    ///     log of the previous one.
    public init(snapshot: LogSnapshot, entries: [LogEntry], earlier: [StreamIncarnation] = []) {
        self.snapshot = snapshot
        self.entries = entries
        self.earlier = earlier
        passed = []
    }

    package init(snapshot: LogSnapshot, entries: [LogEntry], earlier: [StreamIncarnation], passed: [LogEntry]) {
        self.snapshot = snapshot
        self.entries = entries
        self.earlier = earlier
        self.passed = passed
    }

    /// Returns whether two logs are equal. Equality ignores compacted entries (`passed`).
    public static func == (one: StoredLog, other: StoredLog) -> Bool {
        one.snapshot == other.snapshot && one.entries == other.entries && one.earlier == other.earlier
    }

    /// The number of the newest version.
    public var last: UInt64 { entries.last?.number ?? snapshot.number }
}
