internal import Bytes
internal import Glibc
internal import Networking
internal import Platform
internal import Synchronization
internal import Transports
internal import Trebuchet
internal import TrebuchetActors

/// The wall clock in milliseconds since 1970, for display.
enum WallTime {
    static var milliseconds: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec / 1_000_000)
    }
}

/// Records events of a server while a client inspects it: calls, and versions of each inspected actor. Clients repeat their
/// requests. Half a minute after the last one, recording stops, the records are discarded, and the recorder costs nothing.
final class InspectorRecorder: Sendable {
    static let observationTime = Duration.seconds(30)
    /// The maximum number of inspected actors; one more replaces the least recently inspected.
    static let maximumActors = 16

    /// Forwards events of some kinds. The recorder has up to two, so that version events are produced only while an actor is
    /// inspected.
    private final class EventForwarder: ServerEventHandler {
        let kinds: ServerEvent.Kinds
        private let handler: @Sendable (ServerEvent) -> Void

        init(_ kinds: ServerEvent.Kinds, _ handler: @escaping @Sendable (ServerEvent) -> Void) {
            self.kinds = kinds
            self.handler = handler
        }

        func handle(_ event: ServerEvent) { handler(event) }
    }

    /// The recordings and listeners of the recorder.
    private struct State {
        /// The end of recording by the reactor's clock; 0 while recording is off.
        var until: UInt64 = 0
        var hasEnded = false
        var forwarders: [EventForwarder] = []
        var calls = RecentCallBuffer()
        var budget: RecorderRateLimiter
        var actors: [ActorName: InspectedActor] = [:]
    }

    /// All events that a log of level `debug` has.
    private static let callKinds: ServerEvent.Kinds = [
        .calls, .arguments, .connections, .rejections, .limits, .streams, .actors, .store, .server,
    ]

    private let events: EventBus
    private let reactor: Reactor
    /// The reactors of all shards: if one is blocked, another one runs the timer.
    private let reactors: [Reactor]
    private let state: Mutex<State>
    private let recordedCount = Atomic<UInt64>(0)

    /// Creates a recorder that does not retain the server. The clock of its first reactor determines the end of recording.
    init(_ view: ServerView, budget: RecorderRateLimiter = RecorderRateLimiter()) {
        events = view.events
        state = Mutex(State(budget: budget))
        reactors = view.reactors
        reactor = reactors[0]
    }

    // MARK: Looking

    /// Returns ended calls, the newest first.
    func calls(_ query: CallListQuery) async -> InspectorJSON {
        await self.startRecording()
        // Generate the JSON without the lock, since calls wait for it.
        let (calls, pauses) = state.withLock { ($0.calls, $0.budget.pauses) }
        return calls.json(query, pauses: pauses)
    }

    /// Returns log lines of one connection or actor, or of all.
    func log(_ query: LogQuery) async -> InspectorJSON {
        await self.startRecording()
        let (calls, pauses) = state.withLock { ($0.calls, $0.budget.pauses) }
        return calls.log(query, pauses: pauses)
    }

    /// Starts or extends the inspection of an actor and records its versions.
    ///
    /// - Parameter follow: called for each state of an actor that was not inspected before.
    /// - Throws: `unavailable` if the recorder's reactor does not respond.
    func inspectActor(
        at record: ActorRecord, follow: @escaping @Sendable (InspectedActor, String) -> Void
    ) async throws(TrebuchetError) -> InspectedActor? {
        let now = reactor.now
        let (actor, isNew, removed) = state.withLock { state -> (InspectedActor?, Bool, [InspectedActor]) in
            guard !state.hasEnded else { return (nil, false, []) }
            if let found = state.actors[ActorName(record.name)], found.isOf(record) {
                found.lastInspected.store(now, ordering: .relaxed)
                return (found, false, [])
            }
            let created = InspectedActor(record, lastInspected: now, follow: follow)
            var removed = [state.actors.updateValue(created, forKey: ActorName(record.name))].compactMap { $0 }
            if state.actors.count > Self.maximumActors,
                let oldest = state.actors.values.filter({ $0 !== created }).min(by: {
                    $0.lastInspected.load(ordering: .relaxed) < $1.lastInspected.load(ordering: .relaxed)
                }
                )
            {
                state.actors[ActorName(oldest.name)] = nil
                removed.append(oldest)
            }
            return (created, true, removed)
        }
        for actor in removed { actor.stopObserving() }
        // Start recording before the states are observed, so that the resulting events are recorded.
        guard await runOnReactor({ self.extendRecording() }) else {
            throw TrebuchetError(.unavailable, "\(reactor.name) does not respond; it may be blocked")
        }
        // If the encoding budget is in debt, the states are observed after it is settled.
        if isNew, !state.withLock({ $0.budget.isOverBudget }) { actor?.startObserving() }
        return actor
    }

