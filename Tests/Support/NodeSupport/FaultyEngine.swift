internal import Synchronization
internal import TestSupport
package import TrebuchetCluster

/// A coordination store of which some or all operations can be made to hang or fail.
package final class FaultyEngine: ClusterEngine {
    package struct Faults {
        package var isAway = false
        /// The number of next appends and changes of tables after which every request fails, as of a node that was killed.
        package var writesUntilAway: Int?
        /// Changes that delete values of tables get no response, and are applied by `applyDeletions`.
        package var delaysDeletions = false
        package var hangsAppends = false
        package var hangsReads = false
        /// Reads of logs return nothing, as from a replica that is behind.
        package var readsNothing = false
        package var failsAppends = false
        /// Appends fail with an error, as when the coordination store is out of memory.
        package var refusesAppends = false
        /// The number of next appends after which appends fail with a data loss.
        package var appendsUntilDataLoss: Int?
        /// Appends fail as if another node had owned the slot since.
        package var fencesAppends = false
        /// Appends are written, but their responses are delayed.
        package var hangsAnswers = false
        package var failsRenewals = false
        /// Appends are written, but their responses are lost.
        package var losesAnswers = false
        /// The number of next appends whose responses are lost.
        package var losesNextAnswers = 0
        /// The number of next appends that are not written and get no response.
        package var losesNextAppends = 0
        /// Writes count only once they are confirmed.
        package var confirms = false
        /// Appends are written, but no replica confirms them.
        package var hasNoReplicas = false
        package var failsSnapshots = false
        /// The number of connections to the coordination store so far.
        package var connections = 0
        package var givesNoSlots = false
        /// Messages are delayed.
        package var holdsMessages = false
        /// Messages are accepted, but never delivered.
        package var losesMessages = false
        /// Sent messages are recorded with their recipients.
        package var keepsMessages = false

        package init(givesNoSlots: Bool = false) { self.givesNoSlots = givesNoSlots }
    }

    fileprivate let engine: MemoryEngine
    private let faults: Mutex<Faults>
    private let rounds = Mutex(0)
    private let sent = Mutex(0)
    private let paused = Mutex(0)
    private let reading = Mutex(0)
    private let read = Mutex(0)
    private let unanswered = Mutex(0)
    private let asked = Mutex(0)
    private let lostAppend = Mutex<(@Sendable () async -> Void)?>(nil)
    private let lateDeletions = Mutex<[(change: TableChange, table: ClusterTable)]>([])
    private let tableReads = Mutex(0)
    private let lateMessages = Mutex<[(node: ClusterNode, message: [UInt8])]>([])

    package init(_ engine: MemoryEngine, _ faults: Faults = Faults()) {
        self.engine = engine
        self.faults = Mutex(faults)
    }

    package var confirmsWrites: Bool { faults.withLock { $0.confirms } }
    package var connectionCount: Int { faults.withLock { $0.connections } }

    /// The number of accepted messages.
    package var messageCount: Int { sent.withLock { $0 } }
    /// The number of messages that are currently delayed.
    package var pausedCount: Int { paused.withLock { $0 } }
    /// The number of logs that are currently being read.
    package var readCount: Int { reading.withLock { $0 } }
    /// The number of requested reads of logs.
    package var readTotal: Int { read.withLock { $0 } }
    /// The number of requested appends.
    package var appendCount: Int { asked.withLock { $0 } }
    /// Calls `body` when an append was lost, before its caller receives the error.
    package func afterLostAppend(_ body: @escaping @Sendable () async -> Void) { lostAppend.withLock { $0 = body } }
    /// The number of appends that are written and not yet answered.
    package var unansweredCount: Int { unanswered.withLock { $0 } }
    /// The number of times a member has listed the live nodes.
    package var roundCount: Int { rounds.withLock { $0 } }

    package func set(_ body: @Sendable (inout Faults) -> Void) { faults.withLock { body(&$0) } }

    /// The messages sent to a node since recording began.
    package func messages(to node: ClusterNode) -> [[UInt8]] {
        lateMessages.withLock { $0.filter { $0.node == node }.map(\.message) }
    }

    fileprivate func check(_ fails: KeyPath<Faults, Bool> = \.isAway) throws(ClusterEngineError) {
        let isFailing = faults.withLock { $0.isAway || $0[keyPath: fails] }
        if isFailing { throw ClusterEngineError(.unavailable, "at 10.1.2.3, say") }
    }

    private func checkWrite(_ fails: KeyPath<Faults, Bool> = \.isAway) throws(ClusterEngineError) {
        faults.withLock { faults in
            guard let left = faults.writesUntilAway else { return }
            if left == 0 { faults.isAway = true }
            faults.writesUntilAway = max(0, left - 1)
        }
        try check(fails)
    }

    /// The number of requested reads of tables.
    package var tableReadCount: Int { tableReads.withLock { $0 } }

    /// Applies the delayed deletions of values.
    package func applyDeletions() async throws {
        let late = lateDeletions.withLock { late in
            defer { late = [] }
            return late
        }
        for (change, table) in late { _ = try await engine.apply(change, to: table) }
    }

    /// Waits without spinning: many spinning reads would keep both cores from the responses under test for seconds.
    private func wait(while hangs: (Faults) -> Bool) async {
        _ = await eventually(within: .seconds(600)) { faults.withLock { !hangs($0) } }
    }

    package func renewNode(_ node: ClusterNode, info: [UInt8], duration: Duration) async throws(ClusterEngineError) {
        try check()
        try await engine.renewNode(node, info: info, duration: duration)
    }
    package func removeNode(_ node: ClusterNode) async throws(ClusterEngineError) {
        try check()
        try await engine.removeNode(node)
    }
    package func nodes() async throws(ClusterEngineError) -> [LiveNode] {
        rounds.withLock { $0 += 1 }
        try check()
        return try await engine.nodes()
    }
    package func generation() async throws(ClusterEngineError) -> String? {
        try check()
        return try await engine.generation()
    }
    package func createGeneration() async throws(ClusterEngineError) -> String {
        try check()
        return try await engine.createGeneration()
    }
    package func acquireSlot(
        _ slot: ClusterSlot, for node: ClusterNode, duration: Duration, generation: String?
    ) async throws(ClusterEngineError) -> SlotAcquisition {
        try check(\.givesNoSlots)
        return try await engine.acquireSlot(slot, for: node, duration: duration, generation: generation)
    }
    package func renewLease(_ lease: SlotLease, duration: Duration) async throws(ClusterEngineError) -> Bool {
        try check(\.failsRenewals)
        return try await engine.renewLease(lease, duration: duration)
    }
    package func releaseLease(_ lease: SlotLease) async throws(ClusterEngineError) -> Bool {
        try check()
        return try await engine.releaseLease(lease)
    }
    package func owner(of slot: ClusterSlot) async throws(ClusterEngineError) -> SlotOwner? {
        try check()
        return try await engine.owner(of: slot)
    }
    package func append(
        _ change: LogAppend, to log: ClusterLog, lease: SlotLease
    ) async throws(ClusterEngineError) -> AppendOutcome {
        await wait { $0.hangsAppends }
        asked.withLock { $0 += 1 }
        try checkWrite(\.failsAppends)
        let isLostItself = faults.withLock { faults in
            defer { faults.losesNextAppends = max(0, faults.losesNextAppends - 1) }
            return faults.losesNextAppends > 0
        }
        if isLostItself {
            await lostAppend.withLock { $0 }?()
            throw ClusterEngineError(.unknownOutcome, "no answer")
        }
        let isDataLoss = faults.withLock { faults in
            defer { faults.appendsUntilDataLoss = faults.appendsUntilDataLoss.map { max(0, $0 - 1) } }
            return faults.appendsUntilDataLoss == 0
        }
        if isDataLoss { throw ClusterEngineError(.dataLoss, "entries are missing") }
        if faults.withLock({ $0.refusesAppends }) { throw ClusterEngineError(.failed, "no memory at 10.1.2.3, say") }
        if faults.withLock({ $0.fencesAppends }) { return .fenced(lease.fence + 1) }
        let outcome = try await engine.append(change, to: log, lease: lease)
        unanswered.withLock { $0 += 1 }
        await wait { $0.hangsAnswers }
        unanswered.withLock { $0 -= 1 }
        let isLost = faults.withLock { faults in
            guard faults.losesNextAnswers > 0 else { return faults.losesAnswers }
            faults.losesNextAnswers -= 1
            return true
        }
        if isLost { throw ClusterEngineError(.unknownOutcome, "no answer") }
        if case .accepted = outcome, faults.withLock({ $0.hasNoReplicas }) {
            throw ClusterEngineError(.unknownOutcome, "written, but only 0 of 1 replicas acknowledged it")
        }
        return outcome
    }
    package func storeSnapshot(
        _ snapshot: [UInt8], at offset: UInt64, of log: ClusterLog, lease: SlotLease, keepingLast: Int
    ) async throws(ClusterEngineError) -> SnapshotOutcome {
        try check(\.failsSnapshots)
        return try await engine.storeSnapshot(snapshot, at: offset, of: log, lease: lease, keepingLast: keepingLast)
    }
    package func removeLog(
        _ log: ClusterLog, at offset: UInt64, lease: SlotLease
    ) async throws(ClusterEngineError) -> SnapshotOutcome {
        try check(\.failsAppends)
        return try await engine.removeLog(log, at: offset, lease: lease)
    }
    package func readLog(
        _ log: ClusterLog, after position: LogPosition?, limit: Int
    ) async throws(ClusterEngineError) -> LogReadResult {
        read.withLock { $0 += 1 }
        reading.withLock { $0 += 1 }
        await wait { $0.hangsReads }
        reading.withLock { $0 -= 1 }
        try check()
        if faults.withLock({ $0.readsNothing }) { return LogReadResult(.start, [], head: .start) }
        return try await engine.readLog(log, after: position, limit: limit)
    }
    package func reply(to callID: String, in log: ClusterLog) async throws(ClusterEngineError) -> [UInt8]? {
        try await engine.reply(to: callID, in: log)
    }
    package func subscribeToLog(
        _ log: ClusterLog, _ receive: @escaping @Sendable (LogEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription { try await engine.subscribeToLog(log, receive) }
    package func subscribeToInbox(
        of node: ClusterNode, _ receive: @escaping @Sendable (InboxEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription {
        try check()
        return try await engine.subscribeToInbox(of: node, receive)
    }
    package func sendMessage(_ message: [UInt8], to node: ClusterNode) async throws(ClusterEngineError) -> Bool {
        paused.withLock { $0 += 1 }
        _ = await eventually { !faults.withLock { $0.holdsMessages } }
        paused.withLock { $0 -= 1 }
        try check()
        if !message.isEmpty { sent.withLock { $0 += 1 } }
        if faults.withLock({ $0.keepsMessages }) { lateMessages.withLock { $0.append((node, message)) } }
        return faults.withLock { $0.losesMessages } ? true : try await engine.sendMessage(message, to: node)
    }
    package func close() async { await engine.close() }
}

// MARK: Tables

extension FaultyEngine {
    package func values(_ names: [String], of table: ClusterTable) async throws(ClusterEngineError) -> [TableValue?] {
        try check()
        return try await engine.values(names, of: table)
    }
    package func rows(
        of table: ClusterTable, prefix: String, after: String?, limit: Int
    ) async throws(ClusterEngineError) -> TablePage {
        tableReads.withLock { $0 += 1 }
        try check()
        return try await engine.rows(of: table, prefix: prefix, after: after, limit: limit)
    }
    package func apply(_ change: TableChange, to table: ClusterTable) async throws(ClusterEngineError) -> TableOutcome {
        try checkWrite()
        if faults.withLock({ $0.delaysDeletions }), change.writes.contains(where: { $0.operation == .delete }) {
            lateDeletions.withLock { $0.append((change, table)) }
            throw ClusterEngineError(.unknownOutcome, "no answer")
        }
        return try await engine.apply(change, to: table)
    }
    package func changeFeed(
        of table: ClusterTable, after number: UInt64?, limit: Int
    ) async throws(ClusterEngineError) -> TableChangeFeed {
        try check()
        return try await engine.changeFeed(of: table, after: number, limit: limit)
    }
    package func subscribeToChanges(
        of table: ClusterTable, _ receive: @escaping @Sendable (TableEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription {
        try check()
        return try await engine.subscribeToChanges(of: table, receive)
    }
    package func consumeRates(_ takes: [RateConsumption], of table: ClusterTable) async throws(ClusterEngineError)
        -> Duration?
    {
        try check()
        return try await engine.consumeRates(takes, of: table)
    }
    package func resetRate(_ key: RateKey, of table: ClusterTable) async throws(ClusterEngineError) {
        try check()
        try await engine.resetRate(key, of: table)
    }
}
