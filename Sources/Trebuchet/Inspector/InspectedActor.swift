internal import Bytes
internal import Networking
internal import Synchronization
internal import Transports
internal import TrebuchetActors
internal import TrebuchetWire

/// An actor that is looked at, with its versions since then. All but `leave` under the recorder's lock.
///
/// `@unchecked Sendable`: constant, or guarded by that lock, but for the watches, which have their own.
final class InspectedActor: @unchecked Sendable {
    /// Versions that are kept, of all its streams together.
    static let room = 200
    /// Of what they were sent as, and of the calls that made them, all together, in bytes.
    private static let mostBytes = 4 << 20
    /// About what is kept of a call.
    private static let callBytes = 200

    struct Version {
        let stream: String
        let number: UInt64
        let time: Int64
        let bytes: Int
        let calls: [CallRing.Entry]
        let moreCalls: Int
        var taken: StateWatch.Taken?
        var patches = 0
        var wholes = 0
        var events = 0
        var skipped = 0

        fileprivate var heldBytes: Int { (taken?.json?.count ?? 0) + calls.count * InspectedActor.callBytes }
    }

    let name: String
    private weak var record: ActorRecord?
    let since = WallTime.milliseconds
    var looked: UInt64
    private(set) var versions: [Version] = []
    private var heldBytes = 0
    private let watches = Mutex<(list: [StateWatch], isOver: Bool)>(([], false))

    init(_ record: ActorRecord, looked: UInt64) {
        name = record.name
        self.record = record
        self.looked = looked
    }

    deinit { leave() }

    func isOf(_ record: ActorRecord) -> Bool { self.record === record }

    func add(_ watch: StateWatch) {
        let isOver = watches.withLock { watches in
            if !watches.isOver { watches.list.append(watch) }
            return watches.isOver
        }
        if isOver { watch.leave() }
    }

    /// Nobody looks any more. From anywhere.
    func leave() {
        let list = watches.withLock { watches in
            defer { watches = ([], true) }
            return watches.list
        }
        for watch in list { watch.leave() }
    }

    // MARK: What happens

    func add(_ version: ServerEvent.Version, calls: [CallRing.Entry]) {
        versions.append(
            Version(
                stream: version.stream.target, number: version.number, time: WallTime.milliseconds,
                bytes: version.bytes, calls: calls, moreCalls: version.moreCalls))
        heldBytes += calls.count * Self.callBytes
        keepToLimits()
    }

    private func keepToLimits() {
        while versions.count > Self.room || heldBytes > Self.mostBytes && versions.count > 1 {
            heldBytes -= versions.removeFirst().heldBytes
        }
    }

    /// The newest come last, and what happens to them follows soon.
    private func place(of stream: String, _ number: UInt64) -> Int? {
        versions.lastIndex { $0.number == number && $0.stream == stream }
    }

    func note(_ taken: StateWatch.Taken, of stream: String) {
        guard let place = place(of: stream, taken.number), versions[place].taken == nil else { return }
        versions[place].taken = taken
        heldBytes += taken.json?.count ?? 0
        keepToLimits()
    }

    func count(_ delivery: ServerEvent.Delivery) {
        guard let place = place(of: delivery.stream.target, delivery.number) else { return }
        switch delivery.form {
        case .patch: versions[place].patches += 1
        case .whole: versions[place].wholes += 1
        case .event: versions[place].events += 1
        }
    }

    /// A connection that is behind `from` gets `to`, and none of those between.
    func countSkipped(_ stream: String, _ from: UInt64, _ to: UInt64) {
        for place in versions.indices.reversed() where versions[place].stream == stream {
            guard versions[place].number > from else { return }
            if versions[place].number < to { versions[place].skipped += 1 }
        }
    }

}

extension InspectedActor.Version {
    /// - Parameter known: calls, most of which have ended since they made it.
    func json(_ known: CallRing) -> InspectorJSON {
        let causes = calls.map { cause in
            let now = known[cause.number]
            return now.call == nil ? cause.json : now.json
        }
        var members: [(String, InspectorJSON)] = [
            ("stream", .text(stream)), ("version", .count(number)), ("time", .whole(time)),
            ("bytes", .count(bytes)), ("calls", .list(causes)), ("moreCalls", .count(moreCalls)),
            (
                "delivered",
                .object([
                    ("patch", .count(patches)), ("whole", .count(wholes)),
                    ("event", .count(events)),
                ])
            ), ("skipped", .count(skipped)),
        ]
        if let taken {
            if let base = taken.base { members.append(("base", .count(base))) }
            members.append((taken.base == nil ? "value" : "patch", taken.json.map { .written($0) } ?? .null))
        }
        return .object(members)
    }
}

/// Follows a state of an actor from inside of the process, as a connection would that takes everything.
///
/// `@unchecked Sendable`: touched on its loop alone, but for what is constant.
final class StateWatch: StreamSubscriber, @unchecked Sendable {
    /// Longer ones are not copied.
    static let longest = 1 << 20

    /// What a version was sent as.
    struct Taken: Sendable {
        let number: UInt64
        /// The version that it is the difference from; nil of a whole value.
        let base: UInt64?
        /// Nil when it is longer than that.
        let json: [UInt8]?
        let bytes: Int
    }

