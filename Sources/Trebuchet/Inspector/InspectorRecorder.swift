internal import Bytes
internal import Glibc
internal import Networking
internal import Platform
internal import Synchronization
internal import Transports
internal import TrebuchetActors

/// Milliseconds since 1970, for people to read.
enum WallTime {
    static var milliseconds: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec / 1_000_000)
    }
}

/// Notes what happens at a server while somebody looks: calls, and of each actor that is looked at its versions. Who looks asks again now
/// and then; half a minute after the last time nothing is noted any more, what was is gone, and nothing of it costs anything.
final class InspectorRecorder: Sendable {
    static let lookTime = Duration.seconds(30)
    /// Actors that are followed at a time; for another one that which was looked at longest ago is let go.
    static let mostActors = 16

    /// Two of them: who looks at calls alone has nobody tell of versions.
    private final class Ear: ServerListener {
        let kinds: ServerEvent.Kinds
        private let told: @Sendable (ServerEvent) -> Void

        init(_ kinds: ServerEvent.Kinds, _ told: @escaping @Sendable (ServerEvent) -> Void) {
            self.kinds = kinds
            self.told = told
        }

        func hear(_ event: ServerEvent) { told(event) }
    }

    private struct State {
        /// By the reactor's clock; 0 while nobody looks.
        var until: UInt64 = 0
        var hasEnded = false
        var ears: [Ear] = []
        var calls = CallRing()
        var budget: NoteBudget
        var actors: [ActorName: InspectedActor] = [:]
    }

    /// All that a log has at the level `debug`.
    private static let callKinds: ServerEvent.Kinds = [
        .calls, .arguments, .connections, .refusals, .limits, .streams, .actors, .store, .server,
    ]

    private let events: ServerEvents
    private let reactor: Reactor
    /// Of all shards: where one is held up another goes on.
    private let reactors: [Reactor]
    private let state: Mutex<State>
    private let noted = Atomic<UInt64>(0)

    /// - Parameter shards: by the clock of the first one's reactor looking ends.
    init(_ events: ServerEvents, on shards: [ServerShard], budget: NoteBudget = NoteBudget()) {
        self.events = events
        state = Mutex(State(budget: budget))
        reactors = shards.map(\.reactor)
        reactor = reactors[0]
    }

    // MARK: Looking

    /// Calls that have ended, the newest first.
    func calls(_ look: CallsLook) async -> InspectorJSON {
        await self.look()
        // Without the lock, behind which calls wait.
        let (calls, pauses) = state.withLock { ($0.calls, $0.budget.pauses) }
        return calls.json(look, pauses: pauses)
    }

    /// The log of one connection or actor, or of all.
    func log(_ look: LogLook) async -> InspectorJSON {
        await self.look()
        let (calls, pauses) = state.withLock { ($0.calls, $0.budget.pauses) }
        return calls.log(look, pauses: pauses)
    }

    /// An actor is looked at: notes its versions from now on.
    ///
    /// - Parameter follow: called when it was not looked at before, for each state that it has.
    /// - Throws: `unavailable` when what it is to be noted on does not get on.
    func look(
        at record: ActorRecord, follow: @escaping @Sendable (InspectedActor, String) -> Void
    ) async throws(TrebuchetError) -> InspectedActor? {
        let now = reactor.now
        let (actor, isNew, gone) = state.withLock { state -> (InspectedActor?, Bool, [InspectedActor]) in
            guard !state.hasEnded else { return (nil, false, []) }
            if let found = state.actors[ActorName(record.name)], found.isOf(record) {
                found.looked = now
                return (found, false, [])
            }
            let made = InspectedActor(record, looked: now, follow: follow)
            var gone = [state.actors.updateValue(made, forKey: ActorName(record.name))].compactMap { $0 }
            if state.actors.count > Self.mostActors,
                let oldest = state.actors.values.filter({ $0 !== made }).min(by: { $0.looked < $1.looked })
            {
                state.actors[ActorName(oldest.name)] = nil
                gone.append(oldest)
            }
            return (made, true, gone)
        }
        for actor in gone { actor.leave() }
        // Before anything is followed: what that makes is noted.
        guard await asked({ self.goOn() }) else {
            throw TrebuchetError(.unavailable, "\(reactor.name) does not answer: something holds it up")
        }
        // Where more was encoded than there is its states are followed once that is made up for.
        if isNew, !state.withLock({ $0.budget.isInDebt }) { actor?.goOn() }
        return actor
    }

