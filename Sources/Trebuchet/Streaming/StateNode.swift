internal import Bytes
internal import Networking
internal import TrebuchetWire

/// The subscribers of one state on one reactor that speak one version of the protocol.
///
/// It keeps the newest update, and those of this turn until its end: a subscriber that cannot be written to then is left
/// behind and gets the newest update when it can.
///
/// `@unchecked Sendable`: everything but `send` and `isDetached` belongs to the shard's reactor.
final class StateNode: @unchecked Sendable {
    let version: ProtocolVersion
    let source: any AnyStateSource
    private let shard: ReactorShard
    private var latest: StateUpdate?
    private var history = PatchHistory()
    /// The last updates, where none may be left out; there once the source has sent it.
    private var backlog: Backlog?
    /// What came in this turn, oldest first, when it is more than `latest` alone.
    private var fresh: [StateUpdate] = []
    private var freshBytes = 0
    private var subscriptions: [StreamSubscription] = []
    private var isMarked = false
    /// Whether the source was asked for a whole value that has not come yet.
    private var awaitsWhole = false
    /// Set once the source is not to send to it any more; guarded by the source's lock, because source and node live on
    /// different reactors.
    var isDetached = false
    /// Whether somebody's connection has broken: they may come back.
    private(set) var wasLost = false
    /// Set when the source has nothing more to say.
    private var end: (reason: StreamEndReason, error: TrebuchetError?)?

    init(_ source: any AnyStateSource, version: ProtocolVersion, shard: ReactorShard) {
        self.source = source
        self.version = version
        self.shard = shard
    }

    var isEmpty: Bool { subscriptions.isEmpty }

    /// Takes an event from the source, from any thread.
    func send(_ event: StateEvent) {
        if shard.reactor.isCurrent { return receive(event) }
        shard.reactor.execute { self.receive(event) }
    }

    private func receive(_ event: StateEvent) {
        switch event {
        case .update(let update):
            guard update.sequence > latest?.sequence ?? 0 else { return }
            latest = update
            if version == .v3 { history.remember(update) }
            backlog?.append(update)
            keep(update)
            mark()
        case .attached(let update, let history, let backlog):
            guard update.sequence > latest?.sequence ?? 0 else { return }
            latest = update
            self.history = history
            self.backlog = backlog
            keep(update)
            mark()
        case .joined(let backlog):
            self.backlog = backlog
            mark()
        case .whole(let update):
            awaitsWhole = false
            guard update.sequence >= latest?.sequence ?? 0 else { return }
            latest = update
            // Now: at the end of the turn there may be a newer update, whose whole value would have to be asked for.
            flush()
        case .failed(let message):
            finish(.error, TrebuchetError(.internal, message))
        case .ended:
            finish(.actorTerminated, nil)
        }
    }

    private func keep(_ update: StateUpdate) {
        let bytes = max(update.byteCount, ReactorShard.leastEagerBytes)
        if freshBytes + bytes > ReactorShard.eagerBytesPerTurn { dropFresh() }
        fresh.append(update)
        freshBytes += bytes
    }

    private func dropFresh() {
        fresh.removeAll(keepingCapacity: true)
        freshBytes = 0
    }

    private func mark() {
        guard !isMarked else { return }
        isMarked = true
        shard.mark(self)
    }

    /// Brings every subscriber that can be written to up to date. At the end of the turn.
    func flush() {
        isMarked = false
        for subscription in subscriptions {
            subscription.session.inOneWrite { catchUp(subscription) }
        }
        dropFresh()
    }

    /// Brings one subscriber up to date, if it can be written to.
    func catchUp(_ subscription: StreamSubscription) {
        if let ordering = source.ordering { return catchUp(subscription, on: ordering) }
        guard let latest, latest.sequence > subscription.sent else { return }
        guard subscription.session.isWritable else { return subscription.session.fellBehind() }
        if subscription.sent > 0, let updates = history.updates(since: subscription.sent) {
            for update in updates { send(update, to: subscription) }
        } else if fresh.count > 1, subscription.sent > 0 {
            for update in fresh { send(update, to: subscription) }
        }
        if subscription.sent < latest.sequence { sendWhole(latest, to: subscription) }
    }