    /// Returns the recordings of an actor, the newest version first.
    func versions(of actor: InspectedActor, _ query: ActorDetailQuery) -> InspectorJSON {
        let (shown, chains, calls, count, completeSince, behind) = state.withLock { state in
            actor.history.withLock { history in
                var shown = Array(history.versions.suffix(query.versions))
                let chains = query.wantsEarlier ? history.chains(before: &shown) : nil
                return (
                    shown, chains, state.calls, history.versions.count, history.completeSince(showing: shown),
                    history.blockedConnections
                )
            }
        }
        let earlier = chains.map { chains in
            InspectorJSON.list(
                chains.compactMap {
                    json(of: $0, in: actor, cachesValue: query.versions == InspectedVersions.versionLimit)
                })
        }
        return .object(
            [
                ("since", .integer(actor.since)), ("completeSince", completeSince.map { .integer($0) } ?? .null),
                ("count", .count(min(count, InspectedVersions.versionLimit))),
                ("limit", .count(InspectedVersions.versionLimit)),
                ("versions", .list(shown.reversed().map { $0.json(calls, behind: behind[$0.stream]) })),
            ] + (earlier.map { [("earlier", $0)] } ?? []))
    }

    /// Returns the value that versions are based on. Computed without the lock, since calls wait for it.
    private func json(of chain: StateHistory, in actor: InspectedActor, cachesValue: Bool) -> InspectorJSON? {
        guard let value = chain.latestValue else { return nil }
        // The next query uses this value as its base.
        if cachesValue, !chain.patches.isEmpty {
            actor.history.withLock { $0.recordComputedValue(value, chain.number, of: chain.stream) }
        }
        return .object([
            ("stream", .text(chain.stream)), ("version", .count(chain.number)), ("value", .encoded(value)),
        ])
    }

    /// Returns the ended calls of one actor, the newest first.
    func calls(of actor: String) -> InspectorJSON {
        let (calls, name) = (state.withLock { $0.calls }, ActorName(actor))
        return .list(calls.json(limit: 200) { $0.actor.map { ActorName($0) } == name })
    }

    /// Returns the last recorded error of each connection.
    func lastErrors() async -> [UInt64: InspectorJSON] {
        await startRecording()
        let calls = state.withLock { $0.calls }
        return calls.lastErrors
    }

    /// Records the update of one of its states.
    ///
    /// - Returns: whether a snapshot must be recorded too.
    func recordUpdate(_ version: InspectorStateSubscription.SentVersion, of stream: String, in actor: InspectedActor)
        -> Bool
    {
        defer { recordedCount.wrappingAdd(1, ordering: .relaxed) }
        return state.withLock { state in
            if version.base == nil { state.budget.charge(bytes: version.bytes) }
            // While the budget is used up, the version itself was not recorded either.
            return !state.budget.isUsedUp && actor.history.withLock { $0.recordUpdate(version, of: stream) }
        }
    }