    /// What is noted of an actor, the newest version first.
    func versions(of actor: InspectedActor, _ look: ActorLook) -> InspectorJSON {
        let (shown, chains, calls, kept, followed, behind) = state.withLock { state in
            var shown = Array(actor.versions.suffix(look.versions))
            let chains = look.wantsEarlier ? actor.chains(before: &shown) : nil
            return (shown, chains, state.calls, actor.versions.count, actor.followed(showing: shown), actor.behind)
        }
        let earlier = chains.map { chains in
            InspectorJSON.list(
                chains.compactMap { json(of: $0, in: actor, isKept: look.versions == InspectedActor.room) })
        }
        return .object(
            [
                ("since", .whole(actor.since)), ("followed", followed.map { .whole($0) } ?? .null),
                ("kept", .count(min(kept, InspectedActor.room))), ("room", .count(InspectedActor.room)),
                ("versions", .list(shown.reversed().map { $0.json(calls, behind: behind[$0.stream]) })),
            ] + (earlier.map { [("earlier", $0)] } ?? []))
    }

    /// A value that versions follow from, made here: without the lock, behind which calls wait.
    private func json(of chain: StateChain, in actor: InspectedActor, isKept: Bool) -> InspectorJSON? {
        guard let value = chain.made else { return nil }
        // The next look makes what follows from it.
        if isKept, !chain.patches.isEmpty {
            state.withLock { _ in actor.note(made: value, chain.number, of: chain.stream) }
        }
        return .object([
            ("stream", .text(chain.stream)), ("version", .count(chain.number)), ("value", .written(value)),
        ])
    }

    /// Those of one actor that have ended, the newest first.
    func calls(of actor: String) -> InspectorJSON {
        let (calls, name) = (state.withLock { $0.calls }, ActorName(actor))
        return .list(calls.shown(limit: 200) { $0.actor.map { ActorName($0) } == name })
    }

    /// The last error of each connection, as far as it is known.
    func lastErrors() async -> [UInt64: InspectorJSON] {
        await look()
        let calls = state.withLock { $0.calls }
        return calls.lastErrors
    }

    /// What one of its states was sent as.
    ///
    /// - Returns: whether its whole value is to be noted too.
    func note(_ taken: StateWatch.Taken, of stream: String, in actor: InspectedActor) -> Bool {
        defer { noted.wrappingAdd(1, ordering: .relaxed) }
        return state.withLock { state in
            if taken.base == nil { state.budget.spend(bytes: taken.bytes) }
            // Of the version itself nothing was noted either.
            return !state.budget.isUsedUp && actor.note(taken, of: stream)
        }
    }

    /// What one of its states is now.
    func note(whole taken: StateWatch.Taken, of stream: String, in actor: InspectedActor) {
        state.withLock { state in
            // What is looked at again was not encoded anew.
            if actor.looksAnew(at: taken, of: stream) { state.budget.spend(bytes: taken.bytes) }
            actor.note(whole: taken, of: stream)
        }
    }

    /// Whether the reactor got to it in time.
    private func asked(_ question: @escaping @Sendable () -> Void) async -> Bool {
        await TrebuchetServer.ask(reactor, within: TrebuchetServer.answerTime, question) != nil
    }

    /// Where the reactor does not get on it begins later, and what is known is shown meanwhile.
    func look() async { _ = await asked { self.goOn() } }

    /// Notes for half a minute from now. On the reactor.
    private func goOn() {
        let until = reactor.now &+ UInt64(Self.lookTime.nanoseconds)
        let isNew = state.withLock { state in
            guard !state.hasEnded else { return false }
            defer { state.until = until }
            return state.until == 0
        }
        if isNew { wait(Self.lookTime) }
        listen()
    }

    /// On the reactor.
    private func wait(_ time: Duration) {
        reactor.schedule(after: time) { [weak self] in self?.endIfNobodyLooks() }
    }

    private func endIfNobodyLooks() {
        let now = reactor.now
        let (rest, gone) = state.withLock { state -> (UInt64, [InspectedActor]) in
            let since = now &- min(now, UInt64(Self.lookTime.nanoseconds))
            let isOver = state.until <= now
            let gone = state.actors.values.filter { isOver || $0.looked <= since }
            for actor in gone { state.actors[ActorName(actor.name)] = nil }
            guard !isOver else {
                state.until = 0
                state.calls = CallRing()
                return (0, gone)
            }
            return (state.until - now, gone)
        }
        for actor in gone { actor.leave() }
        if rest > 0 { wait(.nanoseconds(Int64(rest))) }
        listen()
    }

    /// The server has ended.
    func end() {
        let gone = state.withLock { state in
            state.hasEnded = true
            state.until = 0
            defer { state.actors = [:] }
            return Array(state.actors.values)
        }
        for actor in gone { actor.leave() }
        listen()
    }

    /// Whether anything is noted.
    var isOn: Bool { state.withLock { !$0.ears.isEmpty } }

    /// Has the server tell what is wanted now, and nothing else. From anywhere.
    private func listen() {
        let old = state.withLock { listen(&$0) }
        // Freed without the lock.
        _ = old
    }

