public import TrebuchetCluster

/// This engine has no tables: the accounts of one process are in their store, `Accounts(store:…)`, and its actors with
/// `placement: .cluster` have no alarms. All methods here throw `unsupported`.
extension SQLiteEngine: TablelessEngine {
    private static let unsupported = ClusterEngineError(
        .unsupported,
        "SQLiteEngine does not support tables; pass the store itself to Accounts, or share accounts between nodes with RedisEngine"
    )

    /// Throws `unsupported`.
    public func values(_ names: [String], of table: ClusterTable) async throws(ClusterEngineError) -> [TableValue?] {
        throw Self.unsupported
    }

    /// Throws `unsupported`.
    public func rows(
        of table: ClusterTable, prefix: String, after: String?, limit: Int
    ) async throws(ClusterEngineError) -> TablePage { throw Self.unsupported }

    /// Throws `unsupported`.
    public func apply(_ change: TableChange, to table: ClusterTable) async throws(ClusterEngineError) -> TableOutcome {
        throw Self.unsupported
    }

    /// Throws `unsupported`.
    public func changeFeed(
        of table: ClusterTable, after number: UInt64?, limit: Int
    ) async throws(ClusterEngineError) -> TableChangeFeed { throw Self.unsupported }

    /// Throws `unsupported`.
    public func subscribeToChanges(
        of table: ClusterTable, _ receive: @escaping @Sendable (TableEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription { throw Self.unsupported }

    /// Throws `unsupported`.
    public func consumeRates(_ takes: [RateConsumption], of table: ClusterTable) async throws(ClusterEngineError)
        -> Duration?
    {
        throw Self.unsupported
    }

    /// Throws `unsupported`.
    public func resetRate(_ key: RateKey, of table: ClusterTable) async throws(ClusterEngineError) {
        throw Self.unsupported
    }
}