    /// The same where nothing may be left out.
    private func catchUp(_ subscription: StreamSubscription, on ordering: StreamOrdering) {
        guard let backlog, ordering.isEvents || latest != nil else { return }
        if subscription.sent == 0, !ordering.isEvents, let latest {
            guard subscription.session.isWritable else { return subscription.session.fellBehind() }
            return sendWhole(latest, to: subscription)
        }
        guard let missed = backlog.updates(after: subscription.sent) else {
            let text =
                "more than \(backlog.count) updates were missed: the connection is too slow, or was away too long"
            return subscription.session.endStream(subscription, reason: .error, error: TrebuchetError(.overflow, text))
        }
        for update in missed {
            guard subscription.session.isWritable else { return subscription.session.fellBehind() }
            send(update, to: subscription)
        }
    }

    /// Sends the newest version whole; one that was not encoded so far comes from the source, at home at once.
    private func sendWhole(_ update: StateUpdate, to subscription: StreamSubscription) {
        if update.suffix(for: version) != nil { return send(update, to: subscription) }
        guard !awaitsWhole, end == nil else { return }
        guard shard.isHome(of: source) else {
            awaitsWhole = true
            return source.requestWhole(for: self)
        }
        switch source.whole() {
        case .joined(let backlog):
            self.backlog = backlog
            mark()
        case .whole(let update):
            latest = update
            send(update, to: subscription)
        case let event: receive(event)
        }
    }

    private func send(_ update: StateUpdate, to subscription: StreamSubscription) {
        guard update.sequence > subscription.sent, let suffix = suffix(of: update, for: subscription) else { return }
        subscription.sent = update.sequence
        subscription.session.sendStreamData(subscription, suffix: suffix)
    }

    private func suffix(of update: StateUpdate, for subscription: StreamSubscription) -> SharedBytes? {
        if version == .v3, let patch = update.patch, patch.base == subscription.sent { return patch.suffix }
        return update.suffix(for: version)
    }

    func add(_ subscription: StreamSubscription) {
        if let end { return subscription.session.endStream(subscription, reason: end.reason, error: end.error) }
        subscriptions.append(subscription)
        subscription.place = subscriptions.count - 1
        source.countSubscriber(1)
        catchUp(subscription)
    }

    /// Forgets a subscriber; the last one in the list takes its place.
    ///
    /// - Parameter isLost: whether its connection has broken, and it may come back.
    func remove(_ subscription: StreamSubscription, isLost: Bool = false) {
        if isLost { wasLost = true }
        let place = subscription.place
        guard place >= 0, place < subscriptions.count, subscriptions[place] === subscription else { return }
        let last = subscriptions.removeLast()
        if last !== subscription {
            subscriptions[place] = last
            last.place = place
        }
        subscription.place = -1
        source.countSubscriber(-1)
        if subscriptions.isEmpty { shard.release(self) }
    }

    private func finish(_ reason: StreamEndReason, _ error: TrebuchetError?) {
        end = (reason, error)
        let ended = subscriptions
        subscriptions = []
        for subscription in ended {
            subscription.place = -1
            source.countSubscriber(-1)
            subscription.session.endStream(subscription, reason: reason, error: error)
        }
        shard.release(self)
    }
}

/// One stream to one client. On its session's reactor.
final class StreamSubscription {
    let streamID: [UInt8]
    let node: StateNode
    /// The session removes the subscription before it goes.
    unowned let session: Session
    /// The sequence number of the last update that was sent.
    var sent: UInt64 = 0
    /// Where the node keeps it; -1 when it does not.
    var place = -1
    /// What it uses of shares.
    let stakes: [Stake]

    init(streamID: [UInt8], node: StateNode, session: Session, stakes: [Stake]) {
        self.stakes = stakes
        self.streamID = streamID
        self.node = node
        self.session = session
    }
}
