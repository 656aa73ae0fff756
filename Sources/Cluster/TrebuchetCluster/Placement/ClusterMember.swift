internal import Platform
internal import Synchronization

/// A node's part in the ownership of slots: announces the node, renews its leases, acquires the slots planned for it,
/// and hands over those of other nodes in small steps.
///
/// All nodes compute the same plan from the live nodes; the coordination store decides who owns a slot. `run()` does
/// all this, and `lease(of:)` returns the lease for writes. While the coordination store is unreachable, a node owns
/// its slots until the leases expire, and acquires slots again later. A process that was suspended finds its leases
/// expired before it acts.
public final class ClusterMember: Sendable {
    /// The state of the member, under the lock.
    struct State {
        var leases: LeaseTable
        var plan = SlotAssignment([])
        var live: [ClusterNode] = []
        /// The number of times that the live nodes were read.
        var liveReads: UInt64 = 0
        /// The announced data of these nodes.
        var infos: [ClusterNode: [UInt8]] = [:]
        /// The number of connections to the coordination store at the last read of the live nodes.
        var connections: Int?
        /// The time until which nodes that were live before a new connection count as live.
        var reconnectedUntil: UInt64 = 0
        var info: [UInt8]
        /// The generation that this member began with; nil until its first round.
        var generation: String?
        var contact = EngineConnectivity()
        /// True if all leases expired because they were renewed too late, until the next lease.
        var hasLapsed = false
        var announcedAt: UInt64?
        var phase = Phase.idle
        var isDraining = false
        var isWithdrawn = false
        var failure: ClusterEngineError?
        /// The time since which no slot is left to hand over. The last releases may be unconfirmed.
        var emptySince: UInt64?
        var waiting: [CheckedContinuation<Void, Never>] = []
        var handovers: [ClusterSlot: Task<Void, Never>] = [:]
        /// The pending notifications of the listener, in order. They are delivered without the lock, by one thread at
        /// a time.
        var pendingChanges: [OwnershipChange] = []
        var isNotifying = false
    }

    /// The phase of the member's lifecycle.
    enum Phase {
        case idle, running, ended
    }

    /// A notification for the listener.
    enum OwnershipChange {
        case assigned(SlotLease)
        case revoking(SlotLease)
        case lost(SlotLease)
    }

    /// The node of this member.
    public let node: ClusterNode
    /// The durations and limits of ownership.
    public let settings: ClusterMemberSettings
    let engine: any ClusterEngine
    let span: UInt64
    let clock: @Sendable () -> UInt64
    let state: Mutex<State>
    weak let listener: (any SlotRebalanceListener)?

    /// Creates a member.
    ///
    /// - Parameters:
    ///   - node: a new incarnation; an incarnation that was a member cannot be one again.
    ///   - info: data of the node for other nodes, for instance an address.
    ///   - listener: is not retained.
    /// - Throws: `invalid` for inconsistent settings.
    public convenience init(
        _ node: ClusterNode, at engine: any ClusterEngine, info: [UInt8] = [],
        settings: ClusterMemberSettings = ClusterMemberSettings(), listener: (any SlotRebalanceListener)?
    ) throws(ClusterEngineError) {
        try self.init(node, at: engine, info: info, settings: settings, listener: listener) {
            MonotonicClock.nowWithSleep
        }
    }

    /// Creates a member with a clock.
    ///
    /// - Parameter clock: returns monotonic nanoseconds.
    package init(
        _ node: ClusterNode, at engine: any ClusterEngine, info: [UInt8] = [], settings: ClusterMemberSettings,
        listener: (any SlotRebalanceListener)?, clock: @escaping @Sendable () -> UInt64
    ) throws(ClusterEngineError) {
        try settings.check()
        self.node = node
        self.engine = engine
        self.settings = settings
        self.listener = listener
        self.clock = clock
        span = (settings.leaseDuration - settings.leaseMargin).nanoseconds
        state = Mutex(State(leases: LeaseTable(span: span), info: info))
    }

    // MARK: Ownership

