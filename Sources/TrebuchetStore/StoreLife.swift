internal import Glibc
internal import Trebuchet

/// Whether a file is as the last process left it: else clients may have seen versions that it lacks, and numbers of its logs would
/// be used twice.
///
/// Each time a store is opened a new number goes into the file (`user_version`) and into the lock beside it. Where they differ the
/// file is a copy, or was put back from one. Where the machine has been started since, and transactions did not wait for the disk, some
/// may be gone. Then all logs begin new epochs, and clients that come back get whole values.
enum StoreLife {
    /// What the lock says behind the number of the process.
    private struct Note {
        let number: Int
        let outlastsPower: Bool
        let boot: String

        /// Nil for what is none.
        init?(_ words: [Substring]) {
            guard words.count == 3, let number = Int(words[0]) else { return nil }
            (self.number, outlastsPower, boot) = (number, words[1] == "full", String(words[2]))
        }
    }

    /// - Returns: whether the epochs of logs were kept.
    @discardableResult
    static func begin(
        _ connection: SQLiteConnection, _ file: StoreFile, _ options: SQLiteStore.Options
    ) throws(StateStoreError) -> Bool {
        let number = try connection.integer("PRAGMA user_version") ?? 0
        let boot = options.boot ?? bootID
        let isWhole =
            Note(file.note).map { note in
                number != 0 && note.number == number && (note.outlastsPower || !boot.isEmpty && note.boot == boot)
            } ?? false
        if !isWhole { try renewEpochs(connection) }
        let next = Int.random(in: 1...Int(Int32.max))
        try connection.execute("PRAGMA user_version = \(next)")
        let durability = options.durability == .powerLoss ? "full" : "normal"
        try file.write(note: "\(next) \(durability) \(boot)")
        return isWhole
    }

    private static func renewEpochs(_ connection: SQLiteConnection) throws(StateStoreError) {
        var logs: [(StateKey, LogRow)] = []
        do {
            let row = try SQLiteStatement("SELECT namespace, name, \(LogRow.columns) FROM logs", connection)
            while try row.step() {
                let key = StateKey(row.text(0), row.text(1))
                logs.append((key, try LogRow(row, from: 2, of: key, in: connection.path)))
            }
        }
        guard !logs.isEmpty else { return }
        let pieces = try LogStatements(connection)
        try connection.execute("BEGIN IMMEDIATE")
        do throws(StateStoreError) {
            for (key, var log) in logs {
                log.epoch = String(UInt64.random(in: 1 << 32..<2 << 32), radix: 16).suffix(8).description
                try pieces.put(log, key)
            }
            try connection.execute("COMMIT")
        } catch {
            try? connection.execute("ROLLBACK")
            throw error
        }
    }

    /// Another after each start of the machine; empty where that is not told.
    private static var bootID: String {
        let descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var text = [UInt8](repeating: 0, count: 64)
        let count = read(descriptor, &text, text.count)
        return String(decoding: text.prefix(max(0, count)).prefix { $0 > 0x20 }, as: UTF8.self)
    }
}
