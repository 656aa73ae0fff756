import Synchronization
import TestSupport
import TrebuchetCluster

/// An engine whose way can be closed for some of what is asked of it.
final class GatedEngine: ClusterEngine {
    struct Faults {
        var givesNoSlots = false
        /// Messages do not get on.
        var holdsMessages = false
    }

    private let engine: MemoryEngine
    private let faults: Mutex<Faults>

    init(_ engine: MemoryEngine, _ faults: Faults = Faults()) {
        self.engine = engine
        self.faults = Mutex(faults)
    }

    private var now: Faults { faults.withLock { $0 } }
    func set(_ body: (inout Faults) -> Void) { faults.withLock { body(&$0) } }

    func announce(_ node: ClusterNode, info: [UInt8], lasting: Duration) async throws(ClusterEngineError) {
        try await engine.announce(node, info: info, lasting: lasting)
    }

    func withdraw(_ node: ClusterNode) async throws(ClusterEngineError) { try await engine.withdraw(node) }

    func nodes() async throws(ClusterEngineError) -> [LiveNode] { try await engine.nodes() }

    func acquire(
        _ slot: ClusterSlot, for node: ClusterNode, lasting: Duration
    ) async throws(ClusterEngineError) -> SlotClaim {
        if now.givesNoSlots { throw ClusterEngineError(.unavailable, "no slots now") }
        return try await engine.acquire(slot, for: node, lasting: lasting)
    }

    func renew(_ lease: SlotLease, lasting: Duration) async throws(ClusterEngineError) -> Bool {
        try await engine.renew(lease, lasting: lasting)
    }

    func release(_ lease: SlotLease) async throws(ClusterEngineError) -> Bool { try await engine.release(lease) }

    func holder(of slot: ClusterSlot) async throws(ClusterEngineError) -> SlotHolder? {
        try await engine.holder(of: slot)
    }

    func append(
        _ change: LogAppend, to log: ClusterLog, under lease: SlotLease
    ) async throws(ClusterEngineError) -> AppendOutcome {
        try await engine.append(change, to: log, under: lease)
    }

    func store(
        _ snapshot: [UInt8], at offset: UInt64, of log: ClusterLog, under lease: SlotLease, keepingLast: Int
    ) async throws(ClusterEngineError) -> SnapshotOutcome {
        try await engine.store(snapshot, at: offset, of: log, under: lease, keepingLast: keepingLast)
    }

    func read(
        _ log: ClusterLog, after position: LogPosition?, limit: Int
    ) async throws(ClusterEngineError) -> LogReading {
        try await engine.read(log, after: position, limit: limit)
    }

    func reply(to callID: String, in log: ClusterLog) async throws(ClusterEngineError) -> [UInt8]? {
        try await engine.reply(to: callID, in: log)
    }

    func watch(
        _ log: ClusterLog, _ receive: @escaping @Sendable (LogEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription {
        try await engine.watch(log, receive)
    }

    func listen(
        as node: ClusterNode, _ receive: @escaping @Sendable (InboxEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription {
        try await engine.listen(as: node, receive)
    }

    func send(_ message: [UInt8], to node: ClusterNode) async throws(ClusterEngineError) -> Bool {
        _ = await eventually { !now.holdsMessages }
        return try await engine.send(message, to: node)
    }

    func close() async { await engine.close() }
}
