import Synchronization
import TestSupport
import TrebuchetCluster

/// One node's access to the tables of a shared coordination store, with fault injection.
final class TableEngineRoute: ClusterTables {
    struct Faults {
        var isAway = false
        /// Notices are lost.
        var losesMessages = false
        /// Changes are applied, and their responses are lost.
        var losesAnswers = false
        /// Rate requests hang.
        var hangs = false
        /// Replaces the change feed of the coordination store.
        var news: (@Sendable (TableChangeFeed) -> TableChangeFeed)?
    }

    private let engine: MemoryEngine
    private let faults = Mutex(Faults())
    private let waiting = Mutex(0)
    private let asked = Mutex(0)

    init(_ engine: MemoryEngine) { self.engine = engine }

    /// The number of rate requests.
    var taken: Int { asked.withLock { $0 } }

    /// The number of requests that hang.
    var hanging: Int { waiting.withLock { $0 } }

    func set(_ body: @Sendable (inout Faults) -> Void) { faults.withLock { body(&$0) } }

    private func check() throws(ClusterEngineError) {
        if faults.withLock({ $0.isAway }) { throw ClusterEngineError(.unavailable, "away") }
    }

    func values(_ names: [String], of table: ClusterTable) async throws(ClusterEngineError) -> [TableValue?] {
        try check()
        return try await engine.values(names, of: table)
    }

    func rows(
        of table: ClusterTable, prefix: String, after: String?, limit: Int
    ) async throws(ClusterEngineError) -> TablePage {
        try check()
        return try await engine.rows(of: table, prefix: prefix, after: after, limit: limit)
    }

    func apply(_ change: TableChange, to table: ClusterTable) async throws(ClusterEngineError) -> TableOutcome {
        try check()
        let outcome = try await engine.apply(change, to: table)
        if faults.withLock({ $0.losesAnswers }) { throw ClusterEngineError(.unknownOutcome, "lost") }
        return outcome
    }

    func changeFeed(
        of table: ClusterTable, after number: UInt64?, limit: Int
    ) async throws(ClusterEngineError) -> TableChangeFeed {
        try check()
        let news = try await engine.changeFeed(of: table, after: number, limit: limit)
        return faults.withLock { $0.news }?(news) ?? news
    }

    func subscribeToChanges(
        of table: ClusterTable, _ receive: @escaping @Sendable (TableEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription {
        try check()
        return try await engine.subscribeToChanges(of: table) { [self] event in
            if !faults.withLock({ $0.losesMessages || $0.isAway }) { receive(event) }
        }
    }

    func consumeRates(_ takes: [RateConsumption], of table: ClusterTable) async throws(ClusterEngineError) -> Duration?
    {
        try check()
        asked.withLock { $0 += 1 }
        waiting.withLock { $0 += 1 }
        _ = await eventually { !faults.withLock { $0.hangs } }
        waiting.withLock { $0 -= 1 }
        return try await engine.consumeRates(takes, of: table)
    }

    func resetRate(_ key: RateKey, of table: ClusterTable) async throws(ClusterEngineError) {
        try check()
        try await engine.resetRate(key, of: table)
    }
}
