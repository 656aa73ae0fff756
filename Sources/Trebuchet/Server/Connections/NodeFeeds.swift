internal import Bytes
internal import Networking
internal import Synchronization
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// Bytes that are on their way over one line to another node, for all reactors of this one.
final class FeedWindow: Sendable {
    /// Beyond which streams skip versions, or wait.
    private static let most = 1 << 20

    private let untaken = Atomic<Int>(0)

    var isOpen: Bool { untaken.load(ordering: .relaxed) <= Self.most }

    func add(_ count: Int) { untaken.add(count, ordering: .relaxed) }

    /// Whether there is room again that there was not.
    func take(_ count: Int) -> Bool {
        let (old, new) = untaken.subtract(count, ordering: .relaxed)
        return old > Self.most && new <= Self.most
    }
}

/// What another node takes of actors that live on this reactor, each stream once for all of that node's clients: who of those may observe
/// is asked for each over the client's own line.
///
/// It is where the actors live, and not where one of its clients' lines is, so that what a call has changed is on its way to that node
/// before the call's answer is, whichever reactor that leaves from.
///
/// `@unchecked Sendable`: on the shard's reactor alone.
final class NodeFeeds: StreamSubscriber, @unchecked Sendable {
    private let line: RelayLine
    let shard: ServerShard
    private let window: FeedWindow
    /// By the bytes of their numbers.
    private var streams = ConnectionStreams()
    private var actors: [[UInt8]: ActorName] = [:]
    /// Those of which not all has been sent that there was when they began; and whether the node wants the whole value.
    private var unshown: [[UInt8]: Bool] = [:]
    private var isBehind = false
    private var isOpen = true

    init(_ line: RelayLine, _ window: FeedWindow, at shard: ServerShard) {
        (self.line, self.window, self.shard) = (line, window, shard)
    }

    // MARK: Beginning and ending

    func begin(_ number: UInt64, _ beginning: SharedBeginning, of record: ActorRecord) {
        guard isOpen else { return }
        if streams.isEmpty, !shard.feeds.contains(where: { $0 === self }) { shard.feeds.append(self) }
        guard shard.isOwned(record), record.life.enter() else { return send(.moved, number) }
        defer { record.life.leave() }
        // On this reactor that happens at once.
        record.executeStreamingTarget(beginning.target) { source in
            guard let source, source.home === self.shard.states, source.kind != .filter else {
                return self.send(.moved, number)
            }
            self.begin(number, beginning, of: source)
        }
    }

    private func begin(_ number: UInt64, _ beginning: SharedBeginning, of source: StreamHub) {
        let position = source.position(keptFor: shard.limits.resumeTime)
        let goesOn = source.goesOn(from: beginning.sequence, in: beginning.epoch)
        // Who has nothing begins with the whole value, or behind what the first of its clients has, where none may be left out.
        let isBehind = goesOn && (!beginning.isFresh || source.buffer != nil)
        let start = isBehind ? beginning.sequence : position?.number ?? 0
        let answer = SharedStart(
            epoch: source.epoch, lives: source.lives.map { SharedStart.Life(epoch: $0.epoch, last: $0.last) },
            isEvents: source.kind == .events, buffer: source.buffer, position: start,
            continues: goesOn && !beginning.isFresh)
        line.send(SharedMessage.bytes(.started, number, answer), part: .toClientPart, last: .toClient)
        let name = Self.name(number)
        actors[name] = ActorName(beginning.actor)
        unshown[name] = beginning.isFresh && source.kind == .state && start > 0
        shard.states.subscribe(to: source) { broadcaster in
            let made = StreamSubscription(
                streamID: name, broadcaster: broadcaster, subscriber: self, isFiltered: false)
            made.begin(behind: start)
            streams[name] = made
            return made
        } attach: { broadcaster in
            withExtendedLifetime(position) { source.attach(broadcaster) }
        }
        streamsMayShow()
    }

    /// - Parameter mayReturn: whether somebody may want it again soon.
    func end(_ number: UInt64, mayReturn: Bool) {
        guard let subscription = streams[Self.name(number)] else { return }
        forget(subscription)
        subscription.broadcaster.remove(subscription, isLost: mayReturn)
    }

