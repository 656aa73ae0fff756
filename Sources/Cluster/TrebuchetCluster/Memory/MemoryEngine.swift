internal import Platform
internal import Synchronization

/// A coordination store within one process, for tests and previews: the nodes of a test share one object. Its data end
/// with it.
///
/// With a `ManualEngineClock` it is deterministic. Subscribers are called before the causing call returns, unless
/// another thread is already notifying subscribers.
public final class MemoryEngine: ClusterEngine {
    /// The data and the subscribers, under the lock.
    struct Contents {
        var slots = MemorySlots()
        var logs: [ClusterLog: MemoryClusterLog] = [:]
        var tables: [ClusterTable: MemoryTable] = [:]
        var watchers: [ClusterLog: [Int: @Sendable (LogEvent) -> Void]] = [:]
        var tableWatchers: [ClusterTable: [Int: @Sendable (TableEvent) -> Void]] = [:]
        var inboxes: [ClusterNode: [Int: @Sendable (InboxEvent) -> Void]] = [:]
        var subscriptions = 0
        var isClosed = false
        /// The pending notifications of subscribers, in order. They are delivered without the lock, by one thread at a
        /// time.
        var pendingNotifications: [@Sendable () -> Void] = []
        var isNotifying = false
    }

    /// The limits.
    public let limits: ClusterEngineLimits
    private let clock: ManualEngineClock?
    let contents = Mutex(Contents())

    /// Creates a coordination store.
    ///
    /// - Parameter clock: the clock of leases. Default: the machine's monotonic clock.
    public init(limits: ClusterEngineLimits = ClusterEngineLimits(), clock: ManualEngineClock? = nil) {
        self.limits = limits
        self.clock = clock
    }

    private var now: UInt64 { clock?.milliseconds ?? MonotonicClock.now / 1_000_000 }

    // MARK: Nodes

    /// Announces a node, which is live for this duration; it must announce itself again before that.
    public func renewNode(_ node: ClusterNode, info: [UInt8], duration: Duration) async throws(ClusterEngineError) {
        try limits.check(info: info)
        let duration = UInt64(try ClusterEngineLimits.milliseconds(duration))
        try change { $0.slots.announce(node, info, until: $1 + duration, now: $1) }
    }

    /// Removes a node at once.
    public func removeNode(_ node: ClusterNode) async throws(ClusterEngineError) {
        try change { contents, _ in contents.slots.withdraw(node) }
    }

    /// Returns the live nodes, in the order of their names.
    public func nodes() async throws(ClusterEngineError) -> [LiveNode] { try change { $0.slots.liveNodes(now: $1) } }

    /// For tests: expires a node and its leases at once.
    package func expire(_ node: ClusterNode) throws(ClusterEngineError) {
        try change { contents, _ in contents.slots.expire(node) }
    }

    // MARK: Generations

    /// Returns the generation, which changes after `loseEverything()`.
    public func generation() async throws(ClusterEngineError) -> String? {
        try change { contents, _ in contents.slots.generation }
    }

    /// Begins a generation if there is none.
    public func createGeneration() async throws(ClusterEngineError) -> String {
        try change { contents, _ in contents.slots.beginGeneration() }
    }

    // MARK: Slots

    /// Acquires a slot without an owner, or with an expired lease.
    public func acquireSlot(
        _ slot: ClusterSlot, for node: ClusterNode, duration: Duration, generation: String?
    ) async throws(ClusterEngineError) -> SlotAcquisition {
        let duration = UInt64(try ClusterEngineLimits.milliseconds(duration))
        return try attempt { (contents, now) throws(ClusterEngineError) in
            guard generation == nil || generation == contents.slots.generation else { throw .generationLost }
            return contents.slots.acquire(slot, for: node, until: now + duration, now: now)
        }
    }

    /// Extends a lease to this duration from now; false if it is lost.
    public func renewLease(_ lease: SlotLease, duration: Duration) async throws(ClusterEngineError) -> Bool {
        let duration = UInt64(try ClusterEngineLimits.milliseconds(duration))
        return try attempt { (contents, now) throws(ClusterEngineError) in
            try contents.slots.renew(lease, until: now + duration)
        }
    }

    /// Releases a slot; false if its lease is lost.
    public func releaseLease(_ lease: SlotLease) async throws(ClusterEngineError) -> Bool {
        try attempt { (contents, _) throws(ClusterEngineError) in try contents.slots.release(lease) }
    }

    /// Returns the owner of the slot now.
    public func owner(of slot: ClusterSlot) async throws(ClusterEngineError) -> SlotOwner? {
        try change { $0.slots.holder(of: slot, now: $1) }
    }

    // MARK: Logs

