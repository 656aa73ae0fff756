/// Shared data without an owner node: values with conditional changes, change feeds, and rate limits across all nodes.
///
/// A change needs no lease. A node that reads, decides and writes includes the read versions in the change, which is
/// applied only if they are unchanged, in the same step.
///
/// All methods suspend rather than block, and throw a `ClusterEngineError`, like those of a `ClusterEngine`.
public protocol ClusterTables: Sendable {
    /// Returns the values of up to 1,000 names, in their order; nil for missing values.
    func values(_ names: [String], of table: ClusterTable) async throws(ClusterEngineError) -> [TableValue?]

    /// Returns values whose names begin with `prefix`, in the byte order of their names.
    ///
    /// - Parameters:
    ///   - after: only names after this one.
    ///   - limit: the maximum number of rows, up to 1,000. There may be fewer, or none, even if more follow: see
    ///     `TablePage.next`.
    func rows(
        of table: ClusterTable, prefix: String, after: String?, limit: Int
    ) async throws(ClusterEngineError) -> TablePage

    /// Compares, writes and publishes in one step.
    ///
    /// After `unknownOutcome` the change may have been applied. If a value has another version than before, either
    /// this change or another one was applied.
    func apply(_ change: TableChange, to table: ClusterTable) async throws(ClusterEngineError) -> TableOutcome

    /// Returns the notices after the change of that number; nil for all that are kept: the last
    /// `ClusterEngineLimits.noticesPerTable`.
    func changeFeed(
        of table: ClusterTable, after number: UInt64?, limit: Int
    ) async throws(ClusterEngineError) -> TableChangeFeed

    /// Subscribes to the arrival of notices. Delivery is at most once: a reader that must not miss any also polls from
    /// time to time.
    func subscribeToChanges(
        of table: ClusterTable, _ receive: @escaping @Sendable (TableEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription

    /// Consumes one unit of each of some rates with different keys, or none of any.
    ///
    /// - Returns: nil if they were consumed; otherwise the time after which they may be.
    func consumeRates(_ takes: [RateConsumption], of table: ClusterTable) async throws(ClusterEngineError) -> Duration?

    /// Restores the full rate of a key.
    func resetRate(_ key: RateKey, of table: ClusterTable) async throws(ClusterEngineError)
}

/// The subject of a rate.
public struct RateKey: Hashable, Sendable {
    /// The kind of rate: up to 64 ASCII letters and digits.
    public let kind: String
    /// The name of the subject, up to `ClusterEngineLimits.nameBytes`.
    public let name: String

    /// Creates the key of a rate and its subject.
    public init(_ kind: String, _ name: String) {
        self.kind = kind
        self.name = name
    }
}

/// The consumption of one unit of a rate.
public struct RateConsumption: Hashable, Sendable {
    /// The key of the rate.
    public let key: RateKey
    /// The time after which a unit is available again, by the clock of the coordination store.
    public let interval: Duration
    /// The maximum number of units available at once.
    public let burst: Int
    /// The maximum number of keys of the kind whose consumption is stored. Beyond that, a new key replaces the key that is restored
    /// first and starts with its consumption, with at least one unit available.
    public let maximumEntries: Int

    /// Consumes one of `burst` units, which become available again one after another.
    public init(_ key: RateKey, interval: Duration, burst: Int, maximumEntries: Int) {
        self.key = key
        self.interval = interval
        self.burst = burst
        self.maximumEntries = maximumEntries
    }
}