    private func forget(_ subscription: StreamSubscription) {
        streams[subscription.streamID] = nil
        actors[subscription.streamID] = nil
        unshown[subscription.streamID] = nil
    }

    /// The line is gone.
    func close() {
        isOpen = false
        shard.feeds.removeAll { $0 === self }
        let all = Array(streams.values)
        (streams, actors, unshown) = (ConnectionStreams(), [:], [:])
        for subscription in all { subscription.broadcaster.remove(subscription, isLost: true) }
    }

    /// Actors that live here no more.
    func moveStreams(of gone: Set<ActorName>) {
        for (name, actor) in actors where gone.contains(actor) {
            if let subscription = streams[name] { move(subscription) }
        }
    }

    private func move(_ subscription: StreamSubscription) {
        forget(subscription)
        subscription.broadcaster.remove(subscription)
        send(.moved, Self.number(subscription.streamID))
    }

    private static func name(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.littleEndian) { Array($0) } }

    private static func number(_ name: [UInt8]) -> UInt64 {
        UInt64(littleEndian: name.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) })
    }

    // MARK: To the node

    private func send(_ kind: SharedMessage.Kind, _ number: UInt64) {
        line.send(SharedMessage.bytes(kind, number), part: .toClientPart, last: .toClient)
    }

    private func send(
        _ kind: SharedMessage.Kind, _ subscription: StreamSubscription, _ suffix: SharedBytes
    ) {
        let message = SharedMessage.bytes(
            kind, Self.number(subscription.streamID), version: subscription.sent, suffix.bytes)
        window.add(message.count)
        line.send(message, part: .toClientPart, last: .toClient)
    }

    /// Sends what has changed and was not sent yet.
    func catchUp() {
        guard !streams.isEmpty else { return }
        shard.states.callDidEnd()
        switch streams.changed(in: &shard.states.changes) {
        case .none: return
        case .perhapsAll: for subscription in streams.values { catchUp(subscription) }
        case .these(let changed): for subscription in changed { catchUp(subscription) }
        }
    }

    private func catchUp(_ subscription: StreamSubscription) {
        guard subscription.place >= 0 else { return }
        subscription.broadcaster.hub.publish()
        subscription.broadcaster.catchUp(subscription)
    }

    func linkDidBecomeWritable() {
        guard isBehind else { return }
        isBehind = false
        for subscription in streams.values { subscription.broadcaster.catchUp(subscription) }
    }

    // MARK: StreamSubscriber

    var isLocal: Bool { false }
    var isWritable: Bool { window.isOpen }
    /// Whether the other node was not sent yet all that there was of a stream when it began.
    var hasUnshown: Bool { !unshown.isEmpty }
    // Of all subscribers of a stream one is asked for all of them.
    var isAwaited: Bool { shard.isAwaited }
    func inOneWrite(_ body: () -> Void) { body() }
    func fellBehind() { isBehind = true }

    func sendStreamData(_ subscription: StreamSubscription, suffix: SharedBytes) {
        guard subscription.place >= 0 else { return }
        send(.version, subscription, suffix)
    }

    func endStream(_ subscription: StreamSubscription, reason: StreamEndReason, error: TrebuchetError?) {
        guard streams[subscription.streamID] === subscription, let actor = actors[subscription.streamID] else { return }
        forget(subscription)
        subscription.broadcaster.remove(subscription)
        let number = Self.number(subscription.streamID)
        if let error {
            let message = SharedMessage.bytes(.failed, number, SharedFailure(error))
            return line.send(message, part: .toClientPart, last: .toClient)
        }
        let isGone = reason == .actorTerminated && shard.parts.nodes?.owns(actor.text) != false
        send(isGone ? .gone : .moved, number)
    }

    func streamsMayShow() {
        for (name, wantsWhole) in unshown {
            guard let subscription = streams[name], subscription.broadcaster.isUpToDate else { continue }
            unshown[name] = nil
            catchUp(subscription)
            guard streams[name] === subscription else { continue }
            if wantsWhole, let whole = subscription.broadcaster.whole(behind: subscription) {
                send(.whole, subscription, whole)
            }
            send(.shown, Self.number(name))
        }
    }
}
