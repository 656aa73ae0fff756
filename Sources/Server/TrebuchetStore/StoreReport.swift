internal import Glibc
package import Trebuchet

/// The content of a store's file and its damage, for operators. The file is only read, also while a server uses it.
package struct StoreReport: Sendable {
    /// The rows of the namespaces with a common beginning, up to the first dot: `states`, or `collection` for all collections.
    package struct Kind: Sendable {
        package let name: String
        /// The number of values.
        package var values = 0
        /// The number of logs: states, lists of events, collections.
        package var logs = 0
        /// The number of changes in the logs since their snapshots.
        package var changes = 0
        /// The size of values, snapshots and changes in bytes.
        package var bytes = 0
    }

    package let path: String
    /// The schema version of the file, and the newest one that this program supports.
    package let schema: Int
    package let supportedSchema = StoreSchema.version
    /// The size of the file in bytes, without its log.
    package let fileBytes: Int
    /// The size of the log `FILE-wal` in bytes; 0 without one.
    package let logBytes: Int
    /// The number of bytes in the file that new data will use first.
    package let freeBytes: Int
    /// The number of openings of the file.
    package let generation: UInt64
    /// The kinds of rows by name.
    package let kinds: [Kind]
    /// Descriptions of the damage: the first hundred.
    package let damage: [String]
    /// The number of all problems.
    package let damageCount: Int

    /// Reads and checks a whole file.
    ///
    /// - Parameter report: receives the progress in percent and the size of the file, each second.
    /// - Throws: `notAStore`, `newerSchema` or `damaged` for a file that is not readable at all; all other damage is in the report.
    package init(
        of path: String, onProgress report: @escaping @Sendable (_ percent: Int, _ bytes: Int) -> Void
    ) throws(StateStoreError) {
        try StoreFile.checkIsDatabase(path)
        let connection = try SQLiteConnection(reading: path, busyTimeout: .seconds(30))
        // One transaction, so that the writes of a server do not come between counts and checks.
        try connection.execute("BEGIN")
        self.path = path
        schema = try StoreSchema.recognize(connection)
        let pageSize = try connection.integer("PRAGMA page_size") ?? 4096
        fileBytes = Self.size(of: path)
        logBytes = Self.size(of: path + "-wal")
        freeBytes = (try connection.integer("PRAGMA freelist_count") ?? 0) * pageSize
        let damage = StoreDamageList()
        var options = SQLiteStore.Options()
        options.onProgress = { report($0.percent, $0.totalBytes) }
        try StoreIntegrityCheck.run(connection, schema: schema, options, isThorough: true, collecting: damage)
        func reading<Value>(_ other: Value, _ body: () throws(StateStoreError) -> Value) -> Value {
            do throws(StateStoreError) { return try body() } catch {
                damage.add(error.damage(of: path))
                return other
            }
        }
        let schema = schema
        generation = reading(0) { () throws(StateStoreError) in
            schema < 3 ? 0 : try StoreGenerations.check(connection)
        }
        kinds = reading([]) { () throws(StateStoreError) in try Self.kinds(connection, schema) }
        (self.damage, damageCount) = (damage.descriptions, damage.count)
    }

    private static func size(of path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : 0
    }

    private static func kinds(_ connection: SQLiteConnection, _ schema: Int) throws(StateStoreError) -> [Kind] {
        var kinds: [String: Kind] = [:]
        func add(_ sql: String, _ change: (inout Kind, Int, Int) -> Void) throws(StateStoreError) {
            let row = try SQLiteStatement(sql, connection)
            while try row.step() {
                let name = row.text(0)
                change(&kinds[name, default: Kind(name: name)], row.integer(1), row.integer(2))
            }
        }
        // The part of the namespace before its first dot.
        let kind = "substr(namespace, 1, instr(namespace || '.', '.') - 1)"
        try add("SELECT \(kind), count(*), sum(length(value)) FROM entries GROUP BY 1") { kind, count, bytes in
            kind.values = count
            kind.bytes += bytes
        }
        guard schema > 1 else { return kinds.values.sorted { $0.name < $1.name } }
        try add("SELECT \(kind), count(*), sum(size) FROM logs GROUP BY 1") { kind, count, bytes in
            kind.logs = count
            kind.bytes += bytes
        }
        try add(
            """
            SELECT \(kind), count(*), sum(length(bytes)) FROM logs CROSS JOIN log_entries
            ON log = entries AND log_entries.number > logs.number GROUP BY 1
            """
        ) { kind, count, bytes in
            kind.changes = count
            kind.bytes += bytes
        }
        return kinds.values.sorted { $0.name < $1.name }
    }
}
