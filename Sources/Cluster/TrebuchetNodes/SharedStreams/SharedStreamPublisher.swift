internal import Bytes
internal import Networking
internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// The owner of the feeds: the connection to one node.
protocol SharedStreamPublisherOwner: AnyObject, Sendable {
    /// Receives the end of a stream at its actor. May be called on any thread; ordered behind earlier messages of the connection.
    func didEnd(_ number: UInt64)
}

/// The streams of actors of this reactor that another node receives, each once for all clients of that node. The client's node
/// channel authorizes each of those clients.
///
/// The feeds belong to the actors' reactor, not to that of a client's channel. So the changes of a call are sent to the node before
/// the call's response, whichever reactor the response leaves from.
///
/// `@unchecked Sendable`: isolated to the shard's reactor.
final class SharedStreamPublisher: StreamSubscriber, @unchecked Sendable {
    /// The pending deliveries of one reactor to the node: streams that could not be sent up to their newest version, and that
    /// version.
    private struct ReactorBacklog {
        let number: UInt64
        var versions: [[UInt8]: UInt64]
    }

    weak let user: (any SharedStreamPublisherOwner)?
    private let node: NodeShard
    var shard: ServerShard { node.shard }
    let window: FlowControlWindow
    private let pendingDeliveries: PendingDeliveries
    /// The streams, by the bytes of their numbers.
    private var streams = ConnectionStreams()
    private var actors: [[UInt8]: ActorName] = [:]
    /// Streams whose initial catch-up is incomplete; the value says whether the node needs the whole value.
    private var unsentStarts: [[UInt8]: Bool] = [:]
    private var isShowing = false
    /// The deliveries that are sent next, in any order, and do not grow; and the changes since they began. So no stream, however
    /// often it changes, delays other streams or responses.
    private var currentBacklog: ReactorBacklog?
    private var nextBacklog: ReactorBacklog?
    /// Allows one message to exceed the window.
    private var hasTurn = false
    private var isOpen = true

    init(
        _ user: any SharedStreamPublisherOwner, _ window: FlowControlWindow, _ pendingDeliveries: PendingDeliveries,
        at node: NodeShard
    ) {
        (self.user, self.window, self.pendingDeliveries, self.node) = (user, window, pendingDeliveries, node)
    }

    // MARK: Beginning and ending

    func startStream(_ number: UInt64, _ request: SharedStreamRequest, of record: ActorRecord) {
        guard isOpen else { return }
        if streams.isEmpty, !node.feeds.contains(where: { $0 === self }) { node.feeds.append(self) }
        guard shard.isOwned(record), record.actorInstance.enter() else { return endStream(.moved, number) }
        defer { record.actorInstance.removeUser() }
        // The closure runs synchronously on this reactor.
        record.executeStreamingTarget(request.target) { source in
            guard let source, source.home === self.shard.states, source.kind != .filter else {
                return self.endStream(.moved, number)
            }
            self.startStream(number, request, of: source)
        }
    }

    private func startStream(_ number: UInt64, _ request: SharedStreamRequest, of source: StreamProducer) {
        let position = source.position(retainedFor: shard.limits.streams.resumeRetention)
        let isResumed = source.canResume(from: request.sequence, in: request.epoch)
        // A new stream starts with the whole value, or after the position of its first client where events must not be skipped.
        let isBehind = isResumed && (!request.isFresh || source.buffer != nil)
        let start = isBehind ? request.sequence : position?.number ?? 0
        let answer = SharedStreamStart(
            epoch: source.epoch,
            earlierIncarnations: source.incarnations.map {
                SharedStreamStart.Incarnation(epoch: $0.epoch, last: $0.lastVersion)
            },
            isEvents: source.kind == .events, buffer: source.buffer, position: start,
            continues: isResumed && !request.isFresh)
        window.send(SharedStreamMessage.bytes(.started, number, answer))
        let name = Self.name(number)
        actors[name] = ActorName(request.actor)
        unsentStarts[name] = request.isFresh && source.kind == .state && start > 0
        shard.states.subscribe(to: source) { broadcaster in
            let made = StreamSubscription(
                streamID: name, broadcaster: broadcaster, subscriber: self, isFiltered: false)
            made.markSent(upTo: start)
            streams[name] = made
            return made
        } attach: { broadcaster in
            withExtendedLifetime(position) { source.attach(broadcaster) }
        }
        streamDidCatchUp()
    }

