internal import Bytes
internal import TrebuchetWire

extension StateNode {
    /// Brings one subscriber up to date, if it can be written to.
    package func catchUp(_ subscription: StreamSubscription) {
        if let ordering = source.ordering { return catchUp(subscription, on: ordering) }
        guard let latest, latest.sequence > subscription.sent else { return askAgain(for: subscription) }
        guard subscription.subscriber.isWritable else { return leaveBehind(subscription) }
        if subscription.sent > 0 {
            if let patches = history.patches(since: subscription.sent) {
                send(patches, to: subscription)
            } else if fresh.updates.count > 1 {
                for update in fresh.updates { send(update, to: subscription) }
            }
        }
        if subscription.sent < latest.sequence { sendWhole(latest, to: subscription) }
        didCatchUp()
    }

    /// The same where nothing may be left out.
    private func catchUp(_ subscription: StreamSubscription, on ordering: StreamOrdering) {
        guard let backlog, ordering.isEvents || latest != nil else { return }
        if subscription.sent == 0, !ordering.isEvents, let latest {
            guard subscription.subscriber.isWritable else { return subscription.subscriber.fellBehind() }
            return sendWhole(latest, to: subscription)
        }
        guard let missed = backlog.updates(after: subscription.sent) else {
            let text =
                "more than \(backlog.count) updates were missed: the connection is too slow, or was away too long"
            return subscription.subscriber.endStream(
                subscription, reason: .error, error: TrebuchetError(.overflow, text))
        }
        for update in missed {
            guard subscription.subscriber.isWritable else { return subscription.subscriber.fellBehind() }
            send(update, to: subscription)
        }
        askAgain(for: subscription)
    }

    /// Sends the newest version whole; one that was not encoded so far comes from the source, at home at once.
    private func sendWhole(_ update: StateUpdate, to subscription: StreamSubscription) {
        // A difference that is longer than the value is not kept, and fits those who were one behind all the same.
        if suffix(of: update, for: subscription) != nil { return send(update, to: subscription) }
        if let whole, whole.sequence > subscription.sent, let rest = history.patches(since: whole.sequence) {
            send(whole, to: subscription)
            return send(rest, to: subscription)
        }
        if source.asksForFirst { return ask(for: subscription) }
        guard !awaitsWhole, end == nil else { return }
        guard shard.isHome(of: source) else { return requestWhole() }
        switch source.whole() {
        case .joined(let backlog): receive(.joined(backlog))
        case .whole(let update):
            latest = update
            if isMarked { whole = update }
            send(update, to: subscription)
        case let event: receive(event)
        }
    }

    private func send(_ patches: ArraySlice<StateUpdate.Patch>, to subscription: StreamSubscription) {
        for patch in patches {
            subscription.sent = patch.sequence
            messageCount &+= 1
            subscription.subscriber.sendStreamData(subscription, suffix: patch.suffix)
        }
    }

    private func send(_ update: StateUpdate, to subscription: StreamSubscription) {
        guard update.sequence > subscription.sent, let suffix = suffix(of: update, for: subscription) else { return }
        subscription.sent = update.sequence
        messageCount &+= 1
        subscription.subscriber.sendStreamData(subscription, suffix: suffix)
    }

    private func suffix(of update: StateUpdate, for subscription: StreamSubscription) -> SharedBytes? {
        if let patch = update.patch, patch.base == subscription.sent { return patch.suffix }
        return update.current
    }
}
