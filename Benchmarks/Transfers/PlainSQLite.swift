import CSQLite
import Commands
import Platform

/// Executes the same transfers with SQLite's functions, without a server, a network or a call for each: the baseline of a
/// database in the same process.
struct PlainSQLite {
    /// The number of transfers in one transaction.
    static let transfersPerTransaction = 1_000

    let path: String
    let accounts: Int
    let seconds: Double

    /// Returns the transfers per second. Throws if the final total is wrong.
    func run() async throws -> Double {
        try await onThread { try measure() }
    }

    private func measure() throws -> Double {
        let database = try Database(path)
        try database.execute("PRAGMA journal_mode=WAL")
        try database.execute("PRAGMA synchronous=FULL")
        try database.execute("DROP TABLE IF EXISTS accounts")
        try database.execute("CREATE TABLE accounts(id INTEGER PRIMARY KEY, balance INTEGER)")
        let insert = try database.prepare("INSERT INTO accounts VALUES (?, ?)")
        let read = try database.prepare("SELECT balance FROM accounts WHERE id = ?")
        let write = try database.prepare("UPDATE accounts SET balance = ? WHERE id = ?")
        try database.execute("BEGIN IMMEDIATE")
        for id in 0..<accounts { _ = try insert.run(Int64(id), Int64(Bank.startingBalance)) }
        try database.execute("COMMIT")

        var random = RandomSource(seed: 1)
        var count = 0
        let start = MonotonicClock.now
        repeat {
            try database.execute("BEGIN IMMEDIATE")
            for _ in 0..<Self.transfersPerTransaction {
                let from = Int64.random(in: 0..<Int64(accounts), using: &random)
                let to = Int64.random(in: 0..<Int64(accounts), using: &random)
                let (payer, payee) = (try read.run(from), try read.run(to))
                guard payer >= 1 else { continue }
                // If an account pays itself, both are the same row.
                guard from != to else { continue }
                _ = try write.run(payer - 1, from)
                _ = try write.run(payee + 1, to)
            }
            try database.execute("COMMIT")
            count += Self.transfersPerTransaction
        } while MonotonicClock.seconds(since: start) < seconds
        let rate = Double(count) / MonotonicClock.seconds(since: start)
        let total = try database.prepare("SELECT sum(balance) FROM accounts").run()
        guard total == Int64(accounts * Bank.startingBalance) else {
            throw UsageError("SQLite: the total is \(total), not \(accounts * Bank.startingBalance)")
        }
        return rate
    }

    /// A database connection.
    private final class Database {
        private let handle: OpaquePointer

        init(_ path: String) throws {
            var opened: OpaquePointer?
            let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
            let result = sqlite3_open_v2(path, &opened, flags, nil)
            guard let opened, result == SQLITE_OK else {
                sqlite3_close_v2(opened)
                throw UsageError("\(path): \(String(cString: sqlite3_errstr(result)))")
            }
            handle = opened
        }

        /// SQLite closes it when the last of its statements is finalized.
        deinit { sqlite3_close_v2(handle) }

        func execute(_ sql: String) throws {
            guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw error }
        }

        func prepare(_ sql: String) throws -> Statement {
            var prepared: OpaquePointer?
            guard sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil) == SQLITE_OK,
                let prepared
            else { throw error }
            return Statement(prepared, of: self)
        }

        var error: UsageError { UsageError("SQLite alone: \(String(cString: sqlite3_errmsg(handle)))") }
    }

    /// A prepared statement.
    private final class Statement {
        private let handle: OpaquePointer
        private let database: Database

        init(_ handle: OpaquePointer, of database: Database) {
            self.handle = handle
            self.database = database
        }

        deinit { sqlite3_finalize(handle) }

        /// Runs the statement to its first row or its end. Returns the number of that row, or 0.
        func run(_ numbers: Int64...) throws -> Int64 {
            for (index, number) in numbers.enumerated() { sqlite3_bind_int64(handle, Int32(index + 1), number) }
            let result = sqlite3_step(handle)
            let number = result == SQLITE_ROW ? sqlite3_column_int64(handle, 0) : 0
            guard result == SQLITE_ROW || result == SQLITE_DONE else {
                sqlite3_reset(handle)
                throw database.error
            }
            sqlite3_reset(handle)
            return number
        }
    }
}
