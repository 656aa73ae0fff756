import Synchronization

@testable import TrebuchetCluster

/// One node's access to a shared coordination store, with fault injection: it fails, loses responses, delays messages and suspends the
/// node between two steps. The faults depend only on the seed, the time and the request, not on the order of requests.
final class FaultyEngine: ClusterEngine {
    struct Faults {
        /// The number of lost requests of 1,000.
        var lost = 0
        var late = 0
        var frozen = 0
        var isAway = false
        /// Releases are delayed.
        var delaysReleases = false
        /// Reads succeed and writes are refused.
        var takesNoWrites = false
        /// Each live node is listed twice.
        var namesTwice = false
    }

    private struct State {
        var faults = Faults()
        var late: [@Sendable () async -> Void] = []
        var isFrozen = false
        var connections = 1
        var gate: CheckedContinuation<Void, Never>?
        var step: CheckedContinuation<Void, Never>?
    }

    fileprivate let engine: MemoryEngine
    private let clock: ManualEngineClock
    private let seed: UInt64
    private let state = Mutex(State())

    init(_ engine: MemoryEngine, _ clock: ManualEngineClock, seed: UInt64) {
        (self.engine, self.clock, self.seed) = (engine, clock, seed)
    }

    var isFrozen: Bool { state.withLock { $0.isFrozen } }

    var connectionCount: Int { state.withLock { $0.connections } }

    /// The next response comes over a new connection.
    func reconnect() { state.withLock { $0.connections += 1 } }

    func set(_ faults: Faults) { state.withLock { $0.faults = faults } }

    /// Runs until `body` has ended, or the node is suspended.
    func step(_ body: @escaping @Sendable () async -> Void) async {
        await withCheckedContinuation { continuation in
            state.withLock { $0.step = continuation }
            Task {
                await body()
                endStep()
            }
        }
    }

    /// Resumes a suspended node.
    func thaw() async {
        await withCheckedContinuation { continuation in
            let gate = state.withLock { state in
                (state.step, state.isFrozen) = (continuation, false)
                return state.gate.take()
            }
            gate?.resume()
        }
    }

    private func endStep() { state.withLock { $0.step.take() }?.resume() }

    /// Delivers delayed messages.
    func deliver() async {
        let late = state.withLock { state in
            defer { state.late = [] }
            return state.late
        }
        for deed in late { await deed() }
    }

    private func ask<Answer: Sendable>(
        _ what: String, _ deed: @escaping @Sendable (MemoryEngine) async throws(ClusterEngineError) -> Answer
    ) async throws(ClusterEngineError) -> Answer {
        let (faults, number) = (state.withLock { $0.faults }, number(what))
        if faults.isAway { throw ClusterEngineError(.unavailable, "away") }
        if faults.takesNoWrites, ["announce", "renew", "acquire"].contains(where: { what.hasPrefix($0) }) {
            throw ClusterEngineError(.failed, "no memory left")
        }
        let engine = engine
        if number % 1_000 < faults.late || faults.delaysReleases && what.hasPrefix("release") {
            state.withLock { $0.late.append { _ = try? await deed(engine) } }
            throw ClusterEngineError(.unknownOutcome, "late")
        }
        let answer: Result<Answer, ClusterEngineError>
        do throws(ClusterEngineError) { answer = .success(try await deed(engine)) } catch { answer = .failure(error) }
        // Not where other tasks of the same node continue meanwhile.
        if number / 1_000 % 1_000 < faults.frozen, !what.hasPrefix("release") {
            await withCheckedContinuation { gate in
                let step = state.withLock { state in
                    (state.isFrozen, state.gate) = (true, gate)
                    return state.step.take()
                }
                step?.resume()
            }
        }
        if number / 1_000_000 % 1_000 < faults.lost { throw ClusterEngineError(.unknownOutcome, "lost") }
        return try answer.get()
    }

