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
    func look(at record: ActorRecord, follow: @Sendable (InspectedActor, String) -> Void) async -> InspectedActor? {
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
        await reactor.perform { self.listen() }
        if let actor, isNew { for stream in record.type.description.states { follow(actor, stream) } }
        return actor
    }

    /// What is noted of an actor, the newest version first.
    func versions(of actor: InspectedActor, limit: Int) -> InspectorJSON {
        let (versions, calls) = state.withLock { (actor.versions, $0.calls) }
        return .object([
            ("since", .whole(actor.since)), ("kept", .count(versions.count)),
            ("versions", .list(versions.suffix(limit).reversed().map { $0.json(calls) })),
        ])
    }

    /// What one of its states was sent as.
    func note(_ taken: StateWatch.Taken, of stream: String, in actor: InspectedActor) {
        state.withLock { _ in actor.note(taken, of: stream) }
    }

    private func look() async {
        await reactor.perform {
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

/// The calls of the last moments, by their numbers, and those that have ended, in their order.
struct CallRing {
    static let room = 2_000
    /// Calls that are known by their numbers, a power of two.
    private static let known = 4_096

    /// A call, as far as it is known.
    struct Entry {
        var number: UInt64
        var call: ServerEvent.Call?
        var began: Int64 = 0
        var took: Duration?
        var error: TrebuchetError.Code?
    }

    private var entries: [Entry?] = []
    private var ended: [(number: UInt64, json: InspectorJSON)] = []
    private var first = 0
    private var lastNumber: UInt64 = 0

    /// What is known of a call; its number alone when that is long ago.
    subscript(number: UInt64) -> Entry {
        guard !entries.isEmpty, let found = entries[Self.place(number)], found.number == number else {
            return Entry(number: number)
        }
        return found
    }

    private static func place(_ number: UInt64) -> Int { Int(number & UInt64(known - 1)) }

    mutating func begin(_ call: ServerEvent.Call) {
        if entries.isEmpty { entries = Array(repeating: nil, count: Self.known) }
        entries[Self.place(call.number)] = Entry(number: call.number, call: call, began: WallTime.milliseconds)
    }

    mutating func end(_ call: ServerEvent.Call, _ took: Duration, _ error: TrebuchetError.Code?) {
        var entry = self[call.number]
        entry.call = call
        entry.took = took
        entry.error = error
        if !entries.isEmpty, entries[Self.place(call.number)]?.number == call.number {
            entries[Self.place(call.number)] = entry
        }
        append(entry.json)
    }

    mutating func refuse(
        _ peer: ServerEvent.Peer, _ actor: String, _ target: String, _ error: TrebuchetError.Code, _ reason: String
    ) {
        append(
            .object(
                Entry.shown(peer) + [
                    ("actor", .text(actor)), ("method", .text(target)), ("time", .whole(WallTime.milliseconds)),
                    ("error", .text("\(error)")), ("refused", .text(String(reason.prefix(512)))),
                ]))
    }

    private mutating func append(_ json: InspectorJSON) {
        lastNumber += 1
        if ended.count < Self.room {
            ended.append((lastNumber, json))
        } else {
            ended[first] = (lastNumber, json)
            first = (first + 1) % Self.room
        }
    }

    func json(after: UInt64, limit: Int) -> InspectorJSON {
        var shown: [InspectorJSON] = []
        for place in (0..<ended.count).reversed() where shown.count < limit {
            let (number, json) = ended[(first + place) % ended.count]
            guard number > after else { break }
            guard case .object(let members) = json else { continue }
            shown.append(.object([("place", .count(number))] + members))
        }
        return .object([
            ("last", .count(lastNumber)), ("kept", .count(ended.count)), ("calls", .list(shown)),
        ])
    }
}

extension CallRing.Entry {
    static func shown(_ peer: ServerEvent.Peer) -> [(String, InspectorJSON)] {
        [
            ("connection", .count(peer.connection)), ("address", .text(peer.address.map { "\($0)" })),
            ("principal", .text(peer.principal)),
        ]
    }

    var json: InspectorJSON {
        guard let call else { return .object([("call", .count(number))]) }
        return .object(
            [("call", .count(number))] + Self.shown(call.peer) + [
                ("actor", .text(call.actor)), ("type", .text(call.type)), ("method", .text(call.method)),
                ("time", began > 0 ? .whole(began) : .null),
                ("seconds", took.map { .number($0 / .seconds(1)) } ?? .null),
                ("error", .text(error.map { "\($0)" })),
            ])
    }
}
