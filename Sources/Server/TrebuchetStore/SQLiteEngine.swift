internal import Glibc
internal import Platform
internal import Relays
internal import Synchronization
package import Trebuchet
public import TrebuchetCluster

/// A coordination store within one process that persists fences and logs in a `StateStore`. It makes a cluster of one node,
/// for development, or for a service that is to grow later.
///
///     let store = try SQLiteStore(path: "cluster.db")
///     let server = TrebuchetServer(
///         transport: .webSocket(port: 8080), cluster: try ClusterMembership(of: "one", at: SQLiteEngine(store)))
///
/// Live nodes and slot owners end with the process, like leases that are not renewed; fences and logs are persisted.
/// Acknowledged writes are as durable as the store guarantees (`SQLiteStore.Durability`). Several nodes of one process
/// may share an engine.
public final class SQLiteEngine: ClusterEngine {
    /// The limits of this engine.
    public let limits: ClusterEngineLimits
    let store: any StateStore
    /// The error of the last write; nil if it succeeded.
    let failedWrite = Mutex<StateStoreError?>(nil)
    /// The nodes, slots and subscriptions.
    let live: MemoryEngine
    /// One lock for each slot, so that its owner does not change during a write.
    private let turns = ClusterSlot.all.map { _ in AsyncBinarySemaphore() }
    private let loading = AsyncBinarySemaphore()
    private let hasLoaded = Atomic(false)
    private let now: @Sendable () -> UInt64

    /// Creates an engine over a store.
    ///
    /// - Parameter store: used only by this engine, which does not close it.
    public convenience init(_ store: SQLiteStore, limits: ClusterEngineLimits = ClusterEngineLimits()) {
        self.init(over: store, limits: limits)
    }

    /// Creates an engine over any store.
    ///
    /// - Parameter clock: the clock of leases and replies. Default: the machine's.
    package init(
        over store: any StateStore, limits: ClusterEngineLimits = ClusterEngineLimits(),
        clock: ManualEngineClock? = nil
    ) {
        (self.store, self.limits) = (store, limits)
        live = MemoryEngine(limits: limits, clock: clock)
        // Replies outlive the process, and with it the monotonic clock.
        now = { clock?.milliseconds ?? Self.timeOfDay }
    }

