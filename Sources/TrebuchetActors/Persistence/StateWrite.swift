/// One of the writes that a store does together.
public struct StateWrite: Equatable, Sendable {
    /// What is done to the key. A key can have a value, a log, or both; neither knows of the other.
    public enum Operation: Equatable, Sendable {
        /// The value, in the place of one that was there.
        case put([UInt8])
        /// A key without a value stays as it is.
        case delete
        /// Behind the log's last entry, or the whole write fails with `conflict`.
        case append(LogEntry)
        /// A piece of a snapshot to come, which nobody sees until that comes. One of the same index takes its place; those
        /// of another number are let go of.
        case snapshotPart([UInt8], index: Int, number: UInt64)
        /// The whole value that the log begins with from now on. Earlier entries go, and those of another epoch.
        case snapshot(LogSnapshot)
        /// Lets go of the log; a key without one stays as it is.
        case deleteLog
    }

    /// What is written or deleted.
    public let key: StateKey
    /// What is done to it.
    public let operation: Operation
    /// What its partition was owned under when the actor that writes was loaded; nil where nobody else may own it. It is written while the
    /// partition is owned under the same alone: an actor that was loaded before another node had it knows nothing of what came since.
    package var ownership: UInt64?
    /// Changes that lead to a snapshot and may not be in the log, in order: for subscribers that are behind it. A store that nodes share
    /// keeps them, others ignore them.
    package var leading: [LogEntry] = []

    /// For those that have no function of their own below.
    public init(_ key: StateKey, _ operation: Operation) {
        self.key = key
        self.operation = operation
    }

    /// Writes the value, in the place of one that was there.
    public static func put(_ value: [UInt8], _ key: StateKey) -> Self { Self(key, .put(value)) }
    /// A key without a value stays as it is.
    public static func delete(_ key: StateKey) -> Self { Self(key, .delete) }
    /// Appends a change to the log of the key.
    public static func append(_ entry: LogEntry, _ key: StateKey) -> Self { Self(key, .append(entry)) }
    /// Begins the log of the key anew with a whole value, or lets its entries up to there go.
    public static func snapshot(_ snapshot: LogSnapshot, _ key: StateKey) -> Self { Self(key, .snapshot(snapshot)) }

    /// Bytes that it brings to the store, beside its key.
    public var byteCount: Int {
        switch operation {
        case .put(let value): value.count
        case .append(let entry): entry.bytes.count
        case .snapshotPart(let bytes, _, _): bytes.count
        case .snapshot(let snapshot): leading.reduce(snapshot.bytes.count) { $0 + $1.bytes.count }
        case .delete, .deleteLog: 0
        }
    }
}
