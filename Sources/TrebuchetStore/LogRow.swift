internal import Trebuchet

/// A log in the table of logs: its snapshot, and where its pieces are kept.
///
/// Pieces carry a number instead of the log's name, so that their rows are small, and so that all that a log lets go of is
/// unseen at once, by a new number, and can be deleted later. No number is used twice while there are pieces of it.
struct LogRow: Equatable {
    /// As in `logs`.
    static let columns = columns()

    /// - Parameter schema: of the file. In schema 2 a log has no lives.
    static func columns(schema: Int = StoreSchema.version) -> String {
        "epoch, number, entries, snapshot, parts, size, \(schema < 3 ? "0, x''" : "generation, lives"), checksum"
    }

    /// The life in which it was written last, and those before.
    var lives: LogLives
    /// The generation of the store in which that was; 0 for a log of schema 2 that was not written since.
    var generation: UInt64
    /// Of the snapshot; entries up to it are let go of.
    var number: UInt64
    /// What its entries are kept under.
    var entries: UInt64
    /// What the parts of its snapshot are kept under.
    var snapshot: UInt64
    /// How many there are.
    var parts: Int
    /// Bytes of the snapshot.
    var size: Int

    func checksum(_ key: StateKey) -> Int {
        var sum = Checksum()
        sum.add(key.namespace)
        sum.add(key.name)
        sum.add(lives.current)
        for number in [number, entries, snapshot, UInt64(bitPattern: Int64(parts)), UInt64(bitPattern: Int64(size))] {
            sum.add(number)
        }
        if generation > 0 {
            sum.add(generation)
            lives.earlierBytes.withUnsafeBytes { sum.add($0) }
        }
        return sum.value
    }

    /// From a row whose columns from `first` on are those of `columns`.
    ///
    /// - Throws: `damaged`.
    init(_ row: SQLiteStatement, from first: Int32 = 0, of key: StateKey, in path: String) throws(StateStoreError) {
        guard let lives = LogLives(row.text(first), earlierBytes: row.bytes(first + 7)) else {
            throw StateStoreError.damaged(path, "the lives of the log of '\(key)' are not what was written")
        }
        self.lives = lives
        number = row.number(first + 1)
        entries = row.number(first + 2)
        snapshot = row.number(first + 3)
        parts = row.integer(first + 4)
        size = row.integer(first + 5)
        generation = row.number(first + 6)
        guard checksum(key) == row.integer(first + 8), parts >= 0, size >= 0 else {
            throw StateStoreError.damaged(path, "the checksum of the log of '\(key)' is wrong")
        }
    }

    init(
        _ lives: LogLives, in generation: UInt64, number: UInt64, entries: UInt64, snapshot: UInt64, parts: Int,
        size: Int
    ) {
        self.lives = lives
        self.generation = generation
        self.number = number
        self.entries = entries
        self.snapshot = snapshot
        self.parts = parts
        self.size = size
    }
}

/// A snapshot to come, of which parts are there.
struct LogDraft: Equatable {
    /// Of the version that it will be.
    var number: UInt64
    /// What its parts are kept under.
    var snapshot: UInt64

    func checksum(_ key: StateKey) -> Int {
        var sum = Checksum()
        sum.add(key.namespace)
        sum.add(key.name)
        sum.add(number)
        sum.add(snapshot)
        return sum.value
    }

    init(number: UInt64, snapshot: UInt64) {
        self.number = number
        self.snapshot = snapshot
    }

    /// From a row whose columns from `first` on are number, snapshot and checksum.
    ///
    /// - Throws: `damaged`.
    init(_ row: SQLiteStatement, from first: Int32 = 0, of key: StateKey, in path: String) throws(StateStoreError) {
        number = row.number(first)
        snapshot = row.number(first + 1)
        guard checksum(key) == row.integer(first + 2) else {
            throw StateStoreError.damaged(path, "the checksum of the snapshot to come of '\(key)' is wrong")
        }
    }
}

/// The rows that the pieces of logs are in.
enum LogPieces {
    /// Bytes of one row, when the store itself divides a snapshot.
    static let partSize = 256 << 10

    static func checksum(entry number: UInt64, base: UInt64, _ bytes: UnsafeRawBufferPointer, of log: UInt64) -> Int {
        Checksum.of(log, number, base, bytes: bytes)
    }

    static func checksum(part index: Int, _ bytes: UnsafeRawBufferPointer, of snapshot: UInt64) -> Int {
        Checksum.of(snapshot, UInt64(bitPattern: Int64(index)), bytes: bytes)
    }
}

extension StateStoreError {
    static func damaged(_ path: String, entry number: UInt64, of key: StateKey) -> Self {
        damaged(path, "the checksum of the change \(number) of '\(key)' is wrong")
    }

    static func damaged(_ path: String, chain number: UInt64, base: UInt64, last: UInt64, of key: StateKey) -> Self {
        damaged(
            path, "the change \(number) of '\(key)' builds on \(base), and what comes before it is \(last)")
    }

    static func damaged(_ path: String, part index: Int, of key: StateKey) -> Self {
        damaged(path, "the checksum of part \(index) of the snapshot of '\(key)' is wrong")
    }

    static func damaged(_ path: String, missingPart index: Int, of key: StateKey) -> Self {
        damaged(path, "part \(index) of the snapshot of '\(key)' is missing, or one too many is there")
    }

    static func damaged(_ path: String, size: Int, of key: StateKey) -> Self {
        damaged(path, "the snapshot of '\(key)' has \(size) bytes, which is not what it should have")
    }
}