    private let loop: SystemShard
    private let take: @Sendable (Taken?) -> Void
    private var subscription: StreamSubscription?
    /// A stream refers to who subscribes to it without holding him.
    private var itself: StateWatch?
    private var isOver = false

    /// - Parameter take: told each version, on the loop, and nil when there are none any more.
    private init(on loop: SystemShard, _ take: @escaping @Sendable (Taken?) -> Void) {
        self.loop = loop
        self.take = take
    }

    /// Follows a state from now on. Nothing comes of an actor that is gone.
    ///
    /// - Parameters:
    ///   - pool: where it is followed when the actor has no reactor.
    static func follow(
        _ stream: String, of record: ActorRecord, else pool: SystemShard,
        _ take: @escaping @Sendable (Taken?) -> Void
    ) -> StateWatch {
        let watch = StateWatch(on: record.home ?? pool, take)
        record.executeStreamingTarget(stream) { hub in
            watch.loop.reactor.run {
                guard let hub else { return take(nil) }
                watch.begin(stream, of: record, hub)
            }
        }
        return watch
    }

    private func begin(_ stream: String, of record: ActorRecord, _ hub: StreamHub) {
        guard !isOver else { return }
        itself = self
        let label = ServerEvent.Stream(actor: record.name, type: record.type.name, target: stream)
        loop.subscribe(to: hub, as: label) { broadcaster in
            let made = StreamSubscription(streamID: [], broadcaster: broadcaster, subscriber: self, isFiltered: true)
            subscription = made
            return made
        } attach: { broadcaster in
            record.executeStreamingTarget(stream) { source in
                if source == nil { broadcaster.send(.ended) } else { broadcaster.hub.attach(broadcaster) }
            }
        }
    }

    /// Follows it no more. From anywhere.
    func leave() {
        loop.reactor.execute {
            self.isOver = true
            if let subscription = self.subscription { subscription.broadcaster.remove(subscription) }
            self.subscription = nil
            self.itself = nil
        }
    }

    var isLocal: Bool { true }
    var isWritable: Bool { true }
    var isAwaited: Bool { false }
    func inOneWrite(_ body: () -> Void) { body() }
    func fellBehind() {}
    func streamsMayShow() {}

    func sendStreamData(_ subscription: StreamSubscription, suffix: SharedBytes) {
        let number = subscription.sent
        let base = StreamDataParts.base(inSuffix: suffix.bytes, sequence: number)
        let json =
            base.map { StreamDataParts.patch(inSuffix: suffix.bytes, sequence: number, base: $0) }
            ?? StreamDataParts.data(inSuffix: suffix.bytes, sequence: number)
        take(
            Taken(
                number: number, base: base, json: json.count <= Self.longest ? Array(json) : nil, bytes: json.count))
    }

    func endStream(_ subscription: StreamSubscription, reason: StreamEndReason, error: TrebuchetError?) {
        take(nil)
        // The stream may have let go of it already, which this does no harm to.
        leave()
    }
}

extension TrebuchetServer {
    /// Nil when no actor of this name stands ready. None is made.
    func inspectedActor(_ name: String, _ recorder: InspectorRecorder, versions: Int) async -> InspectorJSON? {
        guard let record = directory.record(ActorName(name)) else { return nil }
        let pool = shards[0].states
        let actor = await recorder.look(at: record) { actor, stream in
            actor.add(
                StateWatch.follow(stream, of: record, else: pool) { [weak recorder, weak actor] taken in
                    guard let taken, let recorder, let actor else { return }
                    recorder.note(taken, of: stream, in: actor)
                })
        }
        let description = record.type.description
        var states: [InspectorJSON] = []
        for stream in description.states {
            let taken = await value(of: stream, record)
            var members: [(String, InspectorJSON)] = [
                ("stream", .text(stream)), ("subscribers", .count(await subscriberCount(of: name, stream))),
                ("version", taken.map { .count($0.number) } ?? .null),
                ("bytes", taken.map { .count($0.bytes) } ?? .null),
            ]
            members.append(("value", taken?.json.map { .written($0) } ?? .null))
            states.append(.object(members))
        }
        return .object([
            ("name", .text(record.name)), ("type", .text(record.type.name)),
            ("reactor", .text(reactorName(of: record))), ("onDemand", .flag(record.stake != nil)),
            ("placed", .flag(record.isPlaced)), ("persisted", .flag(record.persisted != nil)),
            ("states", .list(states)), ("events", .list(description.events.map { .text($0) })),
            ("recorded", actor.map { recorder.versions(of: $0, limit: versions) } ?? .null),
        ])
    }

    /// A state as clients are shown it now; nil when it is not in 2 seconds.
    private func value(of stream: String, _ record: ActorRecord) async -> StateWatch.Taken? {
        let pool = shards[0].states
        let watch = Mutex<StateWatch?>(nil)
        defer { watch.withLock { $0 }?.leave() }
        return await Self.answer(within: Self.answerTime) { answer in
            watch.withLock { $0 = StateWatch.follow(stream, of: record, else: pool) { answer($0) } }
        }
    }
}
