internal import Trebuchet

/// The generations of a store: one for each time that its file was opened.
///
/// A file may have lost what clients have seen of it: a backup was restored, or the log lost its end with the power. The file itself cannot tell.
/// So each opening begins a generation with a random epoch, in which all logs begin another life, and the file knows up to which version
/// each earlier life led to what it has. A client of an earlier life resumes if the file has all that the client has seen.
/// Versions that were lost belong to a life, or to a part of one, that the file does not know.
struct StoreGenerations: Sendable {
    private struct Generation: Sendable {
        let number: UInt64
        let epoch: String

        func checksum() -> Int {
            var sum = Checksum()
            sum.add(number)
            sum.add(epoch)
            return sum.value
        }
    }

    /// Kept: the current one, and as many before as a log keeps lives.
    private static let most = LogLives.mostEarlier + 1

    /// The oldest first; the last one is current. Never empty.
    private let all: [Generation]

    /// The number of the current generation.
    var current: UInt64 { all[all.endIndex - 1].number }

    /// Begins the next generation, in a transaction.
    static func begin(_ connection: SQLiteConnection) throws(StateStoreError) -> StoreGenerations {
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

    private static func read(_ connection: SQLiteConnection) throws(StateStoreError) -> [Generation] {
        let row = try SQLiteStatement("SELECT number, checksum, epoch FROM generations ORDER BY number", connection)
        var all: [Generation] = []
        while try row.step() {
            let generation = Generation(number: row.number(0), epoch: row.text(2))
            guard generation.checksum() == row.integer(1) else {
                throw StateStoreError.damaged(
                    connection.path, "the checksum of its generation \(generation.number) is wrong")
            }
            all.append(generation)
        }
        return all
    }

    /// A log in its life of the current generation.
    ///
    /// - Parameter last: the number of its newest version.
    func resume(_ row: LogRow, at last: UInt64) -> LogRow {
        guard row.generation < current else { return row }
        var row = row
        // Clients may have seen it in each of them, also where nothing was written.
        for generation in all where generation.number > row.generation {
            row.lives.begin(generation.epoch, after: last)
        }
        row.generation = current
        return row
    }
}

extension LogLives {
    /// The lives before: for each its last version in eight bytes, the bytes of its epoch in one, and its epoch.
    var earlierBytes: [UInt8] {
        var bytes: [UInt8] = []
        for life in earlier {
            // An epoch of another store that is longer is forgotten.
            guard let count = UInt8(exactly: life.epoch.utf8.count) else { continue }
            withUnsafeBytes(of: life.last.littleEndian) { bytes += $0 }
            bytes.append(count)
            bytes += life.epoch.utf8
        }
        return bytes
    }

    /// Nil for other bytes.
    init?(_ current: String, earlierBytes bytes: UnsafeRawBufferPointer) {
        var earlier: [StreamLife] = []
        var place = 0
        while place < bytes.count {
            guard bytes.count - place >= 9 else { return nil }
            let last = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self))
            let end = place + 9 + Int(bytes[place + 8])
            guard end <= bytes.count else { return nil }
            earlier.append(StreamLife(epoch: String(decoding: bytes[place + 9..<end], as: UTF8.self), last: last))
            place = end
        }
        self.init(current, after: earlier)
    }
}
