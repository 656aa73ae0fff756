package import Bytes
internal import TrebuchetWire

extension Broadcaster {
    /// Brings one subscriber up to date, if it is writable.
    package func catchUp(_ subscription: StreamSubscription) {
        if producer.buffer != nil { return catchUpWithEach(subscription) }
        guard let latest = recent.newest, latest.sequence > subscription.sent else {
            return repeatRequest(for: subscription)
        }
        guard subscription.subscriber.isWritable else { return markBlocked(subscription) }
        if subscription.sent > 0 {
            if let missed = recent.updates(since: subscription.sent) {
                for update in missed { send(update, to: subscription) }
            } else if fresh.updates.count > 1 {
                for update in fresh.updates { send(update, to: subscription) }
            }
        }
        if subscription.sent < latest.sequence { sendSnapshot(latest, to: subscription) }
        didCatchUp()
    }

    /// Brings one subscriber up to date in a stream without conflation.
    private func catchUpWithEach(_ subscription: StreamSubscription) {
        let isEvents = producer.kind == .events
        guard recent.retainsEachVersion, isEvents || recent.newest != nil else { return }
        // Events start with the next one; a state starts with its value.
        if subscription.sent == 0, !isEvents, let latest = recent.newest {
            guard subscription.subscriber.isWritable else { return subscription.subscriber.didBlock(subscription) }
            return sendSnapshot(latest, to: subscription)
        }
        guard let missed = recent.updates(since: subscription.sent) else {
            let text =
                "more than \(recent.count) updates were missed: the connection is too slow or was interrupted too long"
            return subscription.subscriber.endStream(
                subscription, reason: .error, error: TrebuchetError(.overflow, text))
        }
        for update in missed {
            guard subscription.subscriber.isWritable else { return subscription.subscriber.didBlock(subscription) }
            send(update, to: subscription)
        }
        repeatRequest(for: subscription)
    }

    /// Counts the versions that a subscriber skips because it receives a later one whole.
    private func skipTo(_ update: StateUpdate, for subscription: StreamSubscription) {
        let behind = subscription.sent
        guard behind > 0, update.sequence > behind + 1, update.patch?.base != behind else { return }
        shard.counts.count(.versionsSkipped, update.sequence - behind - 1)
        sends.skipped &+= update.sequence - behind - 1
        guard shard.events.isEnabled(for: .deliveries), let label else { return }
        shard.events.emit(
            .versionsConflated(
                label, connection: subscription.subscriber.connectionNumber, from: behind, to: update.sequence))
    }

    /// Sends the newest version whole. If it is not encoded yet, it comes from the source; on the home reactor this happens
    /// immediately.
    private func sendSnapshot(_ update: StateUpdate, to subscription: StreamSubscription) {
        // The log drops a delta that is longer than the value, but the delta still fits subscribers that are one version behind.
        if suffix(of: update, for: subscription) != nil { return send(update, to: subscription) }
        if let requestedSnapshot, requestedSnapshot.sequence > subscription.sent,
            let rest = recent.updates(since: requestedSnapshot.sequence)
        {
            send(requestedSnapshot, to: subscription)
            for update in rest { send(update, to: subscription) }
            return
        }
        if producer.requestsCurrentValue { return requestFirstValue(for: subscription) }
        guard !awaitsSnapshot, end == nil else { return }
        guard shard.isHome(of: producer), producer.sendsImmediately else { return requestSnapshot() }
        producer.sendSnapshot(to: self)
        if end == nil, let newest = recent.newest { send(newest, to: subscription) }
    }

    /// Returns whether a subscriber needs the whole value of a version that came without it, and the value has to be requested
    /// from the source.
    func needsSnapshot(_ newest: StateUpdate) -> Bool {
        let isImmediate = shard.isHome(of: producer) && producer.sendsImmediately
        guard newest.current == nil, !producer.requestsCurrentValue, !isImmediate else { return false }
        return subscriptions.contains { subscription in
            let sent = subscription.sent
            guard sent < newest.sequence, suffix(of: newest, for: subscription) == nil else { return false }
            return sent == 0 || producer.buffer == nil && recent.updates(since: sent) == nil
        }
    }

    /// Sends the updates that are here and not sent yet, for the last time: the source is no longer queried.
    func sendRemaining() {
        // A write may close the subscriber's connection and so remove the subscription.
        for subscription in subscriptions where subscription.index >= 0 && subscription.subscriber.isWritable {
            guard let newest = recent.newest, newest.sequence > subscription.sent else { continue }
            let missed = recent.updates(since: subscription.sent)
            // A stream without conflation never skips: the subscriber stops before the versions that are not retained.
            if missed == nil, producer.buffer != nil { continue }
            subscription.subscriber.inOneWrite {
                for update in missed ?? [] { send(update, to: subscription) }
                send(newest, to: subscription)
            }
        }
    }

    private func send(_ update: StateUpdate, to subscription: StreamSubscription) {
        guard update.sequence > subscription.sent, let suffix = suffix(of: update, for: subscription) else { return }
        if producer.kind != .events { skipTo(update, for: subscription) }
        let isPatch = update.patch.map { $0.suffix === suffix } ?? false
        subscription.didSend(update.sequence)
        sends.recordSend(isPatch: isPatch, isEvent: producer.kind == .events, suffix.count)
        count(update.sequence, isPatch: isPatch, suffix.count, to: subscription)
        subscription.subscriber.sendStreamData(subscription, suffix: suffix)
    }

    /// Counts an update and reports it to the event handlers.
    @inline(__always)
    func count(_ number: UInt64, isPatch: Bool, _ bytes: Int, to subscription: StreamSubscription) {
        let isEvent = producer.kind == .events
        if subscription.countsDeliveries {
            shard.counts.count(isEvent ? .eventsDelivered : isPatch ? .patchesDelivered : .wholesDelivered)
        }
        if shard.events.isEnabled(for: .deliveries) {
            reportDelivery(number, isEvent ? .event : isPatch ? .patch : .snapshot, bytes, to: subscription)
        }
    }

    @inline(never)
    private func reportDelivery(
        _ number: UInt64, _ form: ServerEvent.Delivery.Form, _ bytes: Int, to subscription: StreamSubscription
    ) {
        guard let label else { return }
        shard.events.emit(
            .updateDelivered(
                ServerEvent.Delivery(
                    stream: label, connection: subscription.subscriber.connectionNumber, number: number, form: form,
                    bytes: bytes)))
    }

    /// Returns the whole value of the version that a subscriber was last sent, if that is the newest one and its value is here.
    package func snapshotBytes(for subscription: StreamSubscription) -> SharedBytes? {
        guard let newest = recent.newest, newest.sequence == subscription.sent else { return nil }
        return newest.current
    }

    private func suffix(of update: StateUpdate, for subscription: StreamSubscription) -> SharedBytes? {
        if let patch = update.patch, patch.base == subscription.sent { return patch.suffix }
        return update.current
    }
}
