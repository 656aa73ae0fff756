internal import Trebuchet

/// Deletes unreferenced rows of logs, some at a time, because a log may release very many at once.
///
/// The queue exists only in memory. The opening of a store rebuilds it from the rows that no log refers to.
final class LogGarbageCollector {
    /// A range of unreferenced rows.
    enum Item: Equatable, Sendable {
        /// The entries up to a number.
        case entries(of: UInt64, through: UInt64)
        case parts(of: UInt64)
    }

    /// The maximum number of rows deleted in one transaction.
    static let slice = 1_000
    /// A part counts as this many rows, because it occupies many pages.
    private static let rowsOfPart = 64

    private let entries: SQLiteStatement
    private let parts: SQLiteStatement
    private let connection: SQLiteConnection
    /// The waiting items. The last one is next.
    private(set) var waiting: [Item]
    /// In the current transaction: the released items, and the number of waiting items that it has completed.
    private var added: [Item] = []
    private var done = 0

    init(_ connection: SQLiteConnection, waiting: [Item]) throws(StateStoreError) {
        self.connection = connection
        self.waiting = waiting
        // SQLite may be built without LIMIT for DELETE.
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

    /// The number of released items, to which `rollBack(to:)` can return.
    var count: Int { added.count }

    func addItem(_ item: Item) { added.append(item) }

    /// Removes the items added after a mark.
    func rollBack(to count: Int) { added.removeLast(added.count - count) }

    /// Deletes at most this many rows, in the current transaction.
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
            // An item without more rows costs a lookup.
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

    /// Ends the transaction.
    func endTransaction(isCommitted: Bool) {
        if isCommitted {
            waiting.removeLast(done)
            waiting += added
        }
        added = []
        done = 0
    }
}
