internal import Bytes
internal import Platform
internal import Transports
internal import TrebuchetWire

/// The subscribers of one stream on one reactor.
///
/// It keeps the newest update, and those of this turn until all have been written to: a subscriber that cannot be written
/// to then is left behind and gets the newest update when it can.
///
/// `@unchecked Sendable`: everything but `send` and `isDetached` belongs to the shard's reactor.
package final class Broadcaster: @unchecked Sendable {
    /// What a pass over the subscribers has come to.
    enum Pass {
        case done
        /// There is something new for those who were written to.
        case changedMeanwhile
        case underWay
    }

    package let hub: StreamHub
    let shard: SystemShard
    /// What it carries, for those who listen; nil where who subscribed first did not say.
    package let label: ServerEvent.Stream?
    /// Of the updates that came.
    var recent: VersionLog
    /// The last whole value that the source has sent for those who asked, until all have been written to.
    var whole: StateUpdate?
    /// What came since all were written to.
    private(set) var fresh = FreshUpdates()
    private(set) var subscriptions: [StreamSubscription] = []
    /// Those who are to get what the source says of now, where that may be nothing, with what had been sent before.
    private var newcomers: [ObjectIdentifier: (subscription: StreamSubscription, sent: UInt64)] = [:]
    /// Whether all are to be written to.
    private(set) var isMarked = false
    /// In a pass: those from this place on were written to. A subscriber that leaves has the last one take its place, so
    /// nobody is passed over.
    private var written: Int?
    private var changedMeanwhile = false
    /// The newest when the pass began: at its end all have that, but for those who could not be written to.
    private var passBegan: UInt64 = 0
    /// Whether somebody could not be written to in the last pass.
    private var leftBehind = false
    private var lookers = 0
    private var users = 0
    /// What its subscribers were sent so far.
    var sends = CommonFrames.Sends()
    /// Whether the source was asked for a whole value that has not come yet.
    var awaitsWhole = false
    /// Whether the source has sent anything so far.
    private var isFed = false
    /// Set once the source is not to send to it any more; guarded by the hub's lock, because hub and broadcaster live on
    /// different reactors.
    var isDetached = false
    /// Whether somebody's connection has broken: they may come back.
    private(set) var wasLost = false
    /// Set when the source has nothing more to say.
    private(set) var end: (reason: StreamEndReason, error: TrebuchetError?)?

    init(_ hub: StreamHub, as label: ServerEvent.Stream? = nil, shard: SystemShard) {
        self.hub = hub
        self.label = label
        // Of a filter, which does not keep what it has shown; else the log comes with what the source sends first.
        recent = VersionLog(keepingEach: hub.asksForFirst ? hub.buffer : nil)
        self.shard = shard
    }

    /// The number of the newest that has come.
    package var newestSequence: UInt64 { recent.newest?.sequence ?? 0 }

    /// Whether nothing is on its way that the source was asked for.
    package var isUpToDate: Bool { end != nil || isFed && !awaitsWhole }

    /// Whether some were written to and others wait for later turns.
    var isUnderWay: Bool { written != nil }

    // MARK: From the source

    /// Takes an event from the source, from any thread.
    ///
    /// In place at home alone: what comes from elsewhere comes in its order, on whichever thread its actor runs, or comes to its end.
    package func send(_ event: StateEvent) {
        if shard.isHome(of: hub), shard.reactor.isCurrent { return receive(event) }
        shard.reactor.execute { self.receive(event) }
    }

    func receive(_ event: StateEvent) {
        guard !isUpToDate else { return handle(event) }
        // All connections are of one server.
        let connection = subscriptions.first { !$0.subscriber.isLocal }?.subscriber
        let readers = connection?.isAwaited == true ? subscriptions.map(\.subscriber) : []
        isFed = true
        handle(event)
        guard isUpToDate else { return }
        for reader in readers { reader.streamsMayShow() }
    }

    private func handle(_ event: StateEvent) {
        switch event {
        case .update(let update):
            guard update.sequence > newestSequence else { return }
            recent.append(update)
            take(update)
        case .attached(let recent):
            guard recent.newest.map({ $0.sequence > newestSequence }) ?? true else { return }
            self.recent = recent
            guard let newest = recent.newest else { return mark() }
            // At once: until it is there, answers wait behind it.
            if lacksWhole(newest) { requestWhole() }
            take(newest)
        case .whole(let update):
            let wasAwaited = awaitsWhole
            awaitsWhole = false
            // What a filter shows now is for those who asked: others have got it, or get it when it is time.
            guard !hub.asksForFirst else { return serveNewcomers(update) }
            if update.sequence >= newestSequence {
                recent.newest = update
            } else if recent.updates(since: update.sequence) == nil {
                // Versions have come meanwhile that do not lead on from it.
                if wasAwaited, let newest = recent.newest, lacksWhole(newest) { requestWhole() }
                return
            }
            if wasAwaited || isMarked { whole = update }
            // At home it comes at once, to the one that needs it.
            if wasAwaited { mark() }
        case .nothing:
            awaitsWhole = false
            newcomers = [:]
        case .failed(let error):
            finish(.error, error)
        case .ended:
            finish(.actorTerminated, nil)
        }
    }

    private func take(_ update: StateUpdate) {
        fresh.append(update.isLargePatch ? update.withoutWhole : update)
        mark()
    }

    private func mark() {
        shard.didChange(self)
        changedMeanwhile = written != nil
        guard !isMarked else { return }
        isMarked = true
        shard.mark(self)
    }

    // MARK: To the subscribers

    /// Brings the subscribers that can be written to up to date, for as long as the slice lasts. At the end of a turn.
    func flush(_ slice: inout FlushSlice) -> Pass {
        var place = min(written ?? subscriptions.count, subscriptions.count)
        if written == nil {
            changedMeanwhile = false
            leftBehind = false
            passBegan = newestSequence
        }
        written = place
        while place > 0 {
            guard !slice.isOver else {
                written = place
                return .underWay
            }
            place -= 1
            let subscription = subscriptions[place]
            let before = sends.messages
            write(to: subscription)
            slice.didSend(Int(truncatingIfNeeded: sends.messages &- before))
            // It may have gone, and others with it.
            place = min(place, subscriptions.count)
        }
        written = nil
        shard.commonFrames.clear()
        if let made = recent.newest?.made, made > 0 {
            shard.counts.count(.deliveries, took: MonotonicClock.now &- made)
        }
        if changedMeanwhile {
            fresh.removeAll(upTo: passBegan)
            return .changedMeanwhile
        }
        isMarked = false
        fresh.removeAll()
        whole = nil
        // Who is new is not sent it, and nobody else needs it any more.
        if hub.asksForFirst, !leftBehind { recent.newest = recent.newest?.withoutText }
        return .done
    }

    /// Most are where the one before them was, and get the very bytes that this one got.
    private func write(to subscription: StreamSubscription) {
        let (common, subscriber) = (shard.commonFrames, subscription.subscriber)
        let framing = subscriber.framing
        guard framing != 0, newcomers.isEmpty, !shard.events.wants(.deliveries) else {
            return subscriber.inOneWrite { catchUp(subscription) }
        }
        switch common.look(at: subscription, framing, newest: newestSequence) {
        case .fits:
            guard subscriber.sendAgain(common.frames.bytes) else { return catchUp(subscription) }
            let again = common.sends
            subscription.didSend(newestSequence)
            sends += again
            shard.counts.count(.versionsSkipped, again.skipped)
            guard subscription.countsDeliveries else { return }
            shard.counts.count(.patchesDelivered, again.patches)
            shard.counts.count(.wholesDelivered, again.wholes)
            shard.counts.count(.eventsDelivered, again.events)
        case .isToBeKept:
            let before = sends
            common.clear()
            subscriber.inOneWrite {
                catchUp(subscription)
            } showing: {
                if $0.count <= CommonFrames.mostBytes { common.frames.append($0) }
            }
            common.keep(sends - before, for: subscription, newest: newestSequence)
        case .other:
            subscriber.inOneWrite { catchUp(subscription) }
        }
    }

    /// A subscriber cannot be written to: what it is to get is kept until it can.
    func leaveBehind(_ subscription: StreamSubscription) {
        leftBehind = true
        shard.counts.count(.subscribersBehind)
        subscription.subscriber.fellBehind(subscription)
        guard shard.events.wants(.deliveries), let label else { return }
        shard.events.tell(
            .behind(label, connection: subscription.subscriber.connectionNumber, at: subscription.sent))
    }

    /// A subscriber was written to: what was kept for it may go.
    func didCatchUp() {
        if leftBehind, hub.asksForFirst, written == nil { mark() }
    }

    // MARK: Who observes

    func add(_ subscription: StreamSubscription) {
        if let end { return subscription.subscriber.endStream(subscription, reason: end.reason, error: end.error) }
        subscriptions.append(subscription)
        subscription.place = subscriptions.count - 1
        count(subscription, 1)
        // What was sent last may hold no longer.
        if subscription.sent == 0, hub.asksForFirst, recent.newest != nil { return ask(for: subscription) }
        catchUp(subscription)
    }

    /// Asks a source that may have nothing to show for what one subscriber is to get.
    func ask(for subscription: StreamSubscription) {
        subscription.begin(behind: newestSequence)
        newcomers[ObjectIdentifier(subscription)] = (subscription, subscription.sent)
        requestWhole()
    }

    /// The same for one that could not be written to when the answer came.
    func askAgain(for subscription: StreamSubscription) {
        guard !newcomers.isEmpty, subscription.subscriber.isWritable,
            newcomers[ObjectIdentifier(subscription)] != nil
        else { return }
        requestWhole()
    }

    private func serveNewcomers(_ update: StateUpdate) {
        let served = newcomers
        newcomers = [:]
        for (subscription, sent) in served.values {
            // Those who have got something newer need nothing more.
            guard subscription.sent == sent, sent <= update.sequence else { continue }
            guard subscription.subscriber.isWritable else {
                subscription.subscriber.fellBehind(subscription)
                newcomers[ObjectIdentifier(subscription)] = (subscription, sent)
                continue
            }
            guard let suffix = update.current else { continue }
            subscription.didSend(update.sequence)
            count(update.sequence, isPatch: false, suffix.count, to: subscription)
            subscription.subscriber.sendStreamData(subscription, suffix: suffix)
        }
    }

    /// Asks the source for the whole value of the newest version: at home that is here then, unless it may not be shown yet.
    package func requestWhole() {
        guard !awaitsWhole, end == nil else { return }
        awaitsWhole = true
        hub.enter { self.hub.whole(for: self) }
    }

    /// Forgets a subscriber; the last one in the list takes its place.
    ///
    /// - Parameter isLost: whether its connection has broken, and it may come back.
    package func remove(_ subscription: StreamSubscription, isLost: Bool = false) {
        if isLost { wasLost = true }
        let place = subscription.place
        guard place >= 0, place < subscriptions.count, subscriptions[place] === subscription else { return }
        let last = subscriptions.removeLast()
        if last !== subscription {
            subscriptions[place] = last
            last.place = place
        }
        subscription.place = -1
        if !newcomers.isEmpty { newcomers[ObjectIdentifier(subscription)] = nil }
        count(subscription, -1)
        if subscriptions.isEmpty { shard.release(self) } else { didCatchUp() }
    }

    private func count(_ subscription: StreamSubscription, _ change: Int) {
        let before = isLookedAtAlone
        if subscription.subscriber.isLooking { lookers += change } else { users += change }
        if !subscription.subscriber.isLocal { hub.countSubscriber(change) }
        if isLookedAtAlone != before { hub.countLookedAtAlone(before ? -1 : 1) }
    }

    /// Whether it has subscribers, and none for whom the actor is to stay.
    private var isLookedAtAlone: Bool { lookers > 0 && users == 0 }

    private func finish(_ reason: StreamEndReason, _ error: TrebuchetError?) {
        // What is to be written to them at the end of the turn they would never get.
        if isMarked { sendRest() }
        end = (reason, error)
        let ended = subscriptions
        subscriptions = []
        newcomers = [:]
        for subscription in ended {
            subscription.place = -1
            count(subscription, -1)
            subscription.subscriber.endStream(subscription, reason: reason, error: error)
        }
        shard.release(self)
    }
}