    /// Milliseconds since 1970.
    private static var timeOfDay: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return UInt64(time.tv_sec) * 1_000 + UInt64(time.tv_nsec) / 1_000_000
    }

    /// For tests: ends subscriptions as after a lost connection to an engine.
    package func breakSubscriptions() { live.breakSubscriptions() }

    // MARK: Slots

    /// Acquires a slot without an owner, or with an expired lease.
    public func acquireSlot(
        _ slot: ClusterSlot, for node: ClusterNode, duration: Duration, generation: String?
    ) async throws(ClusterEngineError) -> SlotAcquisition {
        try await inTurn(slot) { () async throws(ClusterEngineError) in
            let fence = try live.fence(of: slot)
            let claim = try await live.acquireSlot(slot, for: node, duration: duration, generation: generation)
            guard case .acquired(let lease) = claim, lease.fence > fence else { return claim }
            do throws(ClusterEngineError) {
                try await write([.put(StoredClusterLog.bytes(lease.fence), Self.fence(slot))])
            } catch {
                // No node owns it under a fence that could occur again.
                _ = try await live.releaseLease(lease)
                throw error
            }
            return claim
        }
    }

    /// Extends a lease to this duration from now; false if it is lost.
    public func renewLease(_ lease: SlotLease, duration: Duration) async throws(ClusterEngineError) -> Bool {
        try await inTurn(lease.slot) { () async throws(ClusterEngineError) in
            try await live.renewLease(lease, duration: duration)
        }
    }

    /// Releases a slot; false if its lease is lost.
    public func releaseLease(_ lease: SlotLease) async throws(ClusterEngineError) -> Bool {
        try await inTurn(lease.slot) { () async throws(ClusterEngineError) in try await live.releaseLease(lease) }
    }

    /// Returns the owner of the slot now.
    public func owner(of slot: ClusterSlot) async throws(ClusterEngineError) -> SlotOwner? {
        try await load()
        return try await live.owner(of: slot)
    }

    private static func fence(_ slot: ClusterSlot) -> StateKey { StateKey(StoredClusterLog.fences, "\(slot.number)") }

    /// Loads the stored fences, once.
    private func load() async throws(ClusterEngineError) {
        if hasLoaded.load(ordering: .acquiring) { return }
        await loading.wait()
        do throws(ClusterEngineError) {
            if !hasLoaded.load(ordering: .acquiring) {
                for slot in ClusterSlot.all {
                    if let bytes = try await get(Self.fence(slot)) {
                        try live.restore(fence: StoredClusterLog.number(bytes), of: slot)
                    }
                }
                hasLoaded.store(true, ordering: .releasing)
            }
        } catch {
            await loading.signal()
            throw error
        }
        await loading.signal()
    }

    /// Runs `body` while no other operation uses the slot or its logs.
    private func inTurn<Result>(
        _ slot: ClusterSlot, _ body: () async throws(ClusterEngineError) -> Result
    ) async throws(ClusterEngineError) -> Result {
        try await load()
        let turn = turns[Int(slot.number)]
        await turn.wait()
        let outcome: Swift.Result<Result, ClusterEngineError>
        do throws(ClusterEngineError) {
            outcome = .success(try await body())
        } catch {
            outcome = .failure(error)
        }
        await turn.signal()
        return try outcome.get()
    }

    // MARK: Logs

    /// Compares, records, appends and publishes in one step.
    public func append(
        _ change: LogAppend, to log: ClusterLog, lease: SlotLease
    ) async throws(ClusterEngineError) -> AppendOutcome {
        try limits.check(change, log, lease)
        return try await inTurn(log.slot) { () async throws(ClusterEngineError) in
            switch try live.refusal(of: lease) {
            case .fenced(let fence): return .fenced(fence)
            case .leaseOver: return .leaseExpired
            case nil: break
            }
            var head = try await head(of: log)
            if let call = change.call, let reply = try await reply(call.id, log, head) { return .repeated(reply) }
            guard change.expectedHead == head.top.offset else { return .headMismatch(head.top.offset) }
            var writes: [StateWrite] = []
            var entry: ClusterLogEntry?
            if let payload = change.payload {
                guard head.top.offset + 1 - head.first < UInt64(limits.entriesPerLog) else { return .full }
                head.top = LogPosition(fence: lease.fence, offset: head.top.offset + 1)
                entry = ClusterLogEntry(head.top, payload)
                writes.append(
                    .put(StoredClusterLog.bytes(lease.fence) + payload, StoredClusterLog.key(log, head.top.offset)))
            }
            if let call = change.call { writes += try await record(call, log, &head) }
            try await write(writes + [.put(head.bytes, StateKey(StoredClusterLog.heads, log.id))])
            if let entry { try live.publish(entry, in: log) }
            return .accepted(head.top.offset)
        }
    }

    /// Stores a snapshot, and deletes entries that it makes unnecessary.
    public func storeSnapshot(
        _ snapshot: [UInt8], at offset: UInt64, of log: ClusterLog, lease: SlotLease, keepingLast: Int
    ) async throws(ClusterEngineError) -> SnapshotOutcome {
        try limits.check(snapshot: snapshot, log, lease)
        return try await inTurn(log.slot) { () async throws(ClusterEngineError) in
            if let refusal = try refusal(of: lease) { return refusal }
            var head = try await head(of: log)
            guard offset >= head.snapshot?.offset ?? 0, let fence = try await fence(at: offset, of: log, head) else {
                return .positionMismatch
            }
            head.snapshot = LogPosition(fence: fence, offset: offset)
            try await write([
                .put(snapshot, StateKey(StoredClusterLog.snapshots, log.id)),
                .put(head.bytes, StateKey(StoredClusterLog.heads, log.id)),
            ])
            // In batches: entries that remain after the end of the process are deleted with the next snapshot.
            let retainedCount = UInt64(max(0, keepingLast))
            let last = offset > retainedCount ? offset - retainedCount : 0
            while head.first <= last {
                let end = min(last, head.first + 499)
                let deletions = (head.first...end).map { StateWrite.delete(StoredClusterLog.key(log, $0)) }
                head.first = end + 1
                try await write(deletions + [.put(head.bytes, StateKey(StoredClusterLog.heads, log.id))])
            }
            return .stored
        }
    }

    /// Removes a log whose newest entry is at `offset`.
    public func removeLog(
        _ log: ClusterLog, at offset: UInt64, lease: SlotLease
    ) async throws(ClusterEngineError) -> SnapshotOutcome {
        try limits.check(log, lease)
        return try await inTurn(log.slot) { () async throws(ClusterEngineError) in
            if let refusal = try refusal(of: lease) { return refusal }
            let head = try await head(of: log)
            guard offset == head.top.offset else { return .positionMismatch }
            try await write(
                try await forgetReplies(of: log) + [
                    .delete(StateKey(StoredClusterLog.snapshots, log.id)),
                    .delete(StateKey(StoredClusterLog.heads, log.id)),
                ])
            // Without a head these entries are unreachable.
            var next = head.first
            while next <= head.top.offset {
                let end = min(head.top.offset, next + 499)
                try await write((next...end).map { .delete(StoredClusterLog.key(log, $0)) })
                next = end + 1
            }
            return .stored
        }
    }

    /// Returns the entries after a position, with a snapshot if necessary.
    public func readLog(
        _ log: ClusterLog, after position: LogPosition?, limit: Int
    ) async throws(ClusterEngineError) -> LogReadResult {
        try limits.check(log)
        return try await inTurn(log.slot) { () async throws(ClusterEngineError) in
            let head = try await head(of: log)
            if let position, try await fence(at: position.offset, of: log, head) == position.fence,
                position.offset + 1 >= head.first
            {
                return LogReadResult(
                    .resumed, try await entries(behind: position.offset, limit, log, head), head: head.top)
            }
            guard let snapshot = head.snapshot else {
                return LogReadResult(.start, try await entries(behind: 0, limit, log, head), head: head.top)
            }
            guard let bytes = try await get(StateKey(StoredClusterLog.snapshots, log.id)) else { throw damaged(log) }
            return LogReadResult(
                .snapshot(ClusterLogSnapshot(snapshot, bytes)),
                try await entries(behind: snapshot.offset, limit, log, head), head: head.top)
        }
    }

    /// Returns the reply that was recorded with a call.
    public func reply(to callID: String, in log: ClusterLog) async throws(ClusterEngineError) -> [UInt8]? {
        try limits.check(log)
        try limits.check(callID: callID)
        return try await inTurn(log.slot) { () async throws(ClusterEngineError) in
            try await reply(callID, log, try await head(of: log))
        }
    }

    // MARK: Persisted state of a log, under the lock of its slot

    private func refusal(of lease: SlotLease) throws(ClusterEngineError) -> SnapshotOutcome? {
        switch try live.refusal(of: lease) {
        case .fenced(let fence): .fenced(fence)
        case .leaseOver: .leaseExpired
        case nil: nil
        }
    }

    private func head(of log: ClusterLog) async throws(ClusterEngineError) -> StoredClusterLog {
        guard let bytes = try await get(StateKey(StoredClusterLog.heads, log.id)) else { return StoredClusterLog() }
        guard let head = StoredClusterLog(bytes) else { throw damaged(log) }
        return head
    }

    /// Returns the fence of an entry; nil if it is unknown or no longer stored.
    private func fence(
        at offset: UInt64, of log: ClusterLog, _ head: StoredClusterLog
    ) async throws(ClusterEngineError) -> UInt64? {
        if offset == head.top.offset { return head.top.fence }
        if let snapshot = head.snapshot, snapshot.offset == offset { return snapshot.fence }
        if offset == 0 { return 0 }
        guard offset >= head.first, offset < head.top.offset else { return nil }
        guard let bytes = try await get(StoredClusterLog.key(log, offset)) else { throw damaged(log) }
        return StoredClusterLog.number(bytes)
    }

    private func entries(
        behind offset: UInt64, _ limit: Int, _ log: ClusterLog, _ head: StoredClusterLog
    ) async throws(ClusterEngineError) -> [ClusterLogEntry] {
        var taken: [ClusterLogEntry] = []
        var left = limits.readBytes
        var next = max(offset + 1, head.first)
        while next <= head.top.offset {
            // In small batches: one entry may be as large as the limit for all of them.
            let end = min(head.top.offset, next + 15)
            let keys = (next...end).map { StoredClusterLog.key(log, $0) }
            let values = try await get(keys)
            for (number, key) in zip(next...end, keys) {
                guard let value = values[key], value.count >= 8 else { throw damaged(log) }
                left -= value.count - 8
                guard taken.isEmpty || taken.count < max(1, limit) && left >= 0 else { return taken }
                let position = LogPosition(fence: StoredClusterLog.number(value), offset: number)
                taken.append(ClusterLogEntry(position, Array(value[8...])))
            }
            next = end + 1
        }
        return taken
    }

    private func reply(
        _ call: String, _ log: ClusterLog, _ head: StoredClusterLog
    ) async throws(ClusterEngineError) -> [UInt8]? {
        guard head.repliesUntil > now() else { return nil }
        return try await get(StateKey(StoredClusterLog.replies(of: log), call))
    }

    /// Records a reply. The oldest reply is deleted when there are too many, and all when their time has elapsed.
    private func record(
        _ call: LogAppend.Call, _ log: ClusterLog, _ head: inout StoredClusterLog
    ) async throws(ClusterEngineError) -> [StateWrite] {
        var writes: [StateWrite] = []
        if head.repliesUntil <= now() {
            writes += try await forgetReplies(of: log)
        } else if head.replies >= UInt64(limits.repliesPerLog) {
            let oldest = StoredClusterLog.position(log, head.replies + 1 - UInt64(limits.repliesPerLog))
            if let name = try await get(oldest) {
                let call = String(decoding: name, as: UTF8.self)
                writes += [.delete(oldest), .delete(StateKey(StoredClusterLog.replies(of: log), call))]
            }
        }
        head.replies += 1
        head.repliesUntil = now() + UInt64(limits.replyLifetime.milliseconds)
        writes += [
            .put(call.reply, StateKey(StoredClusterLog.replies(of: log), call.id)),
            .put(Array(call.id.utf8), StoredClusterLog.position(log, head.replies)),
        ]
        return writes
    }

    private func forgetReplies(of log: ClusterLog) async throws(ClusterEngineError) -> [StateWrite] {
        var writes: [StateWrite] = []
        var last: String?
        while true {
            let page = try await list(StoredClusterLog.positions(of: log), after: last)
            for position in page {
                let call = String(decoding: position.value, as: UTF8.self)
                writes += [.delete(position.key), .delete(StateKey(StoredClusterLog.replies(of: log), call))]
            }
            guard page.count == Self.page else { return writes }
            last = page.last?.key.name
        }
    }

    private func damaged(_ log: ClusterLog) -> ClusterEngineError {
        ClusterEngineError(.damaged, "log '\(log.id)' in the store is damaged")
    }

    // MARK: The store

    private static let page = 100

    private func get(_ key: StateKey) async throws(ClusterEngineError) -> [UInt8]? { try await get([key])[key] }

    private func get(_ keys: [StateKey]) async throws(ClusterEngineError) -> [StateKey: [UInt8]] {
        do throws(StateStoreError) { return try await store.get(keys) } catch { throw Self.failure(error) }
    }

    private func list(_ namespace: String, after: String?) async throws(ClusterEngineError) -> [StateEntry] {
        do throws(StateStoreError) {
            return try await store.list(namespace, prefix: "", after: after, limit: Self.page)
        } catch {
            throw Self.failure(error)
        }
    }

    /// Writes to the store. A write that throws has had no effect.
    private func write(_ writes: [StateWrite]) async throws(ClusterEngineError) {
        do throws(StateStoreError) {
            try await store.write(writes)
            failedWrite.withLock { $0 = nil }
        } catch {
            failedWrite.withLock { $0 = error }
            throw Self.failure(error)
        }
    }

    private static func failure(_ error: StateStoreError) -> ClusterEngineError {
        let code: ClusterEngineError.Code =
            switch error.code {
            case .closed: .closed
            case .damaged: .damaged
            case .tooLarge: .tooLarge
            default: .failed
            }
        return ClusterEngineError(code, error.message)
    }
}
