internal import Bytes
internal import Platform
internal import Synchronization
internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetCluster

/// A stream of an actor on another node, which this node receives once from its owner for all of its clients.
///
/// Each incarnation is a local replica, which client connections observe like a stream of this node. When the owner changes,
/// the replica ends, and each client requests the stream from the next owner, which authorizes it. The first authorized request
/// resumes the shared stream there at the position of the replica.
final class SharedStream: Sendable {
    /// The time for which it continues after the last subscriber has left.
    private static let linger = Duration.seconds(1)
    /// The time for which its versions are retained for clients that move to the next owner.
    private static let longestMove = Duration.seconds(60)

    /// The subscription at the owner.
    private struct Feed {
        let receiver: SharedStreamReceiver
        let number: UInt64
        /// True if the receiver requested the stream from a known position.
        let isResumed: Bool
    }

    /// The subscription, the replica and the waiting requests.
    private struct State {
        /// The subscription at the owner; nil without one.
        var feed: Feed?
        /// True if the catch-up is complete.
        var isCaughtUp = false
        /// The current or last replica.
        var mirror: RemoteStreamReplica?
        var waiting: [@Sendable (SharedStreamOutcome) -> Void] = []
        /// The number of subscribers that received the replica and do not observe it yet.
        var admitted = 0
        var hasEnded = false
        /// Incremented to invalidate scheduled checks for subscribers.
        var checkGeneration = 0
    }

    let key: SharedStreamSubscriptions.Key
    private weak let streams: SharedStreamSubscriptions?
    private let state = Mutex(State())

    init(_ key: SharedStreamSubscriptions.Key, in streams: SharedStreamSubscriptions) {
        self.key = key
        self.streams = streams
    }

    // MARK: Subscribers

    /// Answers with the stream, immediately if it is available, else after its start.
    ///
    /// - Parameters:
    ///   - node: the owner of the actor, which has authorized the client.
    ///   - seen: the position that the client has received.
    /// - Returns: false if this object has just ended: the caller must create another one.
    func join(
        at node: ClusterNode, behind seen: (epoch: String, sequence: UInt64),
        _ answer: @escaping @Sendable (SharedStreamOutcome) -> Void
    ) -> Bool {
        if let number = feed(notFrom: node) {
            for answer in endSubscription(number, isOwnerNotified: true) ?? [] { answer(.elsewhere) }
        }
        var found: RemoteStreamReplica?
        let isThere = state.withLock { state in
            guard !state.hasEnded else { return false }
            state.checkGeneration += 1
            if state.feed != nil, state.isCaughtUp, let mirror = state.mirror {
                state.admitted += 1
                found = mirror
                return true
            }
            state.waiting.append(answer)
            if state.feed == nil { startStream(at: node, behind: seen, &state) }
            return true
        }
        if let found { answer(.stream(found)) }
        return isThere
    }

    /// Returns the number of a subscription that must not continue, since it is from another node or its replica has ended.
    private func feed(notFrom node: ClusterNode) -> UInt64? {
        state.withLock { state in
            let isBroken = state.isCaughtUp && state.mirror?.hasEnded == true
            guard let feed = state.feed, feed.receiver.node != node || isBroken else {
                if isBroken { state.mirror = nil }
                return nil
            }
            return feed.number
        }
    }

    /// Ends a subscription. Notifies subscribers before any version is omitted, since a response may follow immediately.
    ///
    /// - Parameter isOwnerNotified: whether the owner is notified before the stream is requested again.
    /// - Returns: the waiting requests; nil if it has ended already.
    private func endSubscription(_ number: UInt64, isOwnerNotified: Bool) -> [@Sendable (SharedStreamOutcome) -> Void]?
    {
        let (mirror, isBroken) = state.withLock { state in
            state.feed?.number == number
                ? (state.mirror, state.isCaughtUp && state.mirror?.hasEnded == true) : (nil, false)
        }
        mirror?.finish(.moved)
        return state.withLock { state in
            guard let feed = state.feed, feed.number == number else { return nil }
            if isOwnerNotified { feed.receiver.endStream(number, mayReturn: false) }
            if isBroken { state.mirror = nil }
            return Self.stop(&state).0
        }
    }

    private func startStream(
        at node: ClusterNode, behind seen: (epoch: String, sequence: UInt64)?, _ state: inout State
    ) {
        guard let streams else { return }
        if state.mirror?.canApplyDeltas == false { state.mirror = nil }
        let receiver = streams.receiver(for: node)
        let behind = state.mirror.map { ($0.epoch, $0.position) } ?? seen ?? ("", 0)
        let request = SharedStreamRequest(
            actor: key.actor, target: key.target, epoch: behind.0, sequence: behind.1, isFresh: state.mirror == nil)
        let feed = Feed(receiver: receiver, number: streams.nextNumber(), isResumed: !behind.0.isEmpty)
        (state.feed, state.isCaughtUp) = (feed, false)
        receiver.startStream(self, feed.number, request)
    }

    /// Handles that a subscriber observes the replica, or no longer needs it.
    func didJoin() {
        let isUnused = state.withLock { state in
            state.admitted -= 1
            return state.admitted == 0 && state.mirror?.broadcasterCount == 0
        }
        if isUnused { scheduleSubscriberCheck() }
    }

    /// - Returns: the waiting requests, and the replica of existing subscribers.
    private static func stop(_ state: inout State) -> ([@Sendable (SharedStreamOutcome) -> Void], RemoteStreamReplica?)
    {
        defer { (state.feed, state.isCaughtUp, state.waiting) = (nil, false, []) }
        return (state.waiting, state.mirror)
    }