    /// Compares, records, appends and publishes in one step.
    public func append(
        _ append: LogAppend, to log: ClusterLog, lease: SlotLease
    ) async throws(ClusterEngineError) -> AppendOutcome {
        try limits.check(append, log, lease)
        let limits = limits
        return try attempt { (contents, now) throws(ClusterEngineError) in
            switch try contents.slots.refusal(of: lease, now: now) {
            case .fenced(let fence): return .fenced(fence)
            case .leaseOver: return .leaseExpired
            case nil: break
            }
            let outcome = contents.logs[log, default: MemoryClusterLog()]
                .append(append, fence: lease.fence, now: now, limits)
            if case .accepted(let offset) = outcome, let payload = append.payload {
                let entry = ClusterLogEntry(LogPosition(fence: lease.fence, offset: offset), payload)
                Self.notifySubscribers(contents.watchers[log], .appended(entry), &contents.pendingNotifications)
            }
            return outcome
        }
    }

    /// Stores a snapshot, and deletes entries that it makes unnecessary.
    public func storeSnapshot(
        _ snapshot: [UInt8], at offset: UInt64, of log: ClusterLog, lease: SlotLease, keepingLast: Int
    ) async throws(ClusterEngineError) -> SnapshotOutcome {
        try limits.check(snapshot: snapshot, log, lease)
        return try attempt { (contents, now) throws(ClusterEngineError) in
            switch try contents.slots.refusal(of: lease, now: now) {
            case .fenced(let fence): return .fenced(fence)
            case .leaseOver: return .leaseExpired
            case nil: break
            }
            return contents.logs[log, default: MemoryClusterLog()]
                .store(snapshot, at: offset, keepingLast: keepingLast)
        }
    }

    /// Removes a log.
    public func removeLog(
        _ log: ClusterLog, at offset: UInt64, lease: SlotLease
    ) async throws(ClusterEngineError) -> SnapshotOutcome {
        try limits.check(log, lease)
        return try attempt { (contents, now) throws(ClusterEngineError) in
            switch try contents.slots.refusal(of: lease, now: now) {
            case .fenced(let fence): return .fenced(fence)
            case .leaseOver: return .leaseExpired
            case nil: break
            }
            guard contents.logs[log]?.top.offset ?? 0 == offset else { return .positionMismatch }
            contents.logs[log] = nil
            return .stored
        }
    }

    /// Returns the entries after a position, with a snapshot if necessary.
    public func readLog(
        _ log: ClusterLog, after position: LogPosition?, limit: Int
    ) async throws(ClusterEngineError) -> LogReadResult {
        try limits.check(log)
        let bytes = limits.readBytes
        return try change { contents, _ in
            (contents.logs[log] ?? MemoryClusterLog()).read(after: position, limit: limit, bytes: bytes)
        }
    }

    /// Returns the reply that was recorded with a call.
    public func reply(to callID: String, in log: ClusterLog) async throws(ClusterEngineError) -> [UInt8]? {
        try limits.check(log)
        try limits.check(callID: callID)
        return try change { $0.logs[log]?.reply(to: callID, now: $1) }
    }