    /// Returns the lease under which this node may write now; nil if it does not own the slot. Call it again for each
    /// write.
    public func lease(of slot: ClusterSlot) -> SlotLease? {
        let now = clock()
        return state.withLock { $0.leases.lease(of: slot, at: now) }
    }

    /// Returns the lease of a slot that counts as owned, even if it may not be used for writes before its renewal; nil if the
    /// node has lost the slot.
    package func knownLease(of slot: ClusterSlot) -> SlotLease? { state.withLock { $0.leases.known(slot) } }

    /// Returns true if the node owns the slot and is not handing it over, so that new work may begin there.
    package func mayStartWork(in slot: ClusterSlot) -> Bool {
        let now = clock()
        return state.withLock { $0.handovers[slot] == nil && $0.leases.lease(of: slot, at: now) != nil }
    }

    /// The number of owned slots, including those being handed over.
    public var slotCount: Int { state.withLock { $0.leases.count } }

    /// The live nodes at the last round, in the order of their names.
    public var liveNodes: [ClusterNode] { state.withLock { $0.live } }

    /// The live nodes, and the number of times that they were read: the same number means the same reading.
    package var liveNodesRead: (nodes: [ClusterNode], reads: UInt64) { state.withLock { ($0.live, $0.liveReads) } }

    /// True if the node owns the planned number of slots among the nodes that it sees.
    package var ownsPlannedSlots: Bool {
        let planned = state.withLock { $0.plan.slots(of: node).count }
        return planned == slotCount
    }

    /// Returns the planned owner of a slot, among the nodes that this node sees.
    package func plannedOwner(of slot: ClusterSlot) -> ClusterNode? { state.withLock { $0.plan.owner(of: slot) } }

    /// Returns the last announced data of a node; for this node, its current data.
    package func info(of node: ClusterNode) -> [UInt8]? {
        state.withLock { node == self.node ? $0.info : $0.infos[node] }
    }

    /// Sets the data of this node for its next announcement.
    package func updateInfo(_ info: [UInt8]) {
        state.withLock { state in
            state.info = info
            state.announcedAt = nil
        }
    }

    // MARK: Lifecycle

