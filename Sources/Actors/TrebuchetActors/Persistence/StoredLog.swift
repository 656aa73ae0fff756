/// A change in a log, from the version `baseVersion` to the version `version`.
public struct LogEntry: Equatable, Sendable {
    /// The number of the resulting version; larger than `baseVersion`, but not always by one.
    public let version: UInt64
    /// The number of the version before the change: that of the previous entry or of the snapshot.
    public let baseVersion: UInt64
    /// The content, which is opaque to a store.
    public let bytes: [UInt8]

    /// Creates an entry.
    ///
    /// - Parameters:
    ///   - version: the number of the resulting version.
    ///   - baseVersion: the number of the version before the change.
    ///   - bytes: the change.
    public init(version: UInt64, baseVersion: UInt64, bytes: [UInt8]) {
        self.version = version
        self.baseVersion = baseVersion
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
    public let version: UInt64
    /// The number of parts with this version number that were written before, with indices from 0. They precede `bytes`.
    public let partCount: Int
    /// The value, or its end.
    public let bytes: [UInt8]

    /// Creates a snapshot.
    ///
    /// - Parameters:
    ///   - epoch: the epoch of the log incarnation.
    ///   - version: the number of the version.
    ///   - partCount: the number of parts that were written before. If one of them is missing, the write fails with `conflict`.
    ///   - bytes: the value, or the rest after the parts.
    public init(epoch: String, version: UInt64, partCount: Int = 0, bytes: [UInt8]) {
        self.epoch = epoch
        self.version = version
        self.partCount = partCount
        self.bytes = bytes
    }
}

/// The content of a log: a whole value, and the changes since then.
public struct StoredLog: Equatable, Sendable {
    /// The whole value, with `partCount` 0.
    public let snapshot: LogSnapshot
    /// The changes since then, in order; the base of each is the number of the previous one.
    public let entries: [LogEntry]
    /// The incarnations before the snapshot's epoch, the oldest first. A subscriber with a version of one of them that the log
    /// contains resumes from there.
    public let earlierIncarnations: [StreamIncarnation]
    /// The retained changes before the snapshot, in order; the last one leads to it.
    package let earlierEntries: [LogEntry]

    /// Creates a stored log.
    ///
    /// - Parameters:
    ///   - snapshot: the whole value, with `partCount` 0.
    ///   - entries: the changes since then.
    ///   - earlierIncarnations: the incarnations before the snapshot's epoch; empty if each process that continues a log has the complete
    ///     log of the previous one.
    public init(snapshot: LogSnapshot, entries: [LogEntry], earlierIncarnations: [StreamIncarnation] = []) {
        self.snapshot = snapshot
        self.entries = entries
        self.earlierIncarnations = earlierIncarnations
        earlierEntries = []
    }

    package init(
        snapshot: LogSnapshot, entries: [LogEntry], earlierIncarnations: [StreamIncarnation], earlierEntries: [LogEntry]
    ) {
        self.snapshot = snapshot
        self.entries = entries
        self.earlierIncarnations = earlierIncarnations
        self.earlierEntries = earlierEntries
    }

    /// Returns whether two logs are equal. Equality ignores compacted entries (`earlierEntries`).
    public static func == (one: StoredLog, other: StoredLog) -> Bool {
        one.snapshot == other.snapshot && one.entries == other.entries
            && one.earlierIncarnations == other.earlierIncarnations
    }

    /// The number of the newest version.
    public var lastVersion: UInt64 { entries.last?.version ?? snapshot.version }
}
