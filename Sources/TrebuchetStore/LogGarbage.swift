internal import Trebuchet

/// Pieces of logs that nobody sees any more, deleted some at a time: a log may have let go of very many at once.
///
/// What waits is known in memory alone. When a store is opened it is found again: it is what no log refers to.
final class LogGarbage {
    enum Item: Equatable, Sendable {
        /// Entries up to a number.
        case entries(of: UInt64, through: UInt64)
        case parts(of: UInt64)
    }

    /// Rows of one transaction.
    static let slice = 1_000
    /// A part is a row of many pages.
    private static let rowsOfPart = 64

    private let entries: SQLiteStatement
    private let parts: SQLiteStatement
    private let connection: SQLiteConnection
    /// The last is next.
    private(set) var waiting: [Item]
    /// Of the transaction that is under way: what it lets go of, and how many of those that wait it has done.
    private var added: [Item] = []
    private var done = 0

    init(_ connection: SQLiteConnection, waiting: [Item]) throws(StateStoreError) {
        self.connection = connection
        self.waiting = waiting
        // SQLite need not know a limit of deletions.
        entries = try SQLiteStatement(
            """
            DELETE FROM log_entries WHERE log = ?1 AND number <= coalesce(
                (SELECT number FROM log_entries WHERE log = ?1 AND number <= ?2 ORDER BY number LIMIT 1 OFFSET ?3 - 1), ?2)
            """, connection)
        parts = try SQLiteStatement(
            """
            DELETE FROM log_parts WHERE snapshot = ?1 AND part <= coalesce(
                (SELECT part FROM log_parts WHERE snapshot = ?1 AND part <= ?2 ORDER BY part LIMIT 1 OFFSET ?3 - 1), ?2)
            """, connection)
    }

    var isEmpty: Bool { waiting.isEmpty }

    /// A mark to go back to.
    var count: Int { added.count }

    func add(_ item: Item) { added.append(item) }

    /// Takes back what was added behind a mark.
    func goBack(to count: Int) { added.removeLast(added.count - count) }

    /// Deletes at most so many rows, in the transaction that is under way.
    func sweep(rows: Int) throws(StateStoreError) {
        var left = rows
        while left > 0, done < waiting.count {
            let (statement, id, through, size) =
                switch waiting[waiting.count - 1 - done] {
                case .entries(let log, let through): (entries, log, through, 1)
                case .parts(let snapshot): (parts, snapshot, UInt64(Int64.max), Self.rowsOfPart)
                }
            let most = max(1, left / size)
            let count = try delete(most, statement, id, through)
            // One that has nothing more costs a look.
            left -= max(1, count * size)
            if count < most { done += 1 }
        }
    }

    private func delete(
        _ most: Int, _ statement: SQLiteStatement, _ id: UInt64, _ through: UInt64
    ) throws(StateStoreError) -> Int {
        try statement.bind(id, at: 0)
        try statement.bind(through, at: 1)
        try statement.bind(UInt64(most), at: 2)
        try statement.run()
        return connection.changes
    }

    /// The transaction is over.
    func end(isCommitted: Bool) {
        if isCommitted {
            waiting.removeLast(done)
            waiting += added
        }
        added = []
        done = 0
    }
}
