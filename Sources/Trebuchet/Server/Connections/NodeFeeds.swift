internal import Bytes
internal import Networking
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// Whose streams they are: one line to a node.
protocol NodeFeedsUser: AnyObject, Sendable {
    /// A stream has ended at its actor. From anywhere: behind what has come over the line before.
    func didEnd(_ number: UInt64)
}

/// What another node takes of actors that live on this reactor, each stream once for all of that node's clients: who of those may observe
/// is asked for each over the client's own line.
///
/// It is where the actors live, and not where one of its clients' lines is, so that what a call has changed is on its way to that node
/// before the call's answer is, whichever reactor that leaves from.
///
/// `@unchecked Sendable`: on the shard's reactor alone.
final class NodeFeeds: StreamSubscriber, @unchecked Sendable {
    /// What one reactor owes the node: streams that could not be sent as far as they had changed, and how far that is.
    private struct Owed {
        let number: UInt64
        var versions: [[UInt8]: UInt64]
    }

    weak let user: (any NodeFeedsUser)?
    let shard: ServerShard
    let window: FeedWindow
    private let arrears: FeedArrears
    /// By the bytes of their numbers.
    private var streams = ConnectionStreams()
    private var actors: [[UInt8]: ActorName] = [:]
    /// Those of which not all has been sent that there was when they began; and whether the node wants the whole value.
    private var unshown: [[UInt8]: Bool] = [:]
    private var isShowing = false
    /// What is sent next, in whatever order, and grows no more; and what has changed since that began. So no stream, however often it
    /// changes, keeps others or answers waiting.
    private var owed: Owed?
    private var owedNext: Owed?
    /// Whether one message may go beyond the window.
    private var hasTurn = false
    private var isOpen = true

    init(_ user: any NodeFeedsUser, _ window: FeedWindow, _ arrears: FeedArrears, at shard: ServerShard) {
        (self.user, self.window, self.arrears, self.shard) = (user, window, arrears, shard)
    }

    // MARK: Beginning and ending

