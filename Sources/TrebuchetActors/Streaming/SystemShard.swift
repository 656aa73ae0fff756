package import Bytes
package import Synchronization
internal import Transports
internal import TrebuchetWire

/// What an actor system keeps for one reactor: coders, and the states that changed in this turn.
///
/// `@unchecked Sendable`: touched on its reactor alone.
package final class SystemShard: EndOfTurn, @unchecked Sendable {
    package let reactor: any EventLoop
    /// For the tasks of calls.
    let isolation: LoopIsolation
    /// What a server has on this reactor, until it has shut down. Set before it listens.
    /// It is read and written in one step, so access to it needs no check.
    @exclusivity(unchecked) package var server: AnyObject?
    /// Where large versions of states are counted as long as somebody needs them. Set before actors are exposed.
    package var memory: MemoryBudget?
    /// `ServerLimits.resumeTime`. Set before actors are exposed.
    package var resumeTime = Duration.seconds(30)
    /// What is counted here.
    package let counts = ShardCounts()
    /// Who is told what happens. Set before actors are exposed.
    /// It is read and written in one step, so access to it needs no check.
    @exclusivity(unchecked) package var events = ServerEvents()
    private var userInfo: [CodingUserInfoKey: any Sendable]
    package private(set) var coder: ValueCoder
    /// For clients of versions 1 and 2.
    package private(set) var wholeSecondsCoder: ValueCoder
    private var markedSources: [StreamHub] = []
    /// Empty, with the room of those of before: most calls change a state, and none is to ask for memory for that.
    private var spareSources: [StreamHub] = []
    /// Broadcasters whose subscribers are to be written to; those before `flushed` have been.
    private var markedBroadcasters: [Broadcaster] = []
    private var flushed = 0
    let commonFrames = CommonFrames()
    private var broadcasters: [ObjectIdentifier: Broadcaster] = [:]
    private var isQueued = false
    private var isGoingOn = false
    /// Whether subscribers wait for what others of theirs were sent in an earlier turn.
    private var isSending = false
    /// Whether a state has changed and not everybody has been told.
    /// Atomic as what each call looks at in an `ActorLife`.
    package let hasMarked = Atomic<Bool>(false)
    /// What that is.
    package var changes = ChangeLog()
    /// How much may still be encoded without waiting for the end of the turn, or until subscribers have what they wait for.
    private var eagerBytes = EagerBytes.perTurn

    /// What that is at the beginning.
    private var budget = EagerBytes.perTurn
    private var turnsOfSending = 0
    private static let mostTurnsOfSending = 16

    init(_ reactor: any EventLoop, userInfo: [CodingUserInfoKey: any Sendable]) {
        self.reactor = reactor
        isolation = LoopIsolation(reactor)
        self.userInfo = userInfo
        coder = ValueCoder(userInfo: userInfo)
        wholeSecondsCoder = ValueCoder(dates: .wholeSeconds, userInfo: userInfo)
    }

    /// The server or client is gone: its actor system, to which the coders refer, can be freed.
    package func takeApart() {
        userInfo = [:]
        coder = ValueCoder()
        wholeSecondsCoder = ValueCoder(dates: .wholeSeconds)
    }

    @inline(__always)
    package func coder(writing dates: DateForm) -> ValueCoder {
        switch dates {
        case .milliseconds: coder
        case .wholeSeconds: wholeSecondsCoder
        }
    }

    /// A coder for a task that leaves the reactor.
    func newCoder(writing dates: DateForm) -> ValueCoder { ValueCoder(dates: dates, userInfo: userInfo) }

    /// Whether a state's actor lives on this reactor.
    package func isHome(of source: StreamHub) -> Bool { source.home === self }

    func mark(_ source: StreamHub) {
        markedSources.append(source)
        changes.note(source.root)
        queue()
    }

    /// Its subscribers are written to at the end of the turn, or of later ones when they are many.
    func mark(_ broadcaster: Broadcaster) {
        markedBroadcasters.append(broadcaster)
        queue()
    }

    /// A broadcaster has something new for its subscribers.
    func didChange(_ broadcaster: Broadcaster) { changes.note(broadcaster.hub.root) }

    private func queue() {
        hasMarked.store(true, ordering: .relaxed)
        guard !isQueued else { return }
        isQueued = true
        reactor.atEndOfTurn(self)
    }

    /// Hands the states that changed to their broadcasters on all reactors.
    package func publishMarked() {
        guard !markedSources.isEmpty else { return }
        var sources: [StreamHub] = []
        swap(&sources, &spareSources)
        swap(&sources, &markedSources)
        for source in sources { eagerBytes -= source.publish() }
        sources.removeAll(keepingCapacity: true)
        swap(&sources, &spareSources)
    }

    /// At the end of a call: what it changed becomes a version of its own, while the turn has room for it.
    package func callDidEnd() {
        if eagerBytes > 0 { publishMarked() }
    }

    package func endOfTurn() {
        if isSending, eagerBytes <= 0 { publishWhatRests() } else { publishMarked() }
        let hasReachedAll = flush()
        isQueued = false
        isSending = !markedBroadcasters.isEmpty
        turnsOfSending += 1
        if hasReachedAll || !isSending { refillBudget() }
        if isSending || !markedSources.isEmpty { goOnInNextTurn() }
    }

    /// Not before all were written to: who waits for so many versions already is not to wait for more of them, and gets the
    /// rest as one. When that takes long it is too much, and the next budget is half of it.
    private func refillBudget() {
        budget =
            turnsOfSending > Self.mostTurnsOfSending
            ? max(EagerBytes.leastPerUpdate, budget / 2) : min(EagerBytes.perTurn, budget * 2)
        eagerBytes = budget
        turnsOfSending = 0
    }

    /// Of what has changed, all but what is still on its way to subscribers: that becomes one version when they have it.
    private func publishWhatRests() {
        var sources: [StreamHub] = []
        swap(&sources, &markedSources)
        for source in sources {
            if source.isBeingSent { markedSources.append(source) } else { source.publish() }
        }
    }

    private func goOnInNextTurn() {
        guard !isGoingOn else { return }
        isGoingOn = true
        // So that what else came in has its share.
        reactor.execute {
            self.isGoingOn = false
            self.queue()
        }
    }

    /// Writes to subscribers for as long as others may be kept waiting. Returns whether those who waited for
    /// some state have it.
    private func flush() -> Bool {
        var slice = FlushSlice()
        var hasReachedAll = false
        while flushed < markedBroadcasters.count, !slice.isOver {
            let broadcaster = markedBroadcasters[flushed]
            let wasUnderWay = broadcaster.isUnderWay
            let pass = broadcaster.flush(&slice)
            // One that is not done goes behind the others, which may have few subscribers.
            if pass != .done { markedBroadcasters.append(broadcaster) }
            if wasUnderWay, pass != .underWay { hasReachedAll = true }
            flushed += 1
        }
        markedBroadcasters.removeFirst(flushed)
        flushed = 0
        if markedSources.isEmpty { changes.clear(butFor: markedBroadcasters.lazy.map(\.hub.root)) }
        hasMarked.store(!markedBroadcasters.isEmpty || !markedSources.isEmpty, ordering: .relaxed)
        return hasReachedAll
    }

    // MARK: Broadcasters

    package var broadcasterCount: Int { broadcasters.count }

    /// Adds a subscriber to the broadcaster of a source on this reactor.
    ///
    /// - Parameters:
    ///   - label: what it is, for those who listen.
    ///   - make: makes the subscription.
    ///   - attach: has the source attach a broadcaster that was made for it. It is called for each such broadcaster, whatever has become
    ///     of the subscriber: one that nobody needs any more is not attached.
    package func subscribe(
        to source: StreamHub, as label: @autoclosure () -> ServerEvent.Stream? = nil,
        _ make: (Broadcaster) -> StreamSubscription, attach: (Broadcaster) -> Void
    ) {
        let key = ObjectIdentifier(source)
        if let broadcaster = broadcasters[key] { return broadcaster.add(make(broadcaster)) }
        let broadcaster = Broadcaster(source, as: label(), shard: self)
        broadcasters[key] = broadcaster
        broadcaster.add(make(broadcaster))
        attach(broadcaster)
    }

    /// A broadcaster that nobody needs any more.
    func release(_ broadcaster: Broadcaster) {
        let key = ObjectIdentifier(broadcaster.hub)
        if broadcasters[key] === broadcaster { broadcasters[key] = nil }
        broadcaster.hub.detach(broadcaster)
    }
}
