package import Bytes
package import Synchronization
internal import Platform
internal import Transports
internal import TrebuchetWire

/// The part of an actor system for one reactor: coders, and the states that changed in this turn.
///
/// `@unchecked Sendable`: accessed only on its reactor.
package final class SystemShard: EndOfTurnTask, @unchecked Sendable {
    package let reactor: any EventLoop
    /// The isolation for the tasks of calls.
    let isolation: LoopIsolation
    /// The server's shard on this reactor, until it has shut down. Set before the server listens. Read and written in one step,
    /// so access needs no exclusivity check.
    @exclusivity(unchecked) package var server: AnyObject?
    /// The `CallQueue` of this reactor.
    weak var callQueue: AnyObject?
    /// The budget in which large versions of states are counted while they are needed. Set before actors are exposed.
    package var memory: MemoryBudget?
    /// `ServerLimits.streams.resumeRetention`. Set before actors are exposed.
    package var resumeTime = Duration.seconds(30)
    /// The metrics of this reactor.
    package let counts = ShardMetrics()
    /// The event bus. Set before actors are exposed. Read and written in one step, so access needs no exclusivity check.
    @exclusivity(unchecked) package var events = EventBus()
    private var userInfo: [CodingUserInfoKey: any Sendable]
    package private(set) var coder: ValueCoder
    /// The changed states, in the order of their changes.
    private var markedSources: [StreamProducer] = []
    /// The number of states that were appended to `markedSources` so far.
    private var markedCount: UInt64 = 0
    /// Closures that wait until this many states are published.
    private var publicationWaiters: [(UInt64, () -> Void)] = []
    /// Empty, with the capacity of an earlier turn: most calls change a state, and this avoids an allocation for each.
    private var spareSources: [StreamProducer] = []
    /// Broadcasters whose subscribers are to be served; those before `flushed` are done.
    private var markedBroadcasters: [Broadcaster] = []
    private var flushed = 0
    let commonFrames = SharedFrameCache()
    /// The broadcasters of filters whose state is evaluated on another thread.
    private var broadcastersInEvaluation: Set<ObjectIdentifier> = []
    private var broadcasters: [ObjectIdentifier: Broadcaster] = [:]
    private var isQueued = false
    private var isContinuationQueued = false
    /// Set while subscribers wait for a version that others received in an earlier turn.
    private var isSending = false
    /// True if a state has changed and a subscriber has not received it. Atomic for the reason given for the atomics of
    /// `ActorInstance`.
    package let hasMarked = Atomic<Bool>(false)
    /// The changed states.
    package var changes = ChangedStreamQueue()
    /// The bytes that may still be encoded before the end of the turn, or until waiting subscribers are up to date.
    private var eagerBytes = EncodeBudget.perTurn

    /// The initial value of `eagerBytes`.
    private var budget = EncodeBudget.perTurn
    private var turnsOfSending = 0
    private static let maximumSendTurns = 16
    /// The time of one turn, in nanoseconds, after which no further state is encoded.
    private static let publicationTime: UInt64 = 1_000_000

    init(_ reactor: any EventLoop, userInfo: [CodingUserInfoKey: any Sendable]) {
        self.reactor = reactor
        isolation = LoopIsolation(reactor)
        self.userInfo = userInfo
        coder = ValueCoder(userInfo: userInfo)
    }

    /// Releases the coders after the server or client was released, so that the actor system they refer to can be freed.
    package func releaseCoders() {
        userInfo = [:]
        coder = ValueCoder()
    }

    /// Returns a coder for a task that leaves the reactor.
    func makeCoder() -> ValueCoder { ValueCoder(userInfo: userInfo) }

    /// Returns whether a state's actor lives on this reactor.
    package func isHome(of source: StreamProducer) -> Bool { source.home === self }

    func mark(_ source: StreamProducer) {
        markedSources.append(source)
        markedCount += 1
        changes.recordChange(source.root)
        queue()
    }

    /// Schedules a broadcaster: its subscribers are served at the end of the turn, or of later turns if there are many.
    func mark(_ broadcaster: Broadcaster) {
        markedBroadcasters.append(broadcaster)
        queue()
    }

    /// Records that a broadcaster has an update for its subscribers.
    func didChange(_ broadcaster: Broadcaster) { changes.recordChange(broadcaster.producer.root) }

    /// True if a filter of a subscriber on this reactor is evaluated on another thread.
    package var hasEvaluations: Bool { !broadcastersInEvaluation.isEmpty }

    /// Records whether a broadcaster waits for an evaluation.
    func setInEvaluation(_ broadcaster: Broadcaster, _ isInEvaluation: Bool) {
        let key = ObjectIdentifier(broadcaster)
        if isInEvaluation ? broadcastersInEvaluation.insert(key).inserted : broadcastersInEvaluation.remove(key) != nil
        {
            queue()
        }
    }

    private func queue() {
        hasMarked.store(true, ordering: .relaxed)
        guard !isQueued else { return }
        isQueued = true
        reactor.atEndOfTurn(self)
    }

    /// Passes the changed states to their broadcasters on all reactors, for the time of one step. The others follow in the next
    /// turn.
    ///
    /// - Returns: True if no state is left.
    @discardableResult
    package func publishMarked() -> Bool {
        guard !markedSources.isEmpty else { return true }
        var sources: [StreamProducer] = []
        swap(&sources, &spareSources)
        swap(&sources, &markedSources)
        publish(sources)
        sources.removeAll(keepingCapacity: true)
        swap(&sources, &spareSources)
        return markedSources.isEmpty
    }

    /// Runs `body` when the states that have changed up to now are published, or immediately.
    package func whenPublished(_ body: @escaping () -> Void) {
        guard !markedSources.isEmpty else { return body() }
        publicationWaiters.append((markedCount, body))
    }

    private func resumePublicationWaiters() {
        let published = markedCount &- UInt64(markedSources.count)
        while let (count, body) = publicationWaiters.first, count <= published {
            publicationWaiters.removeFirst()
            body()
        }
    }

    /// Publishes the oldest marked states for the time of one step. The clock is read between two states only, as most calls
    /// change one.
    private func publish(_ sources: [StreamProducer]) {
        var start: UInt64 = 0
        for index in sources.indices {
            if index > 0 {
                let now = MonotonicClock.now
                if index == 1 { start = now }
                if now &- start > Self.publicationTime {
                    markedSources.insert(contentsOf: sources[index...], at: 0)
                    continueInNextTurn()
                    break
                }
            }
            eagerBytes -= sources[index].publish()
        }
        resumePublicationWaiters()
    }

    /// Publishes the changes of a call at its end as a separate version, within the turn's budget.
    package func callDidEnd() {
        if eagerBytes > 0 { publishMarked() }
    }

    package func endOfTurn() {
        if isSending, eagerBytes <= 0, publicationWaiters.isEmpty { publishRemaining() } else { publishMarked() }
        let hasReachedAll = flush()
        isQueued = false
        isSending = !markedBroadcasters.isEmpty
        turnsOfSending += 1
        if hasReachedAll || !isSending { refillBudget() }
        if isSending || !markedSources.isEmpty { continueInNextTurn() }
    }

    /// Called after all subscribers were served. Subscribers that already wait for this many versions receive the rest as one.
    /// If that takes long, the budget was too large and is halved.
    private func refillBudget() {
        budget =
            turnsOfSending > Self.maximumSendTurns
            ? max(EncodeBudget.minimumPerUpdate, budget / 2) : min(EncodeBudget.perTurn, budget * 2)
        eagerBytes = budget
        turnsOfSending = 0
    }

    /// Publishes the changed states, except those whose versions are still being sent: their changes become one version
    /// afterwards.
    private func publishRemaining() {
        var sources: [StreamProducer] = []
        swap(&sources, &markedSources)
        for source in sources where source.isBeingSent { markedSources.append(source) }
        publish(sources.filter { !$0.isBeingSent })
    }

    private func continueInNextTurn() {
        guard !isContinuationQueued else { return }
        isContinuationQueued = true
        // In a later task, so that other input gets its share.
        reactor.execute {
            self.isContinuationQueued = false
            self.queue()
        }
    }

    /// Serves subscribers within the time slice. Returns whether the waiting subscribers of some state are up to date.
    private func flush() -> Bool {
        var slice = FlushBudget()
        var hasReachedAll = false
        while flushed < markedBroadcasters.count, !slice.isOver {
            let broadcaster = markedBroadcasters[flushed]
            let wasUnderWay = broadcaster.isUnderWay
            let pass = broadcaster.flush(&slice)
            // An incomplete broadcaster is queued behind the others, which may have few subscribers.
            if pass != .done { markedBroadcasters.append(broadcaster) }
            if wasUnderWay, pass != .underWay { hasReachedAll = true }
            flushed += 1
        }
        markedBroadcasters.removeFirst(flushed)
        flushed = 0
        if markedSources.isEmpty { changes.clear(except: markedBroadcasters.lazy.map(\.producer.root)) }
        hasMarked.store(
            !markedBroadcasters.isEmpty || !markedSources.isEmpty || hasEvaluations, ordering: .relaxed)
        return hasReachedAll
    }

    // MARK: Broadcasters

    package var broadcasterCount: Int { broadcasters.count }

    /// Adds a subscriber to the broadcaster of a source on this reactor.
    ///
    /// - Parameters:
    ///   - label: the stream's names for event handlers.
    ///   - make: creates the subscription.
    ///   - attach: attaches a broadcaster that was created for the subscriber to its source. It is called for each such
    ///     broadcaster, even if the subscriber has left: a broadcaster that is no longer needed is not attached.
    package func subscribe(
        to source: StreamProducer, as label: @autoclosure () -> ServerEvent.Stream? = nil,
        _ make: (Broadcaster) -> StreamSubscription, attach: (Broadcaster) -> Void
    ) {
        let key = ObjectIdentifier(source)
        if let broadcaster = broadcasters[key] { return broadcaster.addSubscription(make(broadcaster)) }
        let broadcaster = Broadcaster(source, as: label(), shard: self)
        broadcasters[key] = broadcaster
        broadcaster.addSubscription(make(broadcaster))
        attach(broadcaster)
    }

    /// Removes a broadcaster without subscribers.
    func release(_ broadcaster: Broadcaster) {
        let key = ObjectIdentifier(broadcaster.producer)
        if broadcasters[key] === broadcaster { broadcasters[key] = nil }
        broadcaster.producer.detach(broadcaster)
    }
}
