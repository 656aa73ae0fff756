internal import Synchronization

/// Tables, which have no owner.
extension MemoryEngine {
    /// Returns the values of some names.
    public func values(_ names: [String], of table: ClusterTable) async throws(ClusterEngineError) -> [TableValue?] {
        try limits.check(names, of: table)
        return try change { contents, now in
            names.map { contents.tables[table]?.value($0, now: now) }
        }
    }

    /// Returns values whose names begin with `prefix`, in their order.
    public func rows(
        of table: ClusterTable, prefix: String, after: String?, limit: Int
    ) async throws(ClusterEngineError) -> TablePage {
        try limits.check(prefix: prefix, after: after, of: table)
        let limit = min(max(1, limit), ClusterEngineLimits.maximumNames)
        let bytes = limits.readBytes
        return try change { contents, now in
            (contents.tables[table] ?? MemoryTable())
                .rows(prefix: prefix, after: after, limit: limit, bytes: bytes, now: now)
        }
    }

    /// Compares, writes and publishes in one step.
    public func apply(_ change: TableChange, to table: ClusterTable) async throws(ClusterEngineError) -> TableOutcome {
        try limits.check(change, of: table)
        let limits = limits
        return try attempt { (contents, now) throws(ClusterEngineError) in
            let outcome = try contents.tables[table, default: MemoryTable()].change(change, now: now, limits)
            if case .changed(let number) = outcome, change.notice != nil {
                Self.notifySubscribers(
                    contents.tableWatchers[table], .noticesAvailable(number), &contents.pendingNotifications)
            }
            return outcome
        }
    }

    /// Returns the notices after a change.
    public func changeFeed(
        of table: ClusterTable, after number: UInt64?, limit: Int
    ) async throws(ClusterEngineError) -> TableChangeFeed {
        try limits.check(table)
        return try change { contents, _ in
            (contents.tables[table] ?? MemoryTable()).changeFeed(after: number, limit: max(1, limit))
        }
    }

    /// Subscribes to the arrival of notices.
    public func subscribeToChanges(
        of table: ClusterTable, _ receive: @escaping @Sendable (TableEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription {
        try limits.check(table)
        let number = try change { contents, _ in
            contents.subscriptions += 1
            contents.tableWatchers[table, default: [:]][contents.subscriptions] = receive
            return contents.subscriptions
        }
        return MemorySubscription { [weak self] in
            self?.contents.withLock { contents in
                contents.tableWatchers[table]?[number] = nil
                if contents.tableWatchers[table]?.isEmpty == true { contents.tableWatchers[table] = nil }
            }
        }
    }

    /// Consumes one unit of each of some rates, or none.
    public func consumeRates(_ takes: [RateConsumption], of table: ClusterTable) async throws(ClusterEngineError)
        -> Duration?
    {
        try limits.check(takes, of: table)
        return try change { $0.tables[table, default: MemoryTable()].consumeRates(takes, now: $1) }.map {
            .milliseconds($0)
        }
    }

    /// Restores the full rate of a key.
    public func resetRate(_ key: RateKey, of table: ClusterTable) async throws(ClusterEngineError) {
        try limits.check(table)
        try limits.check(key)
        try change { contents, _ in contents.tables[table]?.restore(key) ?? () }
    }
}
