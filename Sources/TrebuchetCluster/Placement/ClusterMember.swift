internal import Platform
internal import Synchronization

/// A node's part in owning slots: it says that the node lives, renews its leases, takes the slots that are its by the plan, and gives away
/// those that are others' in small steps.
///
/// All nodes make the same plan from the nodes that live; the engine decides who gets a slot. `run()` does it all, and `lease(of:)` is what
/// may be written under. While the engine is out of reach a node owns its slots as long as the leases last, and takes slots again when it
/// is there. A process that stood still finds its leases over before it does anything.
public final class ClusterMember: Sendable {
    struct State {
        var book: LeaseBook
        var plan = SlotPlan([])
        var live: [ClusterNode] = []
        /// What those say of themselves.
        var infos: [ClusterNode: [UInt8]] = [:]
        var info: [UInt8]
        /// The generation of the engine that this member began with; nil until its first round.
        var generation: String?
        var contact = EngineContact()
        /// Whether all leases ended because the engine renewed them too late; until it gives the next one.
        var hasLapsed = false
        var announcedAt: UInt64?
        var phase = Phase.idle
        var isDraining = false
        var isWithdrawn = false
        var failure: ClusterEngineError?
        /// Since when there is nothing left to give away; perhaps the engine has not said yet that it knows.
        var emptySince: UInt64?
        var waiting: [CheckedContinuation<Void, Never>] = []
        var handovers: [ClusterSlot: Task<Void, Never>] = [:]
        /// What the listener is to be told, in its order; it is told without the lock, by one thread at a time.
        var news: [News] = []
        var isTelling = false
    }

    enum Phase {
        case idle, running, ended
    }

    enum News {
        case assigned(SlotLease)
        case revoking(SlotLease)
        case lost(SlotLease)
    }

    /// The node whose part it is.
    public let node: ClusterNode
    /// How long it owns slots, and how many it gives away at once.
    public let settings: ClusterMemberSettings
    let engine: any ClusterEngine
    let span: UInt64
    let clock: @Sendable () -> UInt64
    let state: Mutex<State>
    weak let listener: (any SlotRebalanceListener)?

    /// - Parameters:
    ///   - node: a life of its own: one that was a member is not made one again.
    ///   - info: what other nodes are to know of it, an address for instance.
    ///   - listener: is not held.
    /// - Throws: `invalid` for settings that do not fit each other.
    public convenience init(
        _ node: ClusterNode, at engine: any ClusterEngine, info: [UInt8] = [],
        settings: ClusterMemberSettings = ClusterMemberSettings(), listener: (any SlotRebalanceListener)?
    ) throws(ClusterEngineError) {
        try self.init(node, at: engine, info: info, settings: settings, listener: listener) {
            MonotonicClock.nowWithSleep
        }
    }