    /// Records the current value of one of its states.
    func recordSnapshot(_ version: InspectorStateSubscription.SentVersion, of stream: String, in actor: InspectedActor)
    {
        state.withLock { state in
            // A value that was inspected before was not encoded again.
            if actor.history.withLock({ $0.differs(version, of: stream) }) { state.budget.charge(bytes: version.bytes) }
            actor.history.withLock { $0.recordSnapshot(version, of: stream) }
        }
    }

    /// Returns whether the reactor ran the closure in time.
    private func runOnReactor(_ question: @escaping @Sendable () -> Void) async -> Bool {
        await ServerView.query(reactor, question) != nil
    }

    /// Starts or extends recording. If the reactor is blocked, recording starts later, and existing records are shown
    /// meanwhile.
    func startRecording() async { _ = await runOnReactor { self.extendRecording() } }

    /// Records for half a minute from now. Runs on the reactor.
    private func extendRecording() {
        let until = reactor.now &+ UInt64(Self.observationTime.nanoseconds)
        let isNew = state.withLock { state in
            guard !state.hasEnded else { return false }
            defer { state.until = until }
            return state.until == 0
        }
        if isNew { wait(Self.observationTime) }
        listen()
    }

    /// Runs on the reactor.
    private func wait(_ time: Duration) {
        reactor.schedule(after: time) { [weak self] in self?.endIfUnobserved() }
    }

    private func endIfUnobserved() {
        let now = reactor.now
        let (remainingTime, removed) = state.withLock { state -> (UInt64, [InspectedActor]) in
            let since = now &- min(now, UInt64(Self.observationTime.nanoseconds))
            let isOver = state.until <= now
            let removed = state.actors.values.filter { isOver || $0.lastInspected.load(ordering: .relaxed) <= since }
            for actor in removed { state.actors[ActorName(actor.name)] = nil }
            guard !isOver else {
                state.until = 0
                state.calls = RecentCallBuffer()
                return (0, removed)
            }
            return (state.until - now, removed)
        }
        for actor in removed { actor.stopObserving() }
        if remainingTime > 0 { wait(.nanoseconds(Int64(remainingTime))) }
        listen()
    }

    /// Stops permanently, at the end of the server.
    func stop() {
        let removed = state.withLock { state in
            state.hasEnded = true
            state.until = 0
            defer { state.actors = [:] }
            return Array(state.actors.values)
        }
        for actor in removed { actor.stopObserving() }
        listen()
    }

    /// Returns true while the recorder receives events.
    var isOn: Bool { state.withLock { !$0.forwarders.isEmpty } }

    /// Subscribes to exactly the events that are needed now. Callable from any thread.
    private func listen() {
        let old = state.withLock { listen(&$0) }
        // Free the listeners outside the lock.
        _ = old
    }

    /// Adjusts the listeners under the lock, so that the last change takes effect. Returns the removed listeners.
    private func listen(_ state: inout State) -> [EventForwarder] {
        let wantsCalls = state.until > 0
        let wanted: [ServerEvent.Kinds] =
            !wantsCalls || state.budget.isUsedUp
            ? [] : state.actors.isEmpty ? [Self.callKinds] : [Self.callKinds, [.versions, .deliveries]]
        while state.forwarders.count < wanted.count {
            let forwarder = EventForwarder(wanted[state.forwarders.count]) { [weak self] event in self?.record(event) }
            state.forwarders.append(forwarder)
            events.addHandler(forwarder)
        }
        let old = Array(state.forwarders[wanted.count...])
        state.forwarders.removeLast(old.count)
        for forwarder in old { events.removeHandler(forwarder) }
        return old
    }

    // MARK: Events

    /// The number of times that the budget was used up.
    var pauses: UInt64 { state.withLock { $0.budget.pauses } }

    /// A number that changes with each recorded event.
    var recordedEventCount: UInt64 { recordedCount.load(ordering: .relaxed) }

