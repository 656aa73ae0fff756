/// A coordination store, which all nodes of a cluster share: live nodes, owners of slots, logs, messages between
/// nodes, and tables without an owner.
///
/// The coordination store orders the requests of nodes. Only its clock counts for leases. Safety does not depend on
/// the clock, though: each write carries its owner and its fence, which are compared in the same step. A node that was
/// wrongly considered gone is refused.
///
/// All methods suspend rather than block, and throw a `ClusterEngineError`:
/// - After `unavailable` the request had no effect.
/// - After `unknownOutcome` it may have had an effect.
/// - `dataLoss` means that the fence of a lease is higher than any known to the coordination store.
///
/// Subscribers are called on a thread of the coordination store, in order; they must not block it.
public protocol ClusterEngine: ClusterTables {
    /// The number of connections to the server for writes so far. After each new one the server may have less data than before, so
    /// nodes compare the ends of their logs. Default: 0.
    var connectionCount: Int { get }

    // MARK: Nodes

    /// Announces that a node is live, for this duration from now. The node must announce itself again before that.
    ///
    /// - Parameter info: Data of the node for other nodes, for instance an address.
    func renewNode(_ node: ClusterNode, info: [UInt8], duration: Duration) async throws(ClusterEngineError)

    /// Removes a node from the live nodes. The slots that it owns are not released.
    func removeNode(_ node: ClusterNode) async throws(ClusterEngineError)

    /// Returns the live nodes, by the clock of the coordination store, in the order of their names.
    func nodes() async throws(ClusterEngineError) -> [LiveNode]

    // MARK: Generations

    /// Returns the generation of the data in the coordination store, which changes after the store was emptied and
    /// used again; nil if none has begun.
    func generation() async throws(ClusterEngineError) -> String?

    /// Begins a generation if there is none, and returns the current one. Fences of a later generation are higher than
    /// those of an earlier one.
    func createGeneration() async throws(ClusterEngineError) -> String

    // MARK: Slots

    /// Acquires a slot without an owner, or with an expired lease. The fence is incremented with each owner, and never falls.
    ///
    /// An owner that acquires again gets the same fence with a new lease, so a retry after an unknown outcome is safe.
    ///
    /// - Parameters:
    ///   - duration: The duration of the lease, from the receipt of the request. The owner stops, by its own clock, that long after
    ///     it sent the request, minus a margin for clock drift.
    ///   - generation: The generation that the node began with; nil is not compared.
    /// - Throws: `dataLoss` when the slot belongs to another generation, or is unknown. A running node does not use a coordination
    ///   store that was emptied.
    func acquireSlot(
        _ slot: ClusterSlot, for node: ClusterNode, duration: Duration, generation: String?
    ) async throws(ClusterEngineError) -> SlotAcquisition

    /// Extends a lease to this duration from now. Returns false if another node has taken the slot, which ends the
    /// lease for good.
    func renewLease(_ lease: SlotLease, duration: Duration) async throws(ClusterEngineError) -> Bool

    /// Releases a slot at once. Returns false if the lease was lost before.
    func releaseLease(_ lease: SlotLease) async throws(ClusterEngineError) -> Bool

    /// Returns the owner of a slot; nil if there is none.
    func owner(of slot: ClusterSlot) async throws(ClusterEngineError) -> SlotOwner?

    // MARK: Logs

    /// A Boolean value that indicates whether writes count only after a confirmation, for example by replicas. Until a later write
    /// has been confirmed, data read there may then be lost with its server. Default: false.
    var confirmsWrites: Bool { get }

    /// Appends to a log, in one step: compares owner, fence, lease and top, records the reply of the call, writes the
    /// entry and publishes it.
    func append(
        _ change: LogAppend, to log: ClusterLog, lease: SlotLease
    ) async throws(ClusterEngineError) -> AppendOutcome

    /// Stores a snapshot of a log's entries up to the one at `offset`, and deletes entries that it makes unnecessary.
    ///
    /// - Parameter keepingLast: The number of entries up to `offset` that are kept, for readers that are not far behind.
    func storeSnapshot(
        _ snapshot: [UInt8], at offset: UInt64, of log: ClusterLog, lease: SlotLease, keepingLast: Int
    ) async throws(ClusterEngineError) -> SnapshotOutcome

    /// Removes a log whose newest entry is at `offset`, with its recorded replies; otherwise the outcome is
    /// `positionMismatch`. Later entries begin with offset 1 again, so no reader may continue from an earlier position.
    func removeLog(
        _ log: ClusterLog, at offset: UInt64, lease: SlotLease
    ) async throws(ClusterEngineError) -> SnapshotOutcome

    /// Returns the entries after `position`. If the position is not in the log, returns a snapshot and the entries after it.
    ///
    /// - Parameters:
    ///   - position: The position; nil for a reader without entries.
    ///   - limit: The maximum number of entries; there may be fewer if they are large. `LogReadResult.isComplete` is true if no more
    ///     follow.
    func readLog(
        _ log: ClusterLog, after position: LogPosition?, limit: Int
    ) async throws(ClusterEngineError) -> LogReadResult

    /// Returns the reply that was recorded with a call; nil if there is none, or none any more.
    func reply(to callID: String, in log: ClusterLog) async throws(ClusterEngineError) -> [UInt8]?

    /// Subscribes to the entries appended to a log. After it returns, no later entry is missed without an event. So
    /// subscribe first, then read; order entries by their offsets, and read again when one is missing.
    func subscribeToLog(
        _ log: ClusterLog, _ receive: @escaping @Sendable (LogEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription

    // MARK: Messages

    /// Subscribes to the messages to a node.
    func subscribeToInbox(
        of node: ClusterNode, _ receive: @escaping @Sendable (InboxEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription

    /// Sends a message to a node, with at-most-once delivery. Returns false if there is no subscriber.
    func sendMessage(_ message: [UInt8], to node: ClusterNode) async throws(ClusterEngineError) -> Bool

    /// Ends all subscriptions, and fails later requests.
    func close() async
}

/// A subscription that lasts until it is cancelled or released.
public protocol ClusterSubscription: AnyObject, Sendable {
    /// Ends the subscription. A running call may still arrive.
    func cancel()
}

extension ClusterEngine {
    /// The default: false.
    public var confirmsWrites: Bool { false }

    /// The default: 0. An in-process coordination store loses nothing through a connection.
    public var connectionCount: Int { 0 }

    /// Acquires a slot in any generation.
    public func acquire(
        _ slot: ClusterSlot, for node: ClusterNode, duration: Duration
    ) async throws(ClusterEngineError) -> SlotAcquisition {
        try await acquireSlot(slot, for: node, duration: duration, generation: nil)
    }

    /// Reads at most 1,000 entries.
    public func read(
        _ log: ClusterLog, after position: LogPosition?
    ) async throws(ClusterEngineError) -> LogReadResult { try await readLog(log, after: position, limit: 1_000) }

    /// Stores a snapshot and keeps the last 1,000 entries.
    public func store(
        _ snapshot: [UInt8], at offset: UInt64, of log: ClusterLog, under lease: SlotLease
    ) async throws(ClusterEngineError) -> SnapshotOutcome {
        try await storeSnapshot(snapshot, at: offset, of: log, lease: lease, keepingLast: 1_000)
    }
}

/// A coordination store that does not support tables.
package protocol TablelessEngine: ClusterEngine {}

/// A coordination store whose data is in a file of this machine.
package protocol FileBackedEngine: ClusterEngine {
    /// Throws if the file is unreadable or no longer at its path; for readiness.
    func checkPath() async throws(ClusterEngineError)
}