    func begin(_ number: UInt64, _ beginning: SharedBeginning, of record: ActorRecord) {
        guard isOpen else { return }
        if streams.isEmpty, !shard.feeds.contains(where: { $0 === self }) { shard.feeds.append(self) }
        guard shard.isOwned(record), record.life.enter() else { return end(.moved, number) }
        defer { record.life.leave() }
        // On this reactor that happens at once.
        record.executeStreamingTarget(beginning.target) { source in
            guard let source, source.home === self.shard.states, source.kind != .filter else {
                return self.end(.moved, number)
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
        window.send(SharedMessage.bytes(.started, number, answer))
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
        guard owed != nil else { return }
        owed?.versions[subscription.streamID] = nil
        owedNext?.versions[subscription.streamID] = nil
        dropWhatWasSent()
    }

    /// The line is gone.
    func close() {
        isOpen = false
        shard.feeds.removeAll { $0 === self }
        let all = Array(streams.values)
        (streams, actors, unshown) = (ConnectionStreams(), [:], [:])
        for subscription in all { subscription.broadcaster.remove(subscription, isLost: true) }
        for owed in [owed, owedNext] { if let owed { arrears.end(owed.number) } }
        (owed, owedNext) = (nil, nil)
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
        end(.moved, Self.number(subscription.streamID))
    }

    private static func name(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.littleEndian) { Array($0) } }

    private static func number(_ name: [UInt8]) -> UInt64 {
        UInt64(littleEndian: name.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) })
    }

    // MARK: To the node

    private func end(_ kind: SharedMessage.Kind, _ number: UInt64) { end(number, SharedMessage.bytes(kind, number)) }

    /// Says the last thing of a stream.
    private func end(_ number: UInt64, _ message: [UInt8]) {
        window.send(message)
        user?.didEnd(number)
    }

    private func send(
        _ kind: SharedMessage.Kind, _ subscription: StreamSubscription, _ suffix: SharedBytes
    ) {
        window.send(
            SharedMessage.bytes(kind, Self.number(subscription.streamID), version: subscription.sent, suffix.bytes))
        hasTurn = false
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
        // Each has its turn, also when others were faster and have taken the room: they would be so again.
        hasTurn = true
        for owed in [owed, owedNext] {
            for name in (owed?.versions ?? [:]).keys {
                guard isWritable else { break }
                if let subscription = streams[name] { catchUp(subscription) }
            }
        }
        hasTurn = true
        streamsMayShow()
        hasTurn = false
    }

    /// Something of a stream was sent: whether that is what is owed.
    private func didSend(_ subscription: StreamSubscription) {
        guard owed != nil else { return }
        let (name, sent) = (subscription.streamID, subscription.sent)
        if let version = owed?.versions[name], version <= sent { owed?.versions[name] = nil }
        if let version = owedNext?.versions[name], version <= sent { owedNext?.versions[name] = nil }
        dropWhatWasSent()
    }

    private func dropWhatWasSent() {
        while let first = owed, first.versions.isEmpty {
            arrears.end(first.number)
            (owed, owedNext) = (owedNext, nil)
        }
    }

    // MARK: StreamSubscriber

    var isLocal: Bool { false }
    var countsDeliveries: Bool { false }
    var isWritable: Bool { window.isOpen || hasTurn }
    /// Whether the other node was not sent yet all that there was of a stream when it began.
    var hasUnshown: Bool { !unshown.isEmpty }
    // Of all subscribers of a stream one is asked for all of them.
    var isAwaited: Bool { shard.isAwaited }
    func inOneWrite(_ body: () -> Void) { body() }

    func fellBehind(_ subscription: StreamSubscription) {
        let (name, newest) = (subscription.streamID, subscription.broadcaster.newestSequence)
        guard newest > subscription.sent else { return }
        guard let first = owed else { return owed = Owed(number: arrears.begin(), versions: [name: newest]) }
        if let version = first.versions[name], version >= newest { return }
        if owedNext == nil { owedNext = Owed(number: arrears.begin(), versions: [:]) }
        owedNext?.versions[name] = newest
    }

    func sendStreamData(_ subscription: StreamSubscription, suffix: SharedBytes) {
        guard subscription.place >= 0 else { return }
        send(.version, subscription, suffix)
        didSend(subscription)
    }

    func endStream(_ subscription: StreamSubscription, reason: StreamEndReason, error: TrebuchetError?) {
        guard streams[subscription.streamID] === subscription, let actor = actors[subscription.streamID] else { return }
        forget(subscription)
        subscription.broadcaster.remove(subscription)
        let number = Self.number(subscription.streamID)
        if let error {
            return end(number, SharedMessage.bytes(.failed, number, SharedFailure(error)))
        }
        let isGone = reason == .actorTerminated && shard.parts.nodes?.owns(actor.text) != false
        end(isGone ? .gone : .moved, number)
    }

    func streamsMayShow() {
        guard !isShowing, !unshown.isEmpty else { return }
        // What comes at once when it is asked for leads here again.
        isShowing = true
        defer { isShowing = false }
        for (name, wantsWhole) in unshown {
            guard isWritable else { return }
            if let subscription = streams[name] { show(subscription, wantsWhole) }
        }
    }

    /// Tells the node that it has all there is of a stream, once that is so.
    private func show(_ subscription: StreamSubscription, _ wantsWhole: Bool) {
        let broadcaster = subscription.broadcaster
        guard broadcaster.isUpToDate else { return }
        catchUp(subscription)
        guard hasAll(subscription) else { return }
        if wantsWhole {
            if broadcaster.whole(behind: subscription) == nil {
                // Nothing but the way to it is here: of a state that was loaded from its log, say.
                broadcaster.requestWhole()
                catchUp(subscription)
            }
            guard hasAll(subscription), let whole = broadcaster.whole(behind: subscription) else { return }
            send(.whole, subscription, whole)
        }
        unshown[subscription.streamID] = nil
        window.send(SharedMessage.bytes(.shown, Self.number(subscription.streamID)))
        hasTurn = false
    }

    /// Whether the node was sent all that there is of a stream, which has not ended.
    private func hasAll(_ subscription: StreamSubscription) -> Bool {
        streams[subscription.streamID] === subscription && subscription.broadcaster.isUpToDate
            && subscription.sent >= subscription.broadcaster.newestSequence
    }
}