    /// - Parameter mayReturn: True if a subscriber may resume it soon.
    func endStream(_ number: UInt64, mayReturn: Bool) {
        guard let subscription = streams[Self.name(number)] else { return }
        removeStream(subscription)
        subscription.broadcaster.remove(subscription, isLost: mayReturn)
    }

    private func removeStream(_ subscription: StreamSubscription) {
        streams[subscription.streamID] = nil
        actors[subscription.streamID] = nil
        unsentStarts[subscription.streamID] = nil
        guard currentBacklog != nil else { return }
        currentBacklog?.versions[subscription.streamID] = nil
        nextBacklog?.versions[subscription.streamID] = nil
        removeSent()
    }

    /// Ends all feeds: the node connection is closed.
    func close() {
        isOpen = false
        node.feeds.removeAll { $0 === self }
        let all = Array(streams.values)
        (streams, actors, unsentStarts) = (ConnectionStreams(), [:], [:])
        for subscription in all { subscription.broadcaster.remove(subscription, isLost: true) }
        for backlog in [currentBacklog, nextBacklog] {
            if let backlog { pendingDeliveries.endDelivery(backlog.number) }
        }
        (currentBacklog, nextBacklog) = (nil, nil)
    }

    /// Ends the streams of actors that no longer live here.
    func moveStreams(of moved: Set<ActorName>) {
        for (name, actor) in actors where moved.contains(actor) {
            if let subscription = streams[name] { move(subscription) }
        }
    }

    private func move(_ subscription: StreamSubscription) {
        removeStream(subscription)
        subscription.broadcaster.remove(subscription)
        endStream(.moved, Self.number(subscription.streamID))
    }

