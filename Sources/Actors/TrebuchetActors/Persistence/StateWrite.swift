/// One of the writes that a store applies together.
public struct StateWrite: Equatable, Sendable {
    /// The operation on the key. A key can have a value, a log, or both; they are independent.
    public enum Operation: Equatable, Sendable {
        /// Sets the value, and replaces an existing one.
        case put([UInt8])
        /// Deletes the value; no effect without one.
        case delete
        /// Appends after the log's last entry. If it does not follow that entry, the whole write fails with `conflict`.
        case append(LogEntry)
        /// Stores a part of a later snapshot, which is not visible before that snapshot. It replaces a part with the same index
        /// and removes parts with other numbers.
        case snapshotPart([UInt8], index: Int, number: UInt64)
        /// Replaces the start of the log with this whole value. Earlier entries, and those of another epoch, are removed.
        case snapshot(LogSnapshot)
        /// Deletes the log; no effect without one.
        case deleteLog
    }

    /// The key to write or delete.
    public let key: StateKey
    /// The operation on the key.
    public let operation: Operation
    /// The ownership number of the partition when the writing actor was loaded; nil if no other node can own it. The write is
    /// applied only while the number is current, because an actor loaded before another node's ownership lacks the writes since
    /// then.
    package var ownership: UInt64?
    /// The changes that lead to a snapshot and may not be in the log, in order: for subscribers behind the snapshot. A store
    /// that nodes share keeps them, others ignore them.
    package var leading: [LogEntry] = []

    /// Creates a write. For operations without a function below.
    public init(_ key: StateKey, _ operation: Operation) {
        self.key = key
        self.operation = operation
    }

    /// Writes the value, and replaces an existing one.
    public static func put(_ value: [UInt8], _ key: StateKey) -> Self { Self(key, .put(value)) }
    /// Deletes the value; no effect without one.
    public static func delete(_ key: StateKey) -> Self { Self(key, .delete) }
    /// Appends a change to the log of the key.
    public static func append(_ entry: LogEntry, _ key: StateKey) -> Self { Self(key, .append(entry)) }
    /// Starts a new log of the key with a whole value, or removes its entries up to that version.
    public static func snapshot(_ snapshot: LogSnapshot, _ key: StateKey) -> Self { Self(key, .snapshot(snapshot)) }

    /// The number of bytes that it adds to the store, without its key.
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