    private func record(_ event: ServerEvent) {
        let now = MonotonicClock.now
        let (usedUp, pause, old) = state.withLock { state -> (RecorderRateLimiter.UsedUp, UInt64, [EventForwarder]) in
            // Ignore events that other threads were already delivering.
            guard !state.budget.isUsedUp else { return (RecorderRateLimiter.UsedUp(), 0, []) }
            let usedUp = state.budget.consume(event, at: now)
            recordEvent(event, in: &state)
            guard usedUp.events != nil || usedUp.values != nil else { return (usedUp, 0, []) }
            for actor in state.actors.values { actor.history.withLock { $0.markGap() } }
            // Unsubscribe immediately: the turn may have a thousand more calls.
            return (usedUp, state.budget.pauses, listen(&state))
        }
        recordedCount.wrappingAdd(1, ordering: .relaxed)
        guard usedUp.events != nil || usedUp.values != nil else { return }
        withExtendedLifetime(old) {}
        for actor in state.withLock({ Array($0.actors.values) }) { actor.stopObserving(permanently: false) }
        if let remainingTime = usedUp.events {
            wait(remainingTime) {
                $0.budget.isUsedUp && $0.budget.pauses == pause
            } then: {
                $0.budget.renew()
            }
        }
        // One timer at a time: no other debt arises until this one is settled.
        if let remainingTime = usedUp.values {
            wait(remainingTime) {
                $0.budget.isOverBudget
            } then: {
                $0.budget.settle()
            }
        }
    }

    /// Runs `body` after some nanoseconds, on the first reactor whose timer fires.
    private func wait(
        _ remainingTime: UInt64, while isDue: @escaping @Sendable (borrowing State) -> Bool,
        then body: @escaping @Sendable (inout State) -> Void
    ) {
        for reactor in reactors {
            reactor.execute { [weak self, weak reactor] in
                reactor?.schedule(after: .nanoseconds(Int64(remainingTime))) { [weak self] in
                    self?.continueRecording(while: isDue, then: body)
                }
            }
        }
    }

    private func continueRecording(
        while isDue: @Sendable (borrowing State) -> Bool, then body: @Sendable (inout State) -> Void
    ) {
        let actors = state.withLock { state -> [InspectedActor] in
            guard isDue(state) else { return [] }
            body(&state)
            return state.budget.isUsedUp || state.budget.isOverBudget ? [] : Array(state.actors.values)
        }
        listen()
        for actor in actors { actor.startObserving() }
    }

    private func recordEvent(_ event: ServerEvent, in state: inout State) {
        switch event {
        case .callStarted(let call): state.calls.recordStart(call)
        case .callEnded(let call, let duration, let error): state.calls.recordEnd(call, duration, error)
        case .callFailed(let failure): state.calls.fail(failure)
        case .callDispatched(let call, let actor): state.calls.recordActor(call, actor)
        case .callRejected(let peer, let actor, let target, let error, let reason):
            state.calls.refuse(peer, actor, target, error, reason)
        case .versionCreated(let version):
            guard let actor = state.actors[ActorName(version.stream.actor)] else { return }
            let calls = version.calls.map { state.calls[$0] }
            actor.history.withLock { $0.addVersion(version, calls: calls) }
        case .updateDelivered(let delivery):
            // Deliveries to readers in this process, including the inspector itself, are not shown.
            guard delivery.connection != 0 else { return }
            state.actors[ActorName(delivery.stream.actor)]?.history.withLock { $0.count(delivery) }
        case .versionsConflated(let stream, let connection, let from, let to):
            guard connection != 0 else { return }
            state.actors[ActorName(stream.actor)]?.history.withLock {
                $0.countSkipped(stream.target, by: connection, from, to)
            }
        case .subscriberFellBehind(let stream, let connection, let number):
            guard connection != 0 else { return }
            state.actors[ActorName(stream.actor)]?.history.withLock {
                $0.recordBlocked(stream.target, connection, at: number)
            }
        case .streamEnded(let stream, let connection, _):
            state.actors[ActorName(stream.actor)]?.history.withLock { $0.countEnd(stream.target, of: connection) }
            state.calls.recordEvent(event)
        default: state.calls.recordEvent(event)
        }
    }
}
