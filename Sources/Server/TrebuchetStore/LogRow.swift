internal import Trebuchet

/// A row of the table of logs: the snapshot, and the numbers of its parts and entries.
///
/// Parts and entries contain a number instead of the log's name, so that their rows are small. A new number also hides
/// all released rows at once, so that they can be deleted later. No number is reused while it has rows.
struct LogRow: Equatable {
    /// The columns of `logs`.
    static let columns = columns()

    /// Returns the columns for a schema.
    ///
    /// - Parameter schema: the schema of the file. In schema 2 a log has no incarnations.
    static func columns(schema: Int = StoreSchema.version) -> String {
        "epoch, number, entries, snapshot, parts, size, \(schema < 3 ? "0, x''" : "generation, lives"), checksum"
    }

    /// The incarnation of the last write, and the earlier ones.
    var incarnations: LogIncarnations
    /// The generation of the store at the last write; 0 for a log of schema 2 that was not written since.
    var generation: UInt64
    /// The version of the snapshot. Entries up to it are released.
    var number: UInt64
    /// The number of its entries' rows.
    var entries: UInt64
    /// The number of its snapshot's rows.
    var snapshot: UInt64
    /// The number of the snapshot's parts.
    var parts: Int
    /// The size of the snapshot in bytes.
    var size: Int

    func checksum(_ key: StateKey) -> Int {
        var sum = Checksum()
        sum.update(with: key.namespace)
        sum.update(with: key.name)
        sum.update(with: incarnations.current)
        for number in [number, entries, snapshot, UInt64(bitPattern: Int64(parts)), UInt64(bitPattern: Int64(size))] {
            sum.update(with: number)
        }
        if generation > 0 {
            sum.update(with: generation)
            incarnations.earlierBytes.withUnsafeBytes { sum.update(with: $0) }
        }
        return sum.value
    }

    /// Reads a row whose columns from `first` on are those of `columns`.
    ///
    /// - Throws: `damaged`.
    init(_ row: SQLiteStatement, from first: Int32 = 0, of key: StateKey, in path: String) throws(StateStoreError) {
        guard let incarnations = LogIncarnations(row.text(first), earlierBytes: row.bytes(first + 7)) else {
            throw StateStoreError.damaged(path, "the incarnations of the log of '\(key)' are invalid")
        }
        self.incarnations = incarnations
        number = row.number(first + 1)
        entries = row.number(first + 2)
        snapshot = row.number(first + 3)
        parts = row.integer(first + 4)
        size = row.integer(first + 5)
        generation = row.number(first + 6)
        guard checksum(key) == row.integer(first + 8), parts >= 0, size >= 0 else {
            throw StateStoreError.damaged(path, "checksum mismatch in the log of '\(key)'")
        }
    }

    init(
        _ incarnations: LogIncarnations, in generation: UInt64, number: UInt64, entries: UInt64, snapshot: UInt64,
        parts: Int,
        size: Int
    ) {
        self.incarnations = incarnations
        self.generation = generation
        self.number = number
        self.entries = entries
        self.snapshot = snapshot
        self.parts = parts
        self.size = size
    }
}

/// An unfinished snapshot with the parts written so far.
struct UnfinishedSnapshot: Equatable {
    /// The version of the snapshot.
    var number: UInt64
    /// The number of its parts' rows.
    var snapshot: UInt64

    func checksum(_ key: StateKey) -> Int {
        var sum = Checksum()
        sum.update(with: key.namespace)
        sum.update(with: key.name)
        sum.update(with: number)
        sum.update(with: snapshot)
        return sum.value
    }

    init(number: UInt64, snapshot: UInt64) {
        self.number = number
        self.snapshot = snapshot
    }

    /// Reads a row whose columns from `first` on are number, snapshot and checksum.
    ///
    /// - Throws: `damaged`.
    init(_ row: SQLiteStatement, from first: Int32 = 0, of key: StateKey, in path: String) throws(StateStoreError) {
        number = row.number(first)
        snapshot = row.number(first + 1)
        guard checksum(key) == row.integer(first + 2) else {
            throw StateStoreError.damaged(path, "checksum mismatch in the pending snapshot of '\(key)'")
        }
    }
}

/// The tables of the parts and entries of logs.
enum LogChunkTables {
    /// The size of a part in bytes, when the store itself divides a snapshot.
    static let partSize = 256 << 10

    static func checksum(entry number: UInt64, base: UInt64, _ bytes: UnsafeRawBufferPointer, of log: UInt64) -> Int {
        Checksum.of(log, number, base, bytes: bytes)
    }

    static func checksum(part index: Int, _ bytes: UnsafeRawBufferPointer, of snapshot: UInt64) -> Int {
        Checksum.of(snapshot, UInt64(bitPattern: Int64(index)), bytes: bytes)
    }
}

extension StateStoreError {
    static func damaged(_ path: String, valueOf key: StateKey) -> Self {
        damaged(path, "checksum mismatch in '\(key)'")
    }

    static func damaged(_ path: String, entry number: UInt64, of key: StateKey) -> Self {
        damaged(path, "checksum mismatch in change \(number) of '\(key)'")
    }

    static func damaged(_ path: String, chain number: UInt64, base: UInt64, last: UInt64, of key: StateKey) -> Self {
        damaged(
            path, "change \(number) of '\(key)' follows \(base), but the preceding change is \(last)")
    }

    static func damaged(_ path: String, part index: Int, of key: StateKey) -> Self {
        damaged(path, "checksum mismatch in part \(index) of the snapshot of '\(key)'")
    }

    static func damaged(_ path: String, missingPart index: Int, of key: StateKey) -> Self {
        damaged(path, "part \(index) of the snapshot of '\(key)' is missing or superfluous")
    }

    static func damaged(_ path: String, size: Int, of key: StateKey) -> Self {
        damaged(path, "the snapshot of '\(key)' has the wrong size of \(size) bytes")
    }
}