    private func scheduleSubscriberCheck() {
        let (generation, time) = state.withLock { state in
            state.checkGeneration += 1
            return (state.checkGeneration, state.feed == nil ? Self.longestMove : Self.linger)
        }
        Task { [weak self] in
            try? await Task.sleep(for: time)
            self?.endIfUnused(generation)
        }
    }

    private func endIfUnused(_ generation: Int) {
        let isUnused = state.withLock { state in
            guard state.checkGeneration == generation, !state.hasEnded, state.admitted == 0, state.waiting.isEmpty,
                state.mirror?.broadcasterCount ?? 0 == 0
            else { return false }
            state.hasEnded = true
            if let feed = state.feed {
                feed.receiver.endStream(feed.number, mayReturn: state.mirror?.expectsReturns == true)
            }
            (state.feed, state.mirror) = (nil, nil)
            return true
        }
        if isUnused { streams?.remove(self) }
    }

    // MARK: From the owner

    func receive(_ message: SharedStreamMessage) {
        switch message.kind {
        case .started: didStart(message)
        case .version:
            guard let mirror = mirror(forChannel: message.number) else { return }
            if message.version({ mirror.receiveMessage($0, $1) }) != true { endBrokenSubscription(message.number) }
        case .snapshot:
            guard let mirror = mirror(forChannel: message.number) else { return }
            _ = message.version { mirror.receiveSnapshot($0, $1) }
        case .caughtUp: didCatchUp(message.number)
        case .moved: endLostSubscription(message.number)
        case .deactivated: endStream(message.number, .actorNotFound)
        case .failed: fail(message)
        default: break
        }
    }

    private func mirror(forChannel number: UInt64) -> RemoteStreamReplica? {
        state.withLock { $0.feed?.number == number ? $0.mirror : nil }
    }

    private func didStart(_ message: SharedStreamMessage) {
        guard let start = message.decoded(SharedStreamStart.self) else { return endBrokenSubscription(message.number) }
        state.withLock { state in
            guard state.feed?.number == message.number else { return }
            state.mirror = RemoteStreamReplica(
                isEvents: start.isEvents, buffer: start.buffer, epoch: start.epoch,
                incarnations: start.earlierIncarnations.map {
                    StreamIncarnation(epoch: $0.epoch, lastVersion: $0.last)
                },
                position: start.position,
                after: start.continues ? state.mirror : nil, memory: streams?.memory
            ) { [weak self] in
                // In a task, outside of the isolation of the notification.
                Task { self?.scheduleSubscriberCheck() }
            }
        }
    }

    private func didCatchUp(_ number: UInt64) {
        let (mirror, waiting): (RemoteStreamReplica?, [@Sendable (SharedStreamOutcome) -> Void]) = state.withLock {
            state in
            guard state.feed?.number == number, let mirror = state.mirror else { return (nil, []) }
            state.isCaughtUp = true
            state.admitted += state.waiting.count
            defer { state.waiting = [] }
            return (mirror, state.waiting)
        }
        guard let mirror else { return }
        for answer in waiting { answer(.stream(mirror)) }
    }

    /// Ends a subscription whose channel is lost: subscribers and waiting requests must ask again.
    func endLostSubscription(_ number: UInt64) {
        endLostSubscription(number, isOwnerNotified: false)
    }

    private func endLostSubscription(_ number: UInt64, isOwnerNotified: Bool) {
        let node = state.withLock { $0.feed?.number == number ? $0.feed?.receiver.node : nil }
        guard let node else { return }
        streams?.didMove(ClusterSlot(of: key.actor), from: node)
        guard let waiting = endSubscription(number, isOwnerNotified: isOwnerNotified) else { return }
        for answer in waiting { answer(.elsewhere) }
        scheduleSubscriberCheck()
    }

    /// Ends the subscription if another node owns the actor now. Messages of the previous owner may be late, or sent before it
    /// knows the change.
    func ownerDidChange(to node: ClusterNode) {
        let feed = state.withLock { $0.feed }
        guard let feed, feed.receiver.node != node else { return }
        endLostSubscription(feed.number, isOwnerNotified: true)
    }

    /// Ends a subscription whose messages do not fit the replica: the stream begins again.
    private func endBrokenSubscription(_ number: UInt64) {
        let mirror: RemoteStreamReplica? = state.withLock { state in
            guard let feed = state.feed, feed.number == number else { return nil }
            feed.receiver.endStream(number, mayReturn: false)
            defer { state.mirror = nil }
            return state.mirror
        }
        mirror?.finish(.moved)
        endLostSubscription(number)
    }

    private func endStream(_ number: UInt64, _ end: RemoteStreamReplica.EndReason) {
        let (waiting, mirror): ([@Sendable (SharedStreamOutcome) -> Void], RemoteStreamReplica?) = state.withLock {
            state in
            guard let feed = state.feed, feed.number == number else { return ([], nil) }
            feed.receiver.removeStream(number)
            defer { state.mirror = nil }
            return Self.stop(&state)
        }
        mirror?.finish(end)
        for answer in waiting {
            if case .failed(let error) = end { answer(.failed(error)) } else { answer(.elsewhere) }
        }
        scheduleSubscriberCheck()
    }

    private func fail(_ message: SharedStreamMessage) {
        let error =
            message.decoded(SharedStreamFailure.self)?.error
            ?? TrebuchetError(.internal, "the stream was ended by its owner")
        // If the owner no longer has the versions after the requested position, begin without one: each client with that
        // position gets the error itself.
        let restarts = state.withLock { state in
            guard let feed = state.feed, feed.number == message.number, !state.isCaughtUp, feed.isResumed,
                error.code == .overflow
            else { return false }
            feed.receiver.removeStream(feed.number)
            state.mirror = nil
            startStream(at: feed.receiver.node, behind: nil, &state)
            return true
        }
        if !restarts { endStream(message.number, .failed(error)) }
    }
}
