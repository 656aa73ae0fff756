/// What nodes share and no node owns: values that are changed where they are as they were read, what changes tell, and rates that
/// count over all nodes.
///
/// A change needs no lease. Who reads, decides and writes says in the change what he has read: it is done if that is still so, in the
/// same step.
///
/// All functions suspend rather than block, and throw a `ClusterEngineError`, as those of a `ClusterEngine`.
public protocol ClusterTables: Sendable {
    /// The values of up to 1,000 names, in their order; nil for those that have none.
    func values(_ names: [String], of table: ClusterTable) async throws(ClusterEngineError) -> [TableValue?]

    /// Values whose names begin with `prefix`, by the bytes of their names.
    ///
    /// - Parameters:
    ///   - after: only names behind this one.
    ///   - limit: at most so many, up to 1,000; there may be fewer, or none, and more behind them: `TablePage.next` says so.
    func rows(
        of table: ClusterTable, prefix: String, after: String?, limit: Int
    ) async throws(ClusterEngineError) -> TablePage

    /// Compares, writes and tells in one step.
    ///
    /// After `unknownOutcome` it was done, or not: that a value has another version than it had says that it was, or that somebody
    /// else has changed it.
    func change(_ change: TableChange, of table: ClusterTable) async throws(ClusterEngineError) -> TableOutcome

    /// What was told behind the change of that number; nil for all that is kept: the last `ClusterEngineLimits.newsPerTable`.
    func news(
        of table: ClusterTable, after number: UInt64?, limit: Int
    ) async throws(ClusterEngineError) -> TableNews

    /// Hears that there are news. It comes at most once: who must not miss any reads them from time to time too.
    func watch(
        _ table: ClusterTable, _ receive: @escaping @Sendable (TableEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription

    /// Takes one of each of some rates, or nothing of any; each of another key.
    ///
    /// - Returns: nil when it was taken; else after how long it may be.
    func take(_ takes: [RateTake], of table: ClusterTable) async throws(ClusterEngineError) -> Duration?

    /// Gives back what a key has used.
    func restore(_ key: RateKey, of table: ClusterTable) async throws(ClusterEngineError)
}

/// Whom a rate counts for.
public struct RateKey: Hashable, Sendable {
    /// Which rate: up to 64 letters and digits of ASCII.
    public let kind: String
    /// Who: up to `ClusterEngineLimits.nameBytes`.
    public let name: String

    /// A rate and whom it counts for.
    public init(_ kind: String, _ name: String) {
        self.kind = kind
        self.name = name
    }
}

/// One of a rate.
public struct RateTake: Hashable, Sendable {
    /// Whose.
    public let key: RateKey
    /// After how long one that was taken is back, by the engine's clock.
    public let interval: Duration
    /// How many there are at once after a rest.
    public let burst: Int
    /// Of how many of the kind it is kept what they have used; beyond that those are forgotten who have it back first.
    public let kept: Int

    /// One of `burst`, which come back one after another.
    public init(_ key: RateKey, interval: Duration, burst: Int, kept: Int) {
        self.key = key
        self.interval = interval
        self.burst = burst
        self.kept = kept
    }
}
