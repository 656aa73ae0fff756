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
        var actors: [String: InspectedActor] = [:]
    }

    private let events: ServerEvents
    private let reactor: Reactor
    private let state = Mutex(State())

    /// - Parameter shard: by whose reactor's clock looking ends.
    init(_ events: ServerEvents, on shard: ServerShard) {
        self.events = events
        reactor = shard.reactor
    }

    // MARK: Looking

    /// Calls that ended after the one of that number in the ring, the newest first.
    func calls(after: UInt64, limit: Int) async -> InspectorJSON {
        await look()
        // Without the lock, behind which calls wait.
        let calls = state.withLock { $0.calls }
        return calls.json(after: after, limit: limit)
    }

    /// An actor is looked at: notes its versions from now on.
    ///
    /// - Parameter follow: called when it was not looked at before, for each state that it has.
    /// - Throws: `unavailable` when what it is to be noted on does not get on.
    func look(
        at record: ActorRecord, follow: @Sendable (InspectedActor, String) -> Void
    ) async throws(TrebuchetError) -> InspectedActor? {
        await look()
        let now = reactor.now
        let (actor, isNew, gone) = state.withLock { state -> (InspectedActor?, Bool, [InspectedActor]) in
            guard !state.hasEnded else { return (nil, false, []) }
            if let found = state.actors[record.name], found.isOf(record) {
                found.looked = now
                return (found, false, [])
            }
            let made = InspectedActor(record, looked: now)
            var gone = [state.actors.updateValue(made, forKey: record.name)].compactMap { $0 }
            if state.actors.count > Self.mostActors,
                let oldest = state.actors.values.filter({ $0 !== made }).min(by: { $0.looked < $1.looked })
            {
                state.actors[oldest.name] = nil
                gone.append(oldest)
            }
            return (made, true, gone)
        }
        for actor in gone { actor.leave() }
        // Before anything is followed: what that makes is noted.
        guard await asked({ self.listen() }) else {
            throw TrebuchetError(.unavailable, "\(reactor.name) does not answer: something holds it up")
        }
        if let actor, isNew { for stream in record.type.description.states { follow(actor, stream) } }
        return actor
    }

    /// What is noted of an actor, the newest version first.
    func versions(of actor: InspectedActor, _ look: ActorLook) -> InspectorJSON {
        let (kept, shown, earlier, calls) = state.withLock { state in
            let shown = Array(actor.versions.suffix(look.versions))
            return (actor.versions.count, shown, look.wantsEarlier ? actor.earlier(than: shown) : nil, state.calls)
        }
        return .object(
            [
                ("since", .whole(actor.since)), ("kept", .count(kept)),
                ("versions", .list(shown.reversed().map { $0.json(calls) })),
            ] + (earlier.map { [("earlier", $0)] } ?? []))
    }

    /// Those of one actor that have ended, the newest first.
    func calls(of actor: String) -> InspectorJSON {
        let calls = state.withLock { $0.calls }
        return .list(calls.shown(after: 0, limit: 50) { $0.actor == actor })
    }

    /// The last error of each connection, as far as it is known.
    func lastErrors() async -> [UInt64: InspectorJSON] {
        await look()
        let calls = state.withLock { $0.calls }
        return calls.lastErrors
    }

    /// What one of its states was sent as.
    func note(_ taken: StateWatch.Taken, of stream: String, in actor: InspectedActor) {
        state.withLock { _ in actor.note(taken, of: stream) }
    }

    /// What one of its states is now.
    func note(whole taken: StateWatch.Taken, of stream: String, in actor: InspectedActor) {
        state.withLock { _ in actor.note(whole: taken, of: stream) }
    }

    /// Whether the reactor got to it in time.
    private func asked(_ question: @escaping @Sendable () -> Void) async -> Bool {
        await TrebuchetServer.ask(reactor, within: TrebuchetServer.answerTime, question) != nil
    }

    /// Where the reactor does not get on it begins later, and what is known is shown meanwhile.
    private func look() async {
        _ = await asked {
            let until = self.reactor.now &+ UInt64(Self.lookTime.nanoseconds)
            let isNew = self.state.withLock { state in
                guard !state.hasEnded else { return false }
                defer { state.until = until }
                return state.until == 0
            }
            if isNew { self.wait(Self.lookTime) }
            self.listen()
        }
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
            for actor in gone { state.actors[actor.name] = nil }
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
        reactor.run { self.listen() }
    }

    /// Whether anything is noted.
    var isOn: Bool { state.withLock { !$0.ears.isEmpty } }

    /// Has the server tell what is wanted now, and nothing else. On the reactor, so that one comes behind the other.
    private func listen() {
        let (old, new) = state.withLock { state -> ([Ear], [Ear]) in
            let wantsCalls = state.until > 0
            let wanted: [ServerEvent.Kinds] =
                !wantsCalls ? [] : state.actors.isEmpty ? [.calls] : [.calls, [.versions, .deliveries]]
            guard wanted.count != state.ears.count else { return ([], []) }
            if wanted.count > state.ears.count {
                let added = wanted[state.ears.count...].map { kinds in
                    Ear(kinds) { [weak self] event in self?.hear(event) }
                }
                state.ears += added
                return ([], Array(added))
            }
            let removed = state.ears[wanted.count...]
            state.ears.removeLast(removed.count)
            return (Array(removed), [])
        }
        for ear in old { events.remove(ear) }
        for ear in new { events.add(ear) }
    }

    // MARK: What happens

    private func hear(_ event: ServerEvent) {
        switch event {
        case .callBegan(let call): state.withLock { $0.calls.begin(call) }
        case .callEnded(let call, let took, let error): state.withLock { $0.calls.end(call, took, error) }
        case .callRefused(let peer, let actor, let target, let error, let reason):
            state.withLock { $0.calls.refuse(peer, actor, target, error, reason) }
        case .versionMade(let version):
            state.withLock { state in
                guard let actor = state.actors[version.stream.actor] else { return }
                actor.add(version, calls: version.calls.map { state.calls[$0] })
            }
        case .delivered(let delivery):
            // Of readers in this process nobody wants to know, and this is one.
            guard delivery.connection != 0 else { return }
            state.withLock { $0.actors[delivery.stream.actor]?.count(delivery) }
        case .skipped(let stream, let connection, let from, let to):
            guard connection != 0 else { return }
            state.withLock { $0.actors[stream.actor]?.countSkipped(stream.target, from, to) }
        default: break
        }
    }
}