    /// Under the lock, so that who comes last has the last word. Returns those who do not listen any more.
    private func listen(_ state: inout State) -> [Ear] {
        let wantsCalls = state.until > 0
        let wanted: [ServerEvent.Kinds] =
            !wantsCalls || state.budget.isUsedUp
            ? [] : state.actors.isEmpty ? [Self.callKinds] : [Self.callKinds, [.versions, .deliveries]]
        while state.ears.count < wanted.count {
            let ear = Ear(wanted[state.ears.count]) { [weak self] event in self?.hear(event) }
            state.ears.append(ear)
            events.add(ear)
        }
        let old = Array(state.ears[wanted.count...])
        state.ears.removeLast(old.count)
        for ear in old { events.remove(ear) }
        return old
    }

    // MARK: What happens

    /// How often there was too much to note.
    var pauses: UInt64 { state.withLock { $0.budget.pauses } }

    /// Another number each time that something was noted.
    var news: UInt64 { noted.load(ordering: .relaxed) }

    private func hear(_ event: ServerEvent) {
        let now = MonotonicClock.now
        let (usedUp, pause, old) = state.withLock { state -> (NoteBudget.UsedUp, UInt64, [Ear]) in
            // What others are about to tell.
            guard !state.budget.isUsedUp else { return (NoteBudget.UsedUp(), 0, []) }
            let usedUp = state.budget.take(event, at: now)
            note(event, in: &state)
            guard usedUp.events != nil || usedUp.values != nil else { return (usedUp, 0, []) }
            for actor in state.actors.values { actor.leaveGap() }
            // At once: a turn may have a thousand calls more.
            return (usedUp, state.budget.pauses, listen(&state))
        }
        noted.wrappingAdd(1, ordering: .relaxed)
        guard usedUp.events != nil || usedUp.values != nil else { return }
        withExtendedLifetime(old) {}
        for actor in state.withLock({ Array($0.actors.values) }) { actor.leave(forGood: false) }
        if let rest = usedUp.events {
            wait(rest) {
                $0.budget.isUsedUp && $0.budget.pauses == pause
            } then: {
                $0.budget.renew()
            }
        }
        // One wait at a time: there is no other debt until this one is settled.
        if let rest = usedUp.values {
            wait(rest) {
                $0.budget.isInDebt
            } then: {
                $0.budget.settle()
            }
        }
    }

    /// Goes on after some nanoseconds, on the first reactor that gets to it.
    private func wait(
        _ rest: UInt64, while isDue: @escaping @Sendable (borrowing State) -> Bool,
        then body: @escaping @Sendable (inout State) -> Void
    ) {
        for reactor in reactors {
            reactor.execute { [weak self, weak reactor] in
                reactor?.schedule(after: .nanoseconds(Int64(rest))) { [weak self] in
                    self?.goOn(while: isDue, then: body)
                }
            }
        }
    }

    private func goOn(
        while isDue: @Sendable (borrowing State) -> Bool, then body: @Sendable (inout State) -> Void
    ) {
        let actors = state.withLock { state -> [InspectedActor] in
            guard isDue(state) else { return [] }
            body(&state)
            return state.budget.isUsedUp || state.budget.isInDebt ? [] : Array(state.actors.values)
        }
        listen()
        for actor in actors { actor.goOn() }
    }

    private func note(_ event: ServerEvent, in state: inout State) {
        switch event {
        case .callBegan(let call): state.calls.begin(call)
        case .callEnded(let call, let took, let error): state.calls.end(call, took, error)
        case .callFailed(let failure): state.calls.fail(failure)
        case .callReached(let call, let actor): state.calls.reach(call, actor)
        case .callRefused(let peer, let actor, let target, let error, let reason):
            state.calls.refuse(peer, actor, target, error, reason)
        case .versionMade(let version):
            guard let actor = state.actors[ActorName(version.stream.actor)] else { return }
            actor.add(version, calls: version.calls.map { state.calls[$0] })
        case .delivered(let delivery):
            // Of readers in this process nobody wants to know, and this is one.
            guard delivery.connection != 0 else { return }
            state.actors[ActorName(delivery.stream.actor)]?.count(delivery)
        case .skipped(let stream, let connection, let from, let to):
            guard connection != 0 else { return }
            state.actors[ActorName(stream.actor)]?.countSkipped(stream.target, by: connection, from, to)
        case .behind(let stream, let connection, let number):
            guard connection != 0 else { return }
            state.actors[ActorName(stream.actor)]?.countBehind(stream.target, connection, at: number)
        case .streamEnded(let stream, let connection, _):
            state.actors[ActorName(stream.actor)]?.countEnd(stream.target, of: connection)
            state.calls.tell(event)
        default: state.calls.tell(event)
        }
    }
}
