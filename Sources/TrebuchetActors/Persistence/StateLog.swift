/// A change in a log: what leads from the version `base` to the version `number`.
public struct LogEntry: Equatable, Sendable {
    /// Of the version that it leads to; larger than `base`, not always by one.
    public let number: UInt64
    /// Of the version that it builds on: the number of the entry before, or of the snapshot.
    public let base: UInt64
    /// What the writer makes of it; a store does not look inside.
    public let bytes: [UInt8]

    /// - Parameters:
    ///   - number: of the version that it leads to.
    ///   - base: of the version that it builds on.
    ///   - bytes: the change.
    public init(number: UInt64, base: UInt64, bytes: [UInt8]) {
        self.number = number
        self.base = base
        self.bytes = bytes
    }
}

/// A whole value in a log.
///
/// In one write it has all its bytes. A large one is written in slices: parts first (`StateWrite.Operation.snapshotPart`),
/// in writes of their own, and then this with what is left.
public struct LogSnapshot: Equatable, Sendable {
    /// The life of the log: numbers can be compared within one.
    public let epoch: String
    /// Of the version that it is.
    public let number: UInt64
    /// Parts that were written before, from 0 on, of the same number: they come before `bytes`.
    public let parts: Int
    /// The value, or its end.
    public let bytes: [UInt8]

    /// - Parameters:
    ///   - epoch: the life of the log.
    ///   - number: of the version that it is.
    ///   - parts: that were written before. When one of them is missing the write fails with `conflict`.
    ///   - bytes: the value, or what comes behind the parts.
    public init(epoch: String, number: UInt64, parts: Int = 0, bytes: [UInt8]) {
        self.epoch = epoch
        self.number = number
        self.parts = parts
        self.bytes = bytes
    }
}

/// What a store has of a log: a whole value, and the changes since.
public struct StoredLog: Equatable, Sendable {
    /// Whole, with `parts` 0.
    public let snapshot: LogSnapshot
    /// The changes since, in order, each with the number of the one before as its base.
    public let entries: [LogEntry]
    /// The lives before that of the snapshot's epoch, the oldest first: who has seen a version of one of them that the log has goes on from
    /// there.
    public let earlier: [StreamLife]
    /// Changes before the snapshot that a store still has, in order, the last of which leads to it.
    package let passed: [LogEntry]

    /// - Parameters:
    ///   - snapshot: whole, with `parts` 0.
    ///   - entries: the changes since.
    ///   - earlier: lives before that of the snapshot's epoch; none where each process that goes on with a log has what the one before had.
    public init(snapshot: LogSnapshot, entries: [LogEntry], earlier: [StreamLife] = []) {
        self.snapshot = snapshot
        self.entries = entries
        self.earlier = earlier
        passed = []
    }

    package init(snapshot: LogSnapshot, entries: [LogEntry], earlier: [StreamLife], passed: [LogEntry]) {
        self.snapshot = snapshot
        self.entries = entries
        self.earlier = earlier
        self.passed = passed
    }

    /// Whether both say the same; what of what is over a store still has is no part of that.
    public static func == (one: StoredLog, other: StoredLog) -> Bool {
        one.snapshot == other.snapshot && one.entries == other.entries && one.earlier == other.earlier
    }

    /// The number of the newest version.
    public var last: UInt64 { entries.last?.number ?? snapshot.number }
}