    /// Owns slots until it has been drained, or its task is cancelled. A cancelled member stops at once without
    /// releasing slots, which stay reserved until the leases expire.
    ///
    /// - Throws: `dataLoss` when the coordination store has lost data: then the node owns nothing any more, and this
    ///   member acquires no slots again. `invalid` and `closed` end it too; other errors are retried.
    public func run() async throws(ClusterEngineError) {
        guard state.withLock({ $0.markStarted() }) else {
            if let failure = state.withLock({ $0.failure }) { throw failure }
            return
        }
        await withTaskCancellationHandler {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await self.watchLeases() }
                while !Task.isCancelled, !isOver {
                    await round()
                    if isOver { break }
                    try? await Task.sleep(for: settings.roundInterval)
                }
                group.cancelAll()
            }
        } onCancel: {
            stop()
        }
        stop()
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }

    /// Hands over all slots and withdraws the node; then `run()` returns. If the coordination store is unreachable, it
    /// takes until the leases expire. If `slotWillBeRevoked` does not return, a slot is released after
    /// `ClusterMemberSettings.handoverTimeout`.
    public func drain() async {
        await withCheckedContinuation { continuation in
            beginDraining()
            let isOver = state.withLock { state in
                if state.phase == .running { state.waiting.append(continuation) }
                return state.phase != .running
            }
            if isOver { continuation.resume() }
        }
    }

    /// From the next round on, the member acquires no slots, and hands over all.
    package func beginDraining() { state.withLock { $0.isDraining = true } }

    /// Whether the node hands over all its slots to leave the cluster.
    package var isDraining: Bool { state.withLock { $0.isDraining } }

    /// The number of slots that are in handover now.
    package var leavingSlotCount: Int { state.withLock { $0.leases.leavingCount } }

    /// True if no work is left.
    package var isOver: Bool {
        let now = clock()
        return state.withLock { state in
            if state.failure != nil || state.phase == .ended { return true }
            guard state.isDraining, state.leases.isEmpty else {
                state.emptySince = nil
                return false
            }
            if state.isWithdrawn, state.leases.released.isEmpty { return true }
            // An unanswered release takes effect by itself when the lease expires.
            let since = state.emptySince ?? now
            state.emptySince = since
            return now >= since &+ settings.leaseDuration.nanoseconds
        }
    }

    /// Stops owning all slots, at once.
    private func stop() {
        let waiting = state.withLock { state in
            state.phase = .ended
            state.pendingChanges += state.leases.loseAll().map { .lost($0) }
            defer { state.waiting = [] }
            return state.waiting
        }
        notifyObservers()
        for continuation in waiting { continuation.resume() }
    }

    /// Stops owning all slots because the coordination store is unreliable.
    func fail(_ error: ClusterEngineError) {
        state.withLock { state in
            state.failure = state.failure ?? error
            state.pendingChanges += state.leases.loseAll().map { .lost($0) }
        }
        notifyObservers()
    }

    // MARK: Lease expiry

    /// Reports expired leases, independent of the coordination store.
    private func watchLeases() async {
        while !Task.isCancelled {
            let now = expire()
            let next = state.withLock { $0.leases.nextEnd } ?? .max
            let pause = min(settings.roundInterval, .nanoseconds(Int64(clamping: next > now ? next - now : 0)))
            try? await Task.sleep(for: max(pause, .milliseconds(1)))
        }
    }

    /// Ends expired leases, and returns the time.
    @discardableResult
    func expire() -> UInt64 {
        let now = clock()
        state.withLock { state in
            let over = state.leases.expire(at: now)
            if !over.isEmpty, state.leases.isEmpty { state.hasLapsed = true }
            state.pendingChanges += over.map { .lost($0) }
        }
        notifyObservers()
        return now
    }

    // MARK: The listener

    func notifyObservers() {
        let mustNotify = state.withLock { state in
            guard !state.pendingChanges.isEmpty, !state.isNotifying else { return false }
            state.isNotifying = true
            return true
        }
        guard mustNotify else { return }
        while true {
            let changes = state.withLock { state in
                defer { state.pendingChanges = [] }
                state.isNotifying = !state.pendingChanges.isEmpty
                return state.pendingChanges
            }
            guard !changes.isEmpty else { return }
            for item in changes {
                switch item {
                case .assigned(let lease): listener?.slotAssigned(lease)
                case .lost(let lease): listener?.slotLost(lease)
                case .revoking(let lease): revoke(lease)
                }
            }
        }
    }

    private func revoke(_ lease: SlotLease) {
        let listener = listener
        state.withLock { state in
            // Under the lock, so that the end of the task finds the entry.
            state.handovers[lease.slot] = Task {
                await listener?.slotWillBeRevoked(lease)
                await self.releaseSlot(lease)
                self.state.withLock { $0.handovers[lease.slot] = nil }
            }
        }
    }
}

extension ClusterMember.State {
    fileprivate mutating func markStarted() -> Bool {
        guard phase == .idle else { return false }
        phase = .running
        return true
    }
}

/// Handles the beginning and the end of a node's ownership of slots. Notifications of one slot are sequential, on any
/// thread; synchronous methods must not block it.
public protocol SlotRebalanceListener: AnyObject, Sendable {
    /// The node has got the slot; no other code here knows before this returns. The node may still end up without it.
    func slotWillBeAssigned(_ lease: SlotLease)

    /// The node owns the slot from now on. A lease may come again, after it was lost and no other node has
    /// taken the slot.
    func slotAssigned(_ lease: SlotLease)

    /// The slot is handed over to another node. Until this returns the node still owns it: stop its actors, and write
    /// the state to persist. When it exceeds `ClusterMemberSettings.handoverTimeout`, or the lease is lost meanwhile,
    /// `slotLost` is called. Otherwise no further notification of this lease follows.
    func slotWillBeRevoked(_ lease: SlotLease) async

    /// The node no longer owns the slot, and another node may own it already: stop its actors, and write nothing.
    func slotLost(_ lease: SlotLease)
}

extension SlotRebalanceListener {
    /// The default: no action.
    public func slotWillBeAssigned(_ lease: SlotLease) {}
}