    /// Subscribes to the entries appended to a log.
    public func subscribeToLog(
        _ log: ClusterLog, _ receive: @escaping @Sendable (LogEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription {
        try limits.check(log)
        let number = try change { contents, _ in
            contents.subscriptions += 1
            contents.watchers[log, default: [:]][contents.subscriptions] = receive
            return contents.subscriptions
        }
        return MemorySubscription { [weak self] in
            self?.contents.withLock { contents in
                contents.watchers[log]?[number] = nil
                if contents.watchers[log]?.isEmpty == true { contents.watchers[log] = nil }
            }
        }
    }

    // MARK: Messages

    /// Subscribes to the messages to a node.
    public func subscribeToInbox(
        of node: ClusterNode, _ receive: @escaping @Sendable (InboxEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription {
        let number = try change { contents, _ in
            contents.subscriptions += 1
            contents.inboxes[node, default: [:]][contents.subscriptions] = receive
            return contents.subscriptions
        }
        return MemorySubscription { [weak self] in
            self?.contents.withLock { contents in
                contents.inboxes[node]?[number] = nil
                if contents.inboxes[node]?.isEmpty == true { contents.inboxes[node] = nil }
            }
        }
    }

    /// Delivers a message to the subscribers of the node; false if there are none.
    public func sendMessage(_ message: [UInt8], to node: ClusterNode) async throws(ClusterEngineError) -> Bool {
        try limits.check(message: message)
        return try change { contents, _ in
            Self.notifySubscribers(contents.inboxes[node], .message(message), &contents.pendingNotifications)
            return contents.inboxes[node] != nil
        }
    }

    /// Ends all subscriptions, and fails later requests.
    public func close() async {
        let error = ClusterEngineError(.closed, "the coordination store was closed")
        _ = try? change { contents, _ in
            contents.isClosed = true
            for watchers in contents.watchers.values {
                Self.notifySubscribers(watchers, .ended(error), &contents.pendingNotifications)
            }
            for inbox in contents.inboxes.values {
                Self.notifySubscribers(inbox, .ended(error), &contents.pendingNotifications)
            }
            for watchers in contents.tableWatchers.values {
                Self.notifySubscribers(watchers, .ended(error), &contents.pendingNotifications)
            }
            (contents.watchers, contents.inboxes, contents.tableWatchers) = ([:], [:], [:])
        }
    }

    /// For tests: notifies all subscribers that they may have missed events, as after a lost connection.
    public func breakSubscriptions() {
        _ = try? change { contents, _ in
            for watchers in contents.watchers.values {
                Self.notifySubscribers(watchers, .eventsMissed, &contents.pendingNotifications)
            }
            for inbox in contents.inboxes.values {
                Self.notifySubscribers(inbox, .messagesMissed, &contents.pendingNotifications)
            }
            for watchers in contents.tableWatchers.values {
                Self.notifySubscribers(watchers, .eventsMissed, &contents.pendingNotifications)
            }
        }
    }

    /// For tests: deletes nodes, slots, logs and tables, including fences.
    public func loseEverything() {
        _ = try? change { contents, _ in
            contents.slots.loseEverything()
            (contents.logs, contents.tables) = ([:], [:])
        }
    }

    /// For tests: the newest entries of a log are lost, as by a server that came back with an older file. Owners and fences stay.
    package func loseNewest(_ count: Int, of log: ClusterLog) {
        _ = try? change { contents, _ in contents.logs[log]?.loseNewest(count) }
    }

    // MARK: For an engine that keeps logs elsewhere

    /// The reason to refuse a write under a lease.
    package enum LeaseRejection {
        case fenced(UInt64)
        case leaseOver
    }

    /// Returns the reason to refuse a write under a lease now; nil if it is accepted.
    package func refusal(of lease: SlotLease) throws(ClusterEngineError) -> LeaseRejection? {
        try attempt { (contents, now) throws(ClusterEngineError) in
            switch try contents.slots.refusal(of: lease, now: now) {
            case .fenced(let fence): .fenced(fence)
            case .leaseOver: .leaseOver
            case nil: nil
            }
        }
    }

    package func fence(of slot: ClusterSlot) throws(ClusterEngineError) -> UInt64 {
        try change { contents, _ in contents.slots.fence(of: slot) }
    }

    /// Restores the fence of an earlier process.
    package func restore(fence: UInt64, of slot: ClusterSlot) throws(ClusterEngineError) {
        try change { contents, _ in contents.slots.restore(fence, of: slot) }
    }

    /// Notifies the subscribers of a log of an entry.
    package func publish(_ entry: ClusterLogEntry, in log: ClusterLog) throws(ClusterEngineError) {
        try change { contents, _ in
            Self.notifySubscribers(contents.watchers[log], .appended(entry), &contents.pendingNotifications)
        }
    }

    // MARK: Notifications

    static func notifySubscribers<Event: Sendable>(
        _ subscribers: [Int: @Sendable (Event) -> Void]?, _ event: Event, _ notifications: inout [@Sendable () -> Void]
    ) {
        for (_, receive) in (subscribers ?? [:]).sorted(by: { $0.key < $1.key }) {
            notifications.append { receive(event) }
        }
    }

    func attempt<Answer: Sendable>(
        _ body: (inout Contents, _ now: UInt64) throws(ClusterEngineError) -> Answer
    ) throws(ClusterEngineError) -> Answer {
        try change { contents, now in
            Result { () throws(ClusterEngineError) in try body(&contents, now) }
        }.get()
    }

    func change<Result: Sendable>(
        _ body: (inout Contents, _ now: UInt64) -> Result
    ) throws(ClusterEngineError) -> Result {
        let now = now
        let (result, mustTell): (Result?, Bool) = contents.withLock { contents in
            guard !contents.isClosed else { return (nil, false) }
            let result = body(&contents, now)
            guard !contents.pendingNotifications.isEmpty, !contents.isNotifying else { return (result, false) }
            contents.isNotifying = true
            return (result, true)
        }
        if mustTell { notifyChanges() }
        guard let result else { throw ClusterEngineError(.closed, "the coordination store was closed") }
        return result
    }

    private func notifyChanges() {
        while true {
            let notifications = contents.withLock { contents in
                defer { contents.pendingNotifications = [] }
                contents.isNotifying = !contents.pendingNotifications.isEmpty
                return contents.pendingNotifications
            }
            guard !notifications.isEmpty else { return }
            for notify in notifications { notify() }
        }
    }
}

/// A subscription that calls a closure at its end.
final class MemorySubscription: ClusterSubscription {
    private let end: @Sendable () -> Void

    init(_ end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { end() }

    func cancel() { end() }
}