    private static func name(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.littleEndian) { Array($0) } }

    private static func number(_ name: [UInt8]) -> UInt64 {
        UInt64(littleEndian: name.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) })
    }

    // MARK: To the node

    private func endStream(_ kind: SharedStreamMessage.Kind, _ number: UInt64) {
        endStream(number, SharedStreamMessage.bytes(kind, number))
    }

    /// Sends the last message of a stream.
    private func endStream(_ number: UInt64, _ message: [UInt8]) {
        window.send(message)
        user?.didEnd(number)
    }

    private func send(
        _ kind: SharedStreamMessage.Kind, _ subscription: StreamSubscription, _ suffix: SharedBytes
    ) {
        window.send(
            SharedStreamMessage.bytes(
                kind, Self.number(subscription.streamID), version: subscription.sent, suffix.bytes))
        hasTurn = false
    }

    /// Sends all changes that were not sent yet.
    func catchUp() {
        guard !streams.isEmpty else { return }
        shard.states.callDidEnd()
        switch streams.changed(in: &shard.states.changes) {
        case .none: return
        case .possiblyAll: for subscription in streams.values { catchUp(subscription) }
        case .these(let changed): for subscription in changed { catchUp(subscription) }
        }
    }

    private func catchUp(_ subscription: StreamSubscription) {
        guard subscription.index >= 0 else { return }
        subscription.broadcaster.producer.publish()
        subscription.broadcaster.catchUp(subscription)
    }

    func linkDidBecomeWritable() {
        // Each stream gets one message, even when faster streams have filled the window: they would fill it again.
        hasTurn = true
        for backlog in [currentBacklog, nextBacklog] {
            for name in (backlog?.versions ?? [:]).keys {
                guard isWritable else { break }
                if let subscription = streams[name] { catchUp(subscription) }
            }
        }
        hasTurn = true
        streamDidCatchUp()
        hasTurn = false
    }

    /// Removes the pending deliveries that a message of the stream has satisfied.
    private func didSend(_ subscription: StreamSubscription) {
        guard currentBacklog != nil else { return }
        let (name, sent) = (subscription.streamID, subscription.sent)
        if let version = currentBacklog?.versions[name], version <= sent { currentBacklog?.versions[name] = nil }
        if let version = nextBacklog?.versions[name], version <= sent { nextBacklog?.versions[name] = nil }
        removeSent()
    }

    private func removeSent() {
        while let first = currentBacklog, first.versions.isEmpty {
            pendingDeliveries.endDelivery(first.number)
            (currentBacklog, nextBacklog) = (nextBacklog, nil)
        }
    }

    // MARK: StreamSubscriber

    var isLocal: Bool { false }
    var countsDeliveries: Bool { false }
    var isWritable: Bool { window.isOpen || hasTurn }
    /// Indicates whether the initial catch-up of a stream is incomplete at the other node.
    var hasUnsentStarts: Bool { !unsentStarts.isEmpty }
    // One subscriber of a stream is queried on behalf of all.
    var isAwaited: Bool { shard.isAwaited }
    func inOneWrite(_ body: () -> Void) { body() }

    func didBlock(_ subscription: StreamSubscription) {
        let (name, newest) = (subscription.streamID, subscription.broadcaster.newestSequence)
        guard newest > subscription.sent else { return }
        guard let first = currentBacklog else {
            return currentBacklog = ReactorBacklog(number: pendingDeliveries.startDelivery(), versions: [name: newest])
        }
        if let version = first.versions[name], version >= newest { return }
        if nextBacklog == nil { nextBacklog = ReactorBacklog(number: pendingDeliveries.startDelivery(), versions: [:]) }
        nextBacklog?.versions[name] = newest
    }

    func sendStreamData(_ subscription: StreamSubscription, suffix: SharedBytes) {
        guard subscription.index >= 0 else { return }
        send(.version, subscription, suffix)
        didSend(subscription)
    }

    func endStream(_ subscription: StreamSubscription, reason: StreamEndReason, error: TrebuchetError?) {
        guard streams[subscription.streamID] === subscription, let actor = actors[subscription.streamID] else { return }
        removeStream(subscription)
        subscription.broadcaster.remove(subscription)
        let number = Self.number(subscription.streamID)
        if let error {
            return endStream(number, SharedStreamMessage.bytes(.failed, number, SharedStreamFailure(error)))
        }
        let isGone = reason == .actorTerminated && node.nodes.owns(actor.text)
        endStream(isGone ? .deactivated : .moved, number)
    }

    func streamDidCatchUp() {
        guard !isShowing, !unsentStarts.isEmpty else { return }
        // A synchronous result of a request calls this method again.
        isShowing = true
        defer { isShowing = false }
        for (name, wantsWhole) in unsentStarts {
            guard isWritable else { return }
            if let subscription = streams[name] { reportCatchUp(of: subscription, wantsWhole) }
        }
    }

    /// Reports to the node that it has every version of a stream, once that is so.
    private func reportCatchUp(of subscription: StreamSubscription, _ wantsWhole: Bool) {
        let broadcaster = subscription.broadcaster
        guard broadcaster.isUpToDate else { return }
        catchUp(subscription)
        guard hasAll(subscription) else { return }
        if wantsWhole {
            if broadcaster.snapshotBytes(for: subscription) == nil {
                // A state that was loaded from its log may exist only as changes, without the whole value.
                broadcaster.requestSnapshot()
                catchUp(subscription)
            }
            guard hasAll(subscription), let whole = broadcaster.snapshotBytes(for: subscription) else { return }
            send(.snapshot, subscription, whole)
        }
        unsentStarts[subscription.streamID] = nil
        window.send(SharedStreamMessage.bytes(.caughtUp, Self.number(subscription.streamID)))
        hasTurn = false
    }

    /// Returns whether the stream is active and the node was sent its newest version.
    private func hasAll(_ subscription: StreamSubscription) -> Bool {
        streams[subscription.streamID] === subscription && subscription.broadcaster.isUpToDate
            && subscription.sent >= subscription.broadcaster.newestSequence
    }
}