    private func number(_ what: String) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325 ^ seed
        for byte in "\(clock.milliseconds) \(what)".utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return (hash ^ (hash >> 29)) &* 0xBF58_476D_1CE4_E5B9 >> 16
    }

    func renewNode(_ node: ClusterNode, info: [UInt8], duration: Duration) async throws(ClusterEngineError) {
        try await ask("announce") { (engine) async throws(ClusterEngineError) in
            try await engine.renewNode(node, info: info, duration: duration)
        }
    }

    func removeNode(_ node: ClusterNode) async throws(ClusterEngineError) {
        try await ask("withdraw") { (engine) async throws(ClusterEngineError) in try await engine.removeNode(node) }
    }

    func nodes() async throws(ClusterEngineError) -> [LiveNode] {
        let nodes = try await ask("nodes") { (engine) async throws(ClusterEngineError) in try await engine.nodes() }
        return state.withLock { $0.faults.namesTwice } ? nodes + nodes : nodes
    }

    func generation() async throws(ClusterEngineError) -> String? {
        try await ask("generation") { (engine) async throws(ClusterEngineError) in try await engine.generation() }
    }

    func createGeneration() async throws(ClusterEngineError) -> String {
        try await ask("generation begins") { (engine) async throws(ClusterEngineError) in
            try await engine.createGeneration()
        }
    }

    func acquireSlot(
        _ slot: ClusterSlot, for node: ClusterNode, duration: Duration, generation: String?
    ) async throws(ClusterEngineError) -> SlotAcquisition {
        try await ask("acquire \(slot)") { (engine) async throws(ClusterEngineError) in
            try await engine.acquireSlot(slot, for: node, duration: duration, generation: generation)
        }
    }

    func renewLease(_ lease: SlotLease, duration: Duration) async throws(ClusterEngineError) -> Bool {
        try await ask("renew \(lease.slot)") { (engine) async throws(ClusterEngineError) in
            try await engine.renewLease(lease, duration: duration)
        }
    }

    func releaseLease(_ lease: SlotLease) async throws(ClusterEngineError) -> Bool {
        try await ask("release \(lease.slot)") { (engine) async throws(ClusterEngineError) in
            try await engine.releaseLease(lease)
        }
    }

    func owner(of slot: ClusterSlot) async throws(ClusterEngineError) -> SlotOwner? {
        try await ask("holder \(slot)") { (engine) async throws(ClusterEngineError) in
            try await engine.owner(of: slot)
        }
    }

    // MARK: Operations that members do not use

    func append(
        _ change: LogAppend, to log: ClusterLog, lease: SlotLease
    ) async throws(ClusterEngineError) -> AppendOutcome { try await engine.append(change, to: log, lease: lease) }

    func storeSnapshot(
        _ snapshot: [UInt8], at offset: UInt64, of log: ClusterLog, lease: SlotLease, keepingLast: Int
    ) async throws(ClusterEngineError) -> SnapshotOutcome {
        try await engine.storeSnapshot(snapshot, at: offset, of: log, lease: lease, keepingLast: keepingLast)
    }

    func removeLog(
        _ log: ClusterLog, at offset: UInt64, lease: SlotLease
    ) async throws(ClusterEngineError) -> SnapshotOutcome {
        try await engine.removeLog(log, at: offset, lease: lease)
    }

    func readLog(
        _ log: ClusterLog, after position: LogPosition?, limit: Int
    ) async throws(ClusterEngineError) -> LogReadResult { try await engine.readLog(log, after: position, limit: limit) }

    func reply(to callID: String, in log: ClusterLog) async throws(ClusterEngineError) -> [UInt8]? {
        try await engine.reply(to: callID, in: log)
    }

    func subscribeToLog(
        _ log: ClusterLog, _ receive: @escaping @Sendable (LogEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription { try await engine.subscribeToLog(log, receive) }

    func subscribeToInbox(
        of node: ClusterNode, _ receive: @escaping @Sendable (InboxEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription {
        try await engine.subscribeToInbox(of: node, receive)
    }

    func sendMessage(_ message: [UInt8], to node: ClusterNode) async throws(ClusterEngineError) -> Bool {
        try await engine.sendMessage(message, to: node)
    }

    func close() async {}
}

// MARK: Tables, which members do not use

extension FaultyEngine {
    func values(_ names: [String], of table: ClusterTable) async throws(ClusterEngineError) -> [TableValue?] {
        try await engine.values(names, of: table)
    }
    func rows(
        of table: ClusterTable, prefix: String, after: String?, limit: Int
    ) async throws(ClusterEngineError) -> TablePage {
        try await engine.rows(of: table, prefix: prefix, after: after, limit: limit)
    }
    func apply(_ change: TableChange, to table: ClusterTable) async throws(ClusterEngineError) -> TableOutcome {
        try await engine.apply(change, to: table)
    }
    func changeFeed(
        of table: ClusterTable, after number: UInt64?, limit: Int
    ) async throws(ClusterEngineError) -> TableChangeFeed {
        try await engine.changeFeed(of: table, after: number, limit: limit)
    }
    func subscribeToChanges(
        of table: ClusterTable, _ receive: @escaping @Sendable (TableEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription {
        try await engine.subscribeToChanges(of: table, receive)
    }
    func consumeRates(_ takes: [RateConsumption], of table: ClusterTable) async throws(ClusterEngineError) -> Duration?
    {
        try await engine.consumeRates(takes, of: table)
    }
    func resetRate(_ key: RateKey, of table: ClusterTable) async throws(ClusterEngineError) {
        try await engine.resetRate(key, of: table)
    }
}
