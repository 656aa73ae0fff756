internal import CSQLite
internal import Trebuchet

/// Reads a store, concurrently with the writer, which the write-ahead log allows. Created by the thread that opens the store, then used
/// only by the reader's thread.
final class SQLiteReader {
    private let connection: SQLiteConnection
    private let value: SQLiteStatement
    private let page: SQLiteStatement
    private let firstNamespace: SQLiteStatement
    private let nextNamespace: SQLiteStatement
    private let sum: SQLiteStatement
    private let sumOfLogs: SQLiteStatement
    private let sumOfChanges: SQLiteStatement
    let logs: LogReader

    /// Creates a reader.
    ///
    /// - Parameter generations: the generations with the current one, which the writer has begun.
    init(
        _ file: StoreFile, _ options: SQLiteStore.Options, _ generations: StoreGenerations
    ) throws(StateStoreError) {
        connection = try SQLiteConnection(file, busyTimeout: options.busyTimeout, wayToDisk: options.wayToDisk)
        try connection.execute("PRAGMA query_only = 1")
        value = try SQLiteStatement(
            "SELECT value, checksum FROM entries WHERE namespace = ? AND name = ?", connection)
        page = try SQLiteStatement(
            """
            SELECT name, value, checksum FROM entries WHERE namespace = ? AND name >= ? ORDER BY name
            """, connection)
        // One at a time: the index finds each, however many entries the previous one has.
        firstNamespace = try Self.namespace(">=", connection)
        nextNamespace = try Self.namespace(">", connection)
        let isWanted = "namespace = ? AND name >= ? AND substr(name, 1, length(?)) = ?"
        sum = try SQLiteStatement(
            "SELECT count(*), coalesce(sum(length(value)), 0) FROM entries WHERE \(isWanted)", connection)
        sumOfLogs = try SQLiteStatement(
            "SELECT count(*), coalesce(sum(size), 0) FROM logs WHERE \(isWanted)", connection)
        sumOfChanges = try SQLiteStatement(
            """
            SELECT 0, coalesce(sum(length(bytes)), 0) FROM logs CROSS JOIN log_entries
            ON log = entries AND log_entries.number > logs.number WHERE \(isWanted)
            """, connection)
        logs = try LogReader(connection, generations)
    }

    /// Prepares a query for the first namespace of values or logs that satisfies the comparison.
    private static func namespace(
        _ comparison: String, _ connection: SQLiteConnection
    ) throws(StateStoreError) -> SQLiteStatement {
        let tables = ["entries", "logs"].map { table in
            """
            SELECT (SELECT namespace FROM \(table) WHERE namespace \(comparison) ?1 ORDER BY namespace LIMIT 1) AS namespace
            """
        }
        return try SQLiteStatement(
            "SELECT min(namespace) FROM (\(tables.joined(separator: " UNION ALL ")))", connection)
    }

    func get(_ keys: [StateKey]) throws(StateStoreError) -> [StateKey: [UInt8]] {
        var found: [StateKey: [UInt8]] = [:]
        // In one transaction: a concurrent batch is visible as a whole or not at all.
        if keys.count > 1 { try connection.execute("BEGIN") }
        defer { if keys.count > 1 { try? connection.execute("COMMIT") } }
        for key in keys {
            defer { value.reset() }
            try value.bind(key.namespace, at: 0)
            try value.bind(key.name, at: 1)
            guard try value.step() else { continue }
            let bytes = Array(value.bytes(0))
            try verify(key, bytes, value.integer(1))
            found[key] = bytes
        }
        return found
    }

    func list(
        _ namespace: String, prefix: String, after: String?, limit: Int
    ) throws(StateStoreError) -> [StateEntry] {
        defer { page.reset() }
        let isBehindPrefix = after.map { prefix.utf8.lexicographicallyPrecedes($0.utf8) } ?? false
        try page.bind(namespace, at: 0)
        try page.bind(isBehindPrefix ? after ?? prefix : prefix, at: 1)
        var entries: [StateEntry] = []
        while entries.count < limit, try page.step() {
            let name = String(decoding: page.bytes(0), as: UTF8.self)
            // In byte order, all names with the prefix are adjacent.
            guard name.utf8.starts(with: prefix.utf8) else { break }
            if let after, name.utf8.elementsEqual(after.utf8) { continue }
            let entry = StateEntry(StateKey(namespace, name), Array(page.bytes(1)))
            try verify(entry.key, entry.value, page.integer(2))
            entries.append(entry)
        }
        return entries
    }

    func namespaces(prefix: String, after: String?, limit: Int) throws(StateStoreError) -> [String] {
        var names: [String] = []
        var last = after.flatMap { prefix.utf8.lexicographicallyPrecedes($0.utf8) ? $0 : nil }
        while names.count < limit {
            let statement = last == nil ? firstNamespace : nextNamespace
            defer { statement.reset() }
            try statement.bind(last ?? prefix, at: 0)
            guard try statement.step(), !statement.isNull(0) else { break }
            let name = statement.text(0)
            guard name.utf8.starts(with: prefix.utf8) else { break }
            names.append(name)
            last = name
        }
        return names
    }

    func usage(of namespace: String, prefix: String) throws(StateStoreError) -> StoreUsage {
        var usage = StoreUsage(entries: 0, bytes: 0)
        try connection.execute("BEGIN")
        defer { try? connection.execute("COMMIT") }
        for sum in [sum, sumOfLogs, sumOfChanges] {
            defer { sum.reset() }
            for (index, text) in [namespace, prefix, prefix, prefix].enumerated() { try sum.bind(text, at: index) }
            // A sum has one row, even without input rows.
            _ = try sum.step()
            usage.entries += sum.integer(0)
            usage.bytes += sum.integer(1)
        }
        return usage
    }

    private func verify(_ key: StateKey, _ bytes: [UInt8], _ checksum: Int) throws(StateStoreError) {
        try StoreSchema.verify(Checksum.of(key.namespace, key.name, bytes), checksum, connection.path, key)
    }
}
