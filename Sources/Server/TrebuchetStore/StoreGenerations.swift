internal import Trebuchet

/// The generations of a store: one for each opening of its file.
///
/// A file may have lost data that clients have received: a backup was restored, or a loss of power removed the end of
/// the log. The file itself cannot detect this. So each opening begins a generation with a random epoch, in which all
/// logs begin another incarnation. For each earlier incarnation, the file stores its last version.
///
/// A client of an earlier incarnation resumes if the file has all versions that the client has received. Lost versions
/// belong to an incarnation, or to a part of one, that the file does not know.
struct StoreGenerations: Sendable {
    /// One opening of the file.
    private struct Generation: Sendable {
        let number: UInt64
        let epoch: String

        func checksum() -> Int {
            var sum = Checksum()
            sum.update(with: number)
            sum.update(with: epoch)
            return sum.value
        }
    }

    /// The number of stored generations: the current one, and as many before as a log has incarnations.
    private static let most = LogIncarnations.maximumEarlierIncarnations + 1

    /// The generations, the oldest first and the current one last. Never empty.
    private let all: [Generation]

    /// The number of the current generation.
    var current: UInt64 { all[all.endIndex - 1].number }

    /// Begins the next generation, in a transaction.
    static func startGeneration(_ connection: SQLiteConnection) throws(StateStoreError) -> StoreGenerations {
        var all = try read(connection)
        let next = Generation(number: (all.last?.number ?? 0) &+ 1, epoch: StreamEpoch.make(digits: 12))
        all = all.suffix(most - 1) + [next]
        let delete = try SQLiteStatement("DELETE FROM generations WHERE number < ?", connection)
        let insert = try SQLiteStatement(
            "INSERT INTO generations (number, checksum, epoch) VALUES (?, ?, ?)", connection)
        try connection.execute("BEGIN IMMEDIATE")
        do throws(StateStoreError) {
            try delete.bind(all[0].number, at: 0)
            try delete.run()
            try insert.bind(next.number, at: 0)
            try insert.bind(UInt64(next.checksum()), at: 1)
            try insert.bind(next.epoch, at: 2)
            try insert.run()
            try connection.execute("COMMIT")
        } catch {
            try? connection.execute("ROLLBACK")
            throw error
        }
        return StoreGenerations(all: all)
    }

    /// Checks the stored generations, and returns their newest number; 0 for a store that was never opened.
    static func check(_ connection: SQLiteConnection) throws(StateStoreError) -> UInt64 {
        try read(connection).last?.number ?? 0
    }

    private static func read(_ connection: SQLiteConnection) throws(StateStoreError) -> [Generation] {
        let row = try SQLiteStatement("SELECT number, checksum, epoch FROM generations ORDER BY number", connection)
        var all: [Generation] = []
        while try row.step() {
            let generation = Generation(number: row.number(0), epoch: row.text(2))
            guard generation.checksum() == row.integer(1) else {
                throw StateStoreError.damaged(
                    connection.path, "checksum mismatch in generation \(generation.number)")
            }
            all.append(generation)
        }
        return all
    }

    /// Returns a log in its incarnation of the current generation.
    ///
    /// - Parameter last: the number of its newest version.
    func resume(_ row: LogRow, at last: UInt64) -> LogRow {
        guard row.generation < current else { return row }
        var row = row
        // Clients may have received it in each of them, even without writes.
        for generation in all where generation.number > row.generation {
            row.incarnations.startIncarnation(generation.epoch, after: last)
        }
        row.generation = current
        return row
    }
}

extension LogIncarnations {
    /// The earlier incarnations: for each its last version in eight bytes, the length of its epoch in one, and its
    /// epoch.
    var earlierBytes: [UInt8] {
        var bytes: [UInt8] = []
        for incarnation in earlier {
            // A longer epoch, from another store, is dropped.
            guard let count = UInt8(exactly: incarnation.epoch.utf8.count) else { continue }
            withUnsafeBytes(of: incarnation.lastVersion.littleEndian) { bytes += $0 }
            bytes.append(count)
            bytes += incarnation.epoch.utf8
        }
        return bytes
    }

    /// Decodes incarnations; nil for invalid bytes.
    init?(_ current: String, earlierBytes bytes: UnsafeRawBufferPointer) {
        var earlier: [StreamIncarnation] = []
        var offset = 0
        while offset < bytes.count {
            guard bytes.count - offset >= 9 else { return nil }
            let last = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            let end = offset + 9 + Int(bytes[offset + 8])
            guard end <= bytes.count else { return nil }
            earlier.append(
                StreamIncarnation(epoch: String(decoding: bytes[offset + 9..<end], as: UTF8.self), lastVersion: last))
            offset = end
        }
        self.init(current, after: earlier)
    }
}