    /// - Parameter clock: nanoseconds, never less than before.
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
        state = Mutex(State(book: LeaseBook(span: span), info: info))
    }

    // MARK: What is owned

    /// The lease under which this node may write now; nil when it does not own the slot. Ask again for each write.
    public func lease(of slot: ClusterSlot) -> SlotLease? {
        let now = clock()
        return state.withLock { $0.book.lease(of: slot, at: now) }
    }

    /// Whether it owns the slot and is not giving it away: whether something new may begin there.
    package func keeps(_ slot: ClusterSlot) -> Bool {
        let now = clock()
        return state.withLock { $0.handovers[slot] == nil && $0.book.lease(of: slot, at: now) != nil }
    }

    /// How many slots it owns, those that it is giving away among them.
    public var slotCount: Int { state.withLock { $0.book.count } }

    /// The nodes that lived when it looked last, in the order of their names.
    public var liveNodes: [ClusterNode] { state.withLock { $0.live } }

    /// Whether it owns as many slots as it is to have among the nodes that it sees.
    package var ownsItsPart: Bool {
        let planned = state.withLock { $0.plan.slots(of: node).count }
        return planned == slotCount
    }

    /// Which node is to own a slot, of those that it sees.
    package func plannedOwner(of slot: ClusterSlot) -> ClusterNode? { state.withLock { $0.plan.owner(of: slot) } }

    /// What a node said of itself when it was seen living last; of this one, what it says.
    package func info(of node: ClusterNode) -> [UInt8]? {
        state.withLock { node == self.node ? $0.info : $0.infos[node] }
    }

    /// What other nodes are to know of this one from its next announcement on.
    package func tell(_ info: [UInt8]) {
        state.withLock { state in
            state.info = info
            state.announcedAt = nil
        }
    }

    // MARK: Its life

    /// Owns slots until it has been drained, or its task is cancelled. Cancelled it stops at once and gives nothing back: the engine keeps
    /// its slots for it until the leases are over.
    ///
    /// - Throws: `dataLoss` when the engine has lost what it kept: then nothing is owned any more, and this member takes nothing again.
    ///   Other errors of the engine are waited for; `invalid` and `closed` end it too.
    public func run() async throws(ClusterEngineError) {
        guard state.withLock({ $0.begin() }) else {
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

    /// Gives all slots away and says that the node goes; then `run()` returns. With an engine that is out of reach it takes as long as
    /// leases last; with `slotWillBeRevoked` that does not return, at most `ClusterMemberSettings.handoverTimeout` for each
    /// `handoversAtOnce` slots.
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

    /// From the next round on it takes nothing, and gives away all.
    package func beginDraining() { state.withLock { $0.isDraining = true } }

    /// Whether there is nothing more to do.
    package var isOver: Bool {
        let now = clock()
        return state.withLock { state in
            if state.failure != nil || state.phase == .ended { return true }
            guard state.isDraining, state.book.isEmpty else {
                state.emptySince = nil
                return false
            }
            if state.isWithdrawn, state.book.released.isEmpty { return true }
            // What an engine does not answer it forgets by itself when the time is over.
            let since = state.emptySince ?? now
            state.emptySince = since
            return now >= since &+ settings.leaseDuration.nanoseconds
        }
    }

    /// Owns nothing any more, at once.
    private func stop() {
        let waiting = state.withLock { state in
            state.phase = .ended
            state.news += state.book.loseAll().map { .lost($0) }
            defer { state.waiting = [] }
            return state.waiting
        }
        tell()
        for continuation in waiting { continuation.resume() }
    }

    /// Stops owning because the engine cannot be relied on.
    func fail(_ error: ClusterEngineError) {
        state.withLock { state in
            state.failure = state.failure ?? error
            state.news += state.book.loseAll().map { .lost($0) }
        }
        tell()
    }

    // MARK: Leases that end

    /// Tells of leases whose time is over, whatever the engine does meanwhile.
    private func watchLeases() async {
        while !Task.isCancelled {
            let now = expire()
            let next = state.withLock { $0.book.nextEnd } ?? .max
            let pause = min(settings.roundInterval, .nanoseconds(Int64(clamping: next > now ? next - now : 0)))
            try? await Task.sleep(for: max(pause, .milliseconds(1)))
        }
    }

    /// Ends leases whose time is over; gives the time.
    @discardableResult
    func expire() -> UInt64 {
        let now = clock()
        state.withLock { state in
            let over = state.book.expire(at: now)
            if !over.isEmpty, state.book.isEmpty { state.hasLapsed = true }
            state.news += over.map { .lost($0) }
        }
        tell()
        return now
    }

    // MARK: The listener

    func tell() {
        let isMine = state.withLock { state in
            guard !state.news.isEmpty, !state.isTelling else { return false }
            state.isTelling = true
            return true
        }
        guard isMine else { return }
        while true {
            let news = state.withLock { state in
                defer { state.news = [] }
                state.isTelling = !state.news.isEmpty
                return state.news
            }
            guard !news.isEmpty else { return }
            for item in news {
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
            // In the lock, so that its end finds it there.
            state.handovers[lease.slot] = Task {
                await listener?.slotWillBeRevoked(lease)
                await self.letGo(lease)
                self.state.withLock { $0.handovers[lease.slot] = nil }
            }
        }
    }
}

extension ClusterMember.State {
    fileprivate mutating func begin() -> Bool {
        guard phase == .idle else { return false }
        phase = .running
        return true
    }
}

/// What a node does when it comes to own slots, and when it does no more. Of one slot it is told in order, one thing after the other, from
/// whichever thread; what does not suspend must not block it.
public protocol SlotRebalanceListener: AnyObject, Sendable {
    /// The engine has given the node the slot; nobody here knows it before this returns. The node may yet come to end instead.
    func slotWillBeAssigned(_ lease: SlotLease)

    /// The node owns the slot from now on. The same lease may come a second time, after it was lost and nobody else has taken it.
    func slotAssigned(_ lease: SlotLease)

    /// The slot goes to another node. Until this returns the node still owns it: stop what lives there, and write what is to be kept. When
    /// it takes longer than `ClusterMemberSettings.handoverTimeout`, or the lease is lost meanwhile, `slotLost` is called; otherwise
    /// nothing more comes of this lease.
    func slotWillBeRevoked(_ lease: SlotLease) async

    /// The node does not own the slot any more, and perhaps another does already: stop what lives there, and write nothing.
    func slotLost(_ lease: SlotLease)
}

extension SlotRebalanceListener {
    /// Does nothing.
    public func slotWillBeAssigned(_ lease: SlotLease) {}
}
