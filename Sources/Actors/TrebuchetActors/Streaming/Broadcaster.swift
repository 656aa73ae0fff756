internal import Bytes
internal import Platform
internal import Transports
internal import TrebuchetWire

/// The subscribers of one stream on one reactor.
///
/// It keeps the newest update, and the updates of this turn until all subscribers have been served. A subscriber that is not
/// writable is left behind and receives the newest update when it becomes writable.
///
/// `@unchecked Sendable`: everything except `send` and `isDetached` belongs to the shard's reactor.
package final class Broadcaster: @unchecked Sendable {
    /// The result of a pass over the subscribers.
    enum Pass {
        case done
        /// A subscriber served in this pass needs a newer update.
        case changedMeanwhile
        case underWay
    }

    package let producer: StreamProducer
    let shard: SystemShard
    /// The stream's names for event handlers; nil if the first subscriber did not give them.
    package let label: ServerEvent.Stream?
    /// The log of the received updates.
    var recent: VersionLog
    /// The last whole value that the source has sent on request, until all subscribers have been served.
    var requestedSnapshot: StateUpdate?
    /// The updates since all subscribers were last served.
    private(set) var fresh = TurnUpdates()
    private(set) var subscriptions: [StreamSubscription] = []
    /// The subscribers that wait for the current value of a filter, which may be absent, with their sequence numbers at the
    /// request.
    private var newSubscriptions: [ObjectIdentifier: (subscription: StreamSubscription, sent: UInt64)] = [:]
    /// Set while the subscribers are to be served.
    private(set) var isMarked = false
    /// The state of a pass: subscribers from this index on were served. When a subscriber leaves, the last one replaces it, so
    /// none is skipped.
    private var servedFromIndex: Int?
    private var changedMeanwhile = false
    /// The newest version at the start of the pass. At its end every writable subscriber has this version.
    private var passBegan: UInt64 = 0
    /// Set if a subscriber was not writable in the last pass.
    private var hasBlockedSubscriber = false
    private var inspectorCount = 0
    private var users = 0
    /// The counts of what its subscribers were sent so far.
    var sends = SharedFrameCache.Sends()
    /// Set until a requested whole value has arrived.
    var awaitsSnapshot = false
    /// The evaluation of versions of a filter that runs on another thread.
    var evaluation = AwaitedEvaluation()
    /// Set with the first event of the source.
    private var hasReceivedEvent = false
    /// Set when the source must not send any more. Guarded by the producer's lock, because producer and broadcaster live on
    /// different reactors.
    var isDetached = false
    /// Set after a subscriber's connection has broken, so that its client may resume.
    private(set) var wasLost = false
    /// Set after the source has sent its last event.
    private(set) var end: (reason: StreamEndReason, error: TrebuchetError?)?

    init(_ hub: StreamProducer, as label: ServerEvent.Stream? = nil, shard: SystemShard) {
        self.producer = hub
        self.label = label
        // A filter does not keep earlier versions; otherwise the log comes with the first event of the source.
        recent = VersionLog(keepingEach: hub.requestsCurrentValue ? hub.buffer : nil)
        self.shard = shard
    }

    /// The number of the newest received version.
    package var newestSequence: UInt64 { recent.newest?.sequence ?? 0 }

    /// Indicates whether the broadcaster waits for no value of the source.
    package var isUpToDate: Bool { end != nil || hasReceivedEvent && !awaitsSnapshot }

    /// Whether a pass has served a part of the subscribers and continues in later turns.
    var isUnderWay: Bool { servedFromIndex != nil }

    // MARK: From the source

    /// Receives an event from the source, on any thread.
    ///
    /// It is handled in place only on the home reactor. Events from elsewhere arrive in their order, on the thread where the
    /// actor runs or is freed.
    package func send(_ event: StateEvent) {
        if shard.isHome(of: producer), shard.reactor.isCurrent { return receive(event) }
        shard.reactor.execute { self.receive(event) }
    }

    func receive(_ event: StateEvent) {
        // It is no value, so subscribers that wait for the first one continue to wait.
        if case .clientsDismissed(let error) = event { return endClientStreams(error) }
        guard !isUpToDate else { return handle(event) }
        // All connections belong to the same server.
        let connection = subscriptions.first { !$0.subscriber.isLocal }?.subscriber
        let readers = connection?.isAwaited == true ? subscriptions.map(\.subscriber) : []
        hasReceivedEvent = true
        handle(event)
        guard isUpToDate else { return }
        for reader in readers { reader.streamDidCatchUp() }
    }

    private func handle(_ event: StateEvent) {
        switch event {
        case .update(let update):
            guard update.sequence > newestSequence else { return }
            recent.append(update)
            receiveUpdate(update)
        case .attached(let recent):
            guard recent.newest.map({ $0.sequence > newestSequence }) ?? true else { return }
            self.recent = recent
            guard let newest = recent.newest else { return mark() }
            // Requested immediately, because responses wait for the value.
            if needsSnapshot(newest) { requestSnapshot() }
            receiveUpdate(newest)
        case .snapshot(let update):
            let wasAwaited = awaitsSnapshot
            awaitsSnapshot = false
            // The current value of a filter is for the subscribers that have requested it. Others have received it, or receive
            // it when it is due.
            guard !producer.requestsCurrentValue else { return serveNewSubscribers(update) }
            if update.sequence >= newestSequence {
                recent.newest = update
            } else if recent.updates(since: update.sequence) == nil {
                // Newer versions have arrived that do not continue from this one.
                if wasAwaited, let newest = recent.newest, needsSnapshot(newest) { requestSnapshot() }
                return
            }
            if wasAwaited || isMarked { requestedSnapshot = update }
            // On the home reactor, the value comes immediately, for the subscriber that needs it.
            if wasAwaited { mark() }
        case .nothing:
            awaitsSnapshot = false
            newSubscriptions = [:]
        case .failed(let error):
            finish(.error, error)
        // Handled before.
        case .clientsDismissed: break
        case .ended:
            finish(.actorTerminated, nil)
        }
    }

    private func receiveUpdate(_ update: StateUpdate) {
        fresh.append(update.isLargePatch ? update.withoutSnapshot : update)
        mark()
    }

    private func mark() {
        shard.didChange(self)
        changedMeanwhile = servedFromIndex != nil
        guard !isMarked else { return }
        isMarked = true
        shard.mark(self)
    }

    // MARK: To the subscribers

    /// Brings the writable subscribers up to date within the time slice. At the end of a turn.
    func flush(_ slice: inout FlushBudget) -> Pass {
        var index = min(servedFromIndex ?? subscriptions.count, subscriptions.count)
        if servedFromIndex == nil {
            changedMeanwhile = false
            hasBlockedSubscriber = false
            passBegan = newestSequence
        }
        servedFromIndex = index
        while index > 0 {
            guard !slice.isOver else {
                servedFromIndex = index
                return .underWay
            }
            index -= 1
            let subscription = subscriptions[index]
            let (messages, bytes) = (sends.messages, sends.bytes)
            write(to: subscription)
            slice.didSend(Int(truncatingIfNeeded: sends.messages &- messages), bytes: sends.bytes &- bytes)
            // This and other subscribers may have been removed.
            index = min(index, subscriptions.count)
        }
        servedFromIndex = nil
        shard.commonFrames.clear()
        if let createdAt = recent.newest?.createdAt, createdAt > 0 {
            shard.counts.count(.deliveries, duration: MonotonicClock.now &- createdAt)
        }
        if changedMeanwhile {
            fresh.removeAll(upTo: passBegan)
            return .changedMeanwhile
        }
        isMarked = false
        fresh.removeAll()
        requestedSnapshot = nil
        // New subscribers do not receive this text, and no other subscriber needs it.
        if producer.requestsCurrentValue, !hasBlockedSubscriber { recent.newest = recent.newest?.withoutText }
        return .done
    }

    /// Serves one subscriber. Most subscribers are at the same version as the previous one and receive the same frame bytes.
    private func write(to subscription: StreamSubscription) {
        let (common, subscriber) = (shard.commonFrames, subscription.subscriber)
        let framing = subscriber.framing
        guard framing != 0, newSubscriptions.isEmpty, !shard.events.isEnabled(for: .deliveries) else {
            return subscriber.inOneWrite { catchUp(subscription) }
        }
        switch common.lookUp(subscription, framing, newest: newestSequence) {
        case .usable:
            guard subscriber.sendSharedFrames(common.frames.bytes) else { return catchUp(subscription) }
            let repeated = common.sends
            subscription.didSend(newestSequence)
            sends += repeated
            shard.counts.count(.versionsSkipped, repeated.skipped)
            guard subscription.countsDeliveries else { return }
            shard.counts.count(.patchesDelivered, repeated.patches)
            shard.counts.count(.wholesDelivered, repeated.wholeValues)
            shard.counts.count(.eventsDelivered, repeated.events)
        case .cacheable:
            let before = sends
            common.clear()
            subscriber.inOneWrite {
                catchUp(subscription)
            } observing: {
                if $0.count <= SharedFrameCache.maximumBytes { common.frames.append($0) }
            }
            common.storeFrames(sends - before, for: subscription, newest: newestSequence)
        case .other:
            subscriber.inOneWrite { catchUp(subscription) }
        }
    }

    /// Handles a subscriber that is not writable: its updates are kept until it is writable again.
    func markBlocked(_ subscription: StreamSubscription) {
        hasBlockedSubscriber = true
        shard.counts.count(.subscribersBlocked)
        subscription.subscriber.didBlock(subscription)
        guard shard.events.isEnabled(for: .deliveries), let label else { return }
        shard.events.emit(
            .subscriberFellBehind(label, connection: subscription.subscriber.connectionNumber, at: subscription.sent))
    }

    /// Handles a subscriber that has caught up: updates kept for it may be released.
    func didCatchUp() {
        if hasBlockedSubscriber, producer.requestsCurrentValue, servedFromIndex == nil { mark() }
    }

    // MARK: Subscriptions

    func addSubscription(_ subscription: StreamSubscription) {
        if let end { return subscription.subscriber.endStream(subscription, reason: end.reason, error: end.error) }
        subscriptions.append(subscription)
        subscription.index = subscriptions.count - 1
        count(subscription, 1)
        // The version sent last may no longer satisfy the filter.
        if subscription.sent == 0, producer.requestsCurrentValue, recent.newest != nil {
            return requestFirstValue(for: subscription)
        }
        catchUp(subscription)
    }

    /// Requests the first value for one subscriber from a source that may have no current value.
    func requestFirstValue(for subscription: StreamSubscription) {
        subscription.markSent(upTo: newestSequence)
        newSubscriptions[ObjectIdentifier(subscription)] = (subscription, subscription.sent)
        requestSnapshot()
    }

    /// Repeats the request for a subscriber that was not writable when the value arrived.
    func repeatRequest(for subscription: StreamSubscription) {
        guard !newSubscriptions.isEmpty, subscription.subscriber.isWritable,
            newSubscriptions[ObjectIdentifier(subscription)] != nil
        else { return }
        requestSnapshot()
    }

    private func serveNewSubscribers(_ update: StateUpdate) {
        let served = newSubscriptions
        newSubscriptions = [:]
        for (subscription, sent) in served.values {
            // A subscriber with a newer version needs nothing.
            guard subscription.sent == sent, sent <= update.sequence else { continue }
            guard subscription.subscriber.isWritable else {
                subscription.subscriber.didBlock(subscription)
                newSubscriptions[ObjectIdentifier(subscription)] = (subscription, sent)
                continue
            }
            guard let suffix = update.current else { continue }
            subscription.didSend(update.sequence)
            count(update.sequence, isPatch: false, suffix.count, to: subscription)
            subscription.subscriber.sendStreamData(subscription, suffix: suffix)
        }
    }

    /// Requests the whole value of the newest version from the source. On the home reactor it is available on return, unless it
    /// may not be shown yet.
    package func requestSnapshot() {
        guard !awaitsSnapshot, end == nil else { return }
        awaitsSnapshot = true
        producer.enter { self.producer.sendSnapshot(to: self) }
    }

    /// Removes a subscriber; the last one in the list takes its index.
    ///
    /// - Parameter isLost: whether its connection has broken, so that its client may resume.
    package func remove(_ subscription: StreamSubscription, isLost: Bool = false) {
        if isLost { wasLost = true }
        let index = subscription.index
        guard index >= 0, index < subscriptions.count, subscriptions[index] === subscription else { return }
        let last = subscriptions.removeLast()
        if last !== subscription {
            subscriptions[index] = last
            last.index = index
        }
        subscription.index = -1
        if !newSubscriptions.isEmpty { newSubscriptions[ObjectIdentifier(subscription)] = nil }
        count(subscription, -1)
        if subscriptions.isEmpty {
            shard.release(self)
            endEvaluation()
        } else {
            didCatchUp()
        }
    }

    private func count(_ subscription: StreamSubscription, _ change: Int) {
        let before = hasOnlyInspectors
        if subscription.subscriber.isInspector { inspectorCount += change } else { users += change }
        if !subscription.subscriber.isLocal { producer.countSubscriber(change) }
        if hasOnlyInspectors != before { producer.addInspectorOnlyBroadcasters(before ? -1 : 1) }
    }

    /// Indicates whether all subscribers are inspectors, which do not keep the actor active.
    private var hasOnlyInspectors: Bool { inspectorCount > 0 && users == 0 }

    private func finish(_ reason: StreamEndReason, _ error: TrebuchetError?) {
        // Updates marked for the end of the turn would otherwise be lost.
        if isMarked { sendRemaining() }
        end = (reason, error)
        defer { endEvaluation() }
        let ended = subscriptions
        subscriptions = []
        newSubscriptions = [:]
        for subscription in ended {
            subscription.index = -1
            count(subscription, -1)
            subscription.subscriber.endStream(subscription, reason: reason, error: error)
        }
        shard.release(self)
    }

    private func endClientStreams(_ error: TrebuchetError) {
        // Updates marked for the end of the turn precede the end.
        if isMarked { sendRemaining() }
        for subscription in subscriptions where !subscription.subscriber.isLocal {
            subscription.subscriber.endStream(subscription, reason: .error, error: error)
        }
    }
}
