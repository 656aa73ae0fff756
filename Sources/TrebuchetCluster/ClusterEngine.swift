/// What many nodes share: which of them live, who owns which slot, the logs of what is owned, and ways to tell each other something;
/// and tables, which nobody owns.
///
/// An engine orders what nodes do to it. Its clock is the only one that leases go by. Safety does not rest on it, though: each write
/// carries its owner and its fence, which the engine compares in the same step. A node that was thought to be gone, and was
/// not, is refused.
///
/// All functions suspend rather than block, and throw a `ClusterEngineError`: after `unavailable` nothing was done, after
/// `unknownOutcome` it may have been, and `dataLoss` says that the fence of a lease is higher than any that the engine knows of. What subscribers get is called on a thread of the engine's, in order; they must not block it.
public protocol ClusterEngine: ClusterTables {
    /// How many connections to the server that writes go to were made so far. After each new one the server may have come back with less
    /// than it had, so nodes compare the ends of their logs. Default: 0.
    var connectionCount: Int { get }

    // MARK: Nodes

    /// Says that a node lives, for so long from now; again before that is over.
    ///
    /// - Parameter info: what other nodes are to know of it, an address for instance.
    func announce(_ node: ClusterNode, info: [UInt8], lasting: Duration) async throws(ClusterEngineError)

    /// Says that a node goes. Slots that it owns are not released by that.
    func withdraw(_ node: ClusterNode) async throws(ClusterEngineError)

    /// The nodes that live, by the engine's clock, in the order of their names.
    func nodes() async throws(ClusterEngineError) -> [LiveNode]

    // MARK: Generations

    /// The generation of what the engine keeps: another one after the engine was emptied and used again; nil where none has begun.
    func generation() async throws(ClusterEngineError) -> String?

    /// Begins a generation where there is none, and returns the current one. Fences of a later generation are higher than those of an earlier one.
    func beginGeneration() async throws(ClusterEngineError) -> String

    // MARK: Slots

    /// Takes a slot that nobody owns, or whose lease is over. The fence rises by one with each owner, and never falls.
    ///
    /// The owner who asks again gets the same fence, and its lease anew: so it is safe to ask again after an unknown outcome.
    ///
    /// - Parameters:
    ///   - lasting: from when the engine gets it. So the owner stops, by its own clock, that long after it asked, and a
    ///     margin earlier for clocks that do not run alike.
    ///   - generation: the one that the node began with; nil is not compared.
    /// - Throws: `dataLoss` when the slot is of another generation, or the engine does not know it any more: a running node does not adopt
    ///   an engine that was emptied.
    func acquire(
        _ slot: ClusterSlot, for node: ClusterNode, lasting: Duration, in generation: String?
    ) async throws(ClusterEngineError) -> SlotClaim

    /// Lets a lease last so long from now, unless somebody else has taken the slot: then it is false, and the lease is lost for ever.
    func renew(_ lease: SlotLease, lasting: Duration) async throws(ClusterEngineError) -> Bool

    /// Gives a slot back at once. False when the lease was lost before.
    func release(_ lease: SlotLease) async throws(ClusterEngineError) -> Bool

    /// Who owns a slot; nil when nobody does.
    func holder(of slot: ClusterSlot) async throws(ClusterEngineError) -> SlotHolder?

    // MARK: Logs

    /// Whether what is written counts only once it is confirmed, by replicas for one: then what is found there may yet be lost with the
    /// server that has it, until something that was written behind it has been confirmed. Default: false.
    var confirms: Bool { get }

    /// Appends to a log: owner, fence, lease and top are compared, the reply of the call is recorded, the entry is written and published,
    /// all in one step.
    func append(
        _ change: LogAppend, to log: ClusterLog, under lease: SlotLease
    ) async throws(ClusterEngineError) -> AppendOutcome

    /// Keeps the whole of what a log's entries make, up to the one at `offset`, and forgets entries that it makes needless.
    ///
    /// - Parameter keepingLast: so many entries up to `offset` are kept, for readers who are not far behind.
    func store(
        _ snapshot: [UInt8], at offset: UInt64, of log: ClusterLog, under lease: SlotLease, keepingLast: Int
    ) async throws(ClusterEngineError) -> SnapshotOutcome

    /// Forgets a log whose newest entry is the one at `offset`, with the replies that were recorded with it; else the outcome is
    /// `misplaced`. What is appended then has offset 1 again: nobody may read on from a position of before.
    func remove(
        _ log: ClusterLog, at offset: UInt64, under lease: SlotLease
    ) async throws(ClusterEngineError) -> SnapshotOutcome

    /// What a reader lacks who has all up to `position`: entries, or a snapshot and entries behind it where it has been somewhere else.
    ///
    /// - Parameters:
    ///   - position: nil for a reader who has nothing.
    ///   - limit: at most so many entries; there may be fewer where they are large. `LogReading.isComplete` says whether that was all.
    func read(
        _ log: ClusterLog, after position: LogPosition?, limit: Int
    ) async throws(ClusterEngineError) -> LogReading

    /// The reply that was recorded with a call; nil when there is none (any more).
    func reply(to callID: String, in log: ClusterLog) async throws(ClusterEngineError) -> [UInt8]?

    /// Listens to what is appended to a log. When it returns, nothing that is appended from now on is missed without a word. So listen
    /// first, then read; order entries by their offsets, and where one is missing read again.
    func watch(
        _ log: ClusterLog, _ receive: @escaping @Sendable (LogEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription

    // MARK: Messages

    /// Listens to what is sent to a node.
    func listen(
        as node: ClusterNode, _ receive: @escaping @Sendable (InboxEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription

    /// Sends a message to a node, which gets it at most once. False when nobody listens there.
    func send(_ message: [UInt8], to node: ClusterNode) async throws(ClusterEngineError) -> Bool

    /// Ends all subscriptions, and all that is asked from now on.
    func close() async
}

/// Goes on until it is cancelled or nobody holds it any more.
public protocol ClusterSubscription: AnyObject, Sendable {
    /// Ends it; a call that is under way may still come.
    func cancel()
}

extension ClusterEngine {
    /// False.
    public var confirms: Bool { false }

    /// 0: an engine within the process loses nothing by a connection.
    public var connectionCount: Int { 0 }

    /// The same, in whatever generation.
    public func acquire(
        _ slot: ClusterSlot, for node: ClusterNode, lasting: Duration
    ) async throws(ClusterEngineError) -> SlotClaim { try await acquire(slot, for: node, lasting: lasting, in: nil) }

    /// The same, with at most 1,000 entries.
    public func read(
        _ log: ClusterLog, after position: LogPosition?
    ) async throws(ClusterEngineError) -> LogReading { try await read(log, after: position, limit: 1_000) }

    /// The same, with the last 1,000 entries kept.
    public func store(
        _ snapshot: [UInt8], at offset: UInt64, of log: ClusterLog, under lease: SlotLease
    ) async throws(ClusterEngineError) -> SnapshotOutcome {
        try await store(snapshot, at: offset, of: log, under: lease, keepingLast: 1_000)
    }
}
