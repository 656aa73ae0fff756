import Synchronization
import TestSupport
import TrebuchetCluster

/// An engine of which some, or all, can be made to hang or to fail.
final class FaultyEngine: ClusterEngine {
    struct Faults {
        var isAway = false
        var hangsAppends = false
        var failsAppends = false
        var failsSnapshots = false
        var givesNoSlots = false
        /// Messages do not get on.
        var holdsMessages = false
        /// What was sent, to whom, is kept.
        var keepsMessages = false
    }

    private let engine: MemoryEngine
    private let faults: Mutex<Faults>
    private let kept = Mutex<[(node: ClusterNode, message: [UInt8])]>([])

    init(_ engine: MemoryEngine, _ faults: Faults = Faults()) {
        self.engine = engine
        self.faults = Mutex(faults)
    }

    func set(_ body: @Sendable (inout Faults) -> Void) { faults.withLock { body(&$0) } }

    /// What was sent to a node since messages are kept.
    func messages(to node: ClusterNode) -> [[UInt8]] { kept.withLock { $0.filter { $0.node == node }.map(\.message) } }

    private func check(_ fails: KeyPath<Faults, Bool> = \.isAway) throws(ClusterEngineError) {
        let isFailing = faults.withLock { $0.isAway || $0[keyPath: fails] }
        if isFailing { throw ClusterEngineError(.unavailable, "at 10.1.2.3, say") }
    }

    func announce(_ node: ClusterNode, info: [UInt8], lasting: Duration) async throws(ClusterEngineError) {
        try check()
        try await engine.announce(node, info: info, lasting: lasting)
    }
    func withdraw(_ node: ClusterNode) async throws(ClusterEngineError) {
        try check()
        try await engine.withdraw(node)
    }
    func nodes() async throws(ClusterEngineError) -> [LiveNode] {
        try check()
        return try await engine.nodes()
    }
    func acquire(
        _ slot: ClusterSlot, for node: ClusterNode, lasting: Duration
    ) async throws(ClusterEngineError) -> SlotClaim {
        try check(\.givesNoSlots)
        return try await engine.acquire(slot, for: node, lasting: lasting)
    }
    func renew(_ lease: SlotLease, lasting: Duration) async throws(ClusterEngineError) -> Bool {
        try check()
        return try await engine.renew(lease, lasting: lasting)
    }
    func release(_ lease: SlotLease) async throws(ClusterEngineError) -> Bool {
        try check()
        return try await engine.release(lease)
    }
    func holder(of slot: ClusterSlot) async throws(ClusterEngineError) -> SlotHolder? {
        try check()
        return try await engine.holder(of: slot)
    }
    func append(
        _ change: LogAppend, to log: ClusterLog, under lease: SlotLease
    ) async throws(ClusterEngineError) -> AppendOutcome {
        while faults.withLock({ $0.hangsAppends }) { await Task.yield() }
        try check(\.failsAppends)
        return try await engine.append(change, to: log, under: lease)
    }
    func store(
        _ snapshot: [UInt8], at offset: UInt64, of log: ClusterLog, under lease: SlotLease, keepingLast: Int
    ) async throws(ClusterEngineError) -> SnapshotOutcome {
        try check(\.failsSnapshots)
        return try await engine.store(snapshot, at: offset, of: log, under: lease, keepingLast: keepingLast)
    }
    func read(
        _ log: ClusterLog, after position: LogPosition?, limit: Int
    ) async throws(ClusterEngineError) -> LogReading {
        try check()
        return try await engine.read(log, after: position, limit: limit)
    }
    func reply(to callID: String, in log: ClusterLog) async throws(ClusterEngineError) -> [UInt8]? {
        try await engine.reply(to: callID, in: log)
    }
    func watch(
        _ log: ClusterLog, _ receive: @escaping @Sendable (LogEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription { try await engine.watch(log, receive) }
    func listen(
        as node: ClusterNode, _ receive: @escaping @Sendable (InboxEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription { try await engine.listen(as: node, receive) }
    func send(_ message: [UInt8], to node: ClusterNode) async throws(ClusterEngineError) -> Bool {
        _ = await eventually { !faults.withLock { $0.holdsMessages } }
        try check()
        if faults.withLock({ $0.keepsMessages }) { kept.withLock { $0.append((node, message)) } }
        return try await engine.send(message, to: node)
    }
    func close() async { await engine.close() }
}
