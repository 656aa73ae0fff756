internal import Platform
internal import Trebuchet
internal import TrebuchetActors

/// The state of a room's notes for its next owner.
struct RoomHandoffProgress {
    /// True when there are notes.
    var isBegun = false
    /// True when the note `head` is current.
    var hasHead = false
    /// The number of joins, and the position of each member in the order of joins; the roster keeps that order.
    var joins = 0
    var orders: [String: Int] = [:]
    /// Memberships whose presence has not been noted yet.
    var waiting: Set<String> = []
}

/// The handoff of a room that lives on one of several nodes: the notes for its next owner, and the restart from them.
extension Room: HandoffActor, ClusteredServiceActor {
    static var notesNamespace: String { "rooms" }

    /// Restores the room. Its members keep their memberships for the grace period, in which clients join again with their
    /// tokens; other members notice nothing.
    func restoreHandoffState(from noted: [String: [UInt8]], _ notes: HandoffState) throws {
        let kept = try RoomHandoffSnapshot(noted)
        self.notes = notes
        let limits = host.limits
        if let head = kept.head {
            let before = EventPosition(
                epoch: head.epoch, last: kept.events.last?.number ?? 0, earlier: head.earlier)
            history = EventHistory(
                maximumEvents: limits.historyEvents, maximumBytes: limits.historyBytes, after: before,
                events: kept.events)
        }
        (noting.isBegun, noting.hasHead) = (!noted.isEmpty, kept.head.map { $0.left == nil } ?? false)
        // A coordination store that has failed over or was restored may lack the last events, so numbers that clients have seen
        // may be used again. The new epoch is noted before any client sees it.
        if noting.hasHead {
            notes.setValue(RoomHandoffSnapshot.bytes(RoomHandoffSnapshot.Head(history)), as: RoomHandoffSnapshot.head)
        }
        let now = MonotonicClock.now
        let away = kept.head?.left.map { max(0, CollectionClock().now() - $0) } ?? 0
        let left = limits.reconnectTime - .milliseconds(away)
        for (stay, about) in kept.stays {
            guard left > .zero else {
                noteEnd(of: stay)
                continue
            }
            let holder = QuotaHolder(principal: about.principal, host: about.host.flatMap { CallerHost(address: $0) })
            membership.restore(
                RoomMembership.Identity(stay: stay, token: about.token), attempt: about.attempt,
                principal: about.principal, holder: holder, until: now &+ left.nanoseconds)
            holds(stay, holder)
            noting.joins = max(noting.joins, about.order)
            noting.orders[stay] = about.order
            guard let shown = kept.shown[stay] else { continue }
            showing.show(shown, of: stay, principal: about.principal)
            // One by one, to keep their order.
            showing.bring(into: &roster, at: now)
        }
        host.didChange(self, name, members: membership.count)
        scheduleExpiry()
    }

    /// Writes all presences and the time, for a planned handoff.
    func noteLeaving() {
        noteShown()
        let head = RoomHandoffSnapshot.Head(history, left: CollectionClock().now())
        notes?.setValue(RoomHandoffSnapshot.bytes(head), as: RoomHandoffSnapshot.head)
    }

    /// Notes a membership after a join, perhaps a repeated one.
    func recordMembership(_ stay: String, of guest: RoomConnectionState) {
        guard let notes, let secrets = membership.secrets(of: stay) else { return }
        if !noting.hasHead {
            notes.setValue(RoomHandoffSnapshot.bytes(RoomHandoffSnapshot.Head(history)), as: RoomHandoffSnapshot.head)
            (noting.isBegun, noting.hasHead) = (true, true)
        }
        if noting.orders[stay] == nil {
            noting.joins += 1
            noting.orders[stay] = noting.joins
        }
        let about = RoomHandoffSnapshot.MemberRecord(
            token: secrets.token, attempt: secrets.attempt, principal: membership.principal(of: stay),
            host: guest.connection.remoteAddress?.host, order: noting.orders[stay] ?? 0)
        notes.setValue(RoomHandoffSnapshot.bytes(about), as: RoomHandoffSnapshot.stay(stay))
        noteShown()
    }

    func noteEnd(of stay: String) {
        guard let notes else { return }
        noting.waiting.remove(stay)
        noting.orders[stay] = nil
        notes.setValue(nil, as: RoomHandoffSnapshot.stay(stay))
        notes.setValue(nil, as: RoomHandoffSnapshot.shown(stay))
    }

    /// Notes a presence later, together with others. The client sends its presence again when it joins at the next owner, so an
    /// unwritten note loses nothing.
    func noteLater(_ stay: String) {
        guard noting.waiting.insert(stay).inserted, noting.waiting.count == 1 else { return }
        Task { [weak self] in
            try? await Task.sleep(for: RoomLimits.notingInterval)
            await self?.whenLocal { $0.noteShown() }
        }
    }

    func noteShown() {
        guard let notes, !isClosed else { return }
        for stay in noting.waiting {
            notes.setValue(showing.wanted(stay, in: roster)?.json, as: RoomHandoffSnapshot.shown(stay))
        }
        noting.waiting = []
    }

    /// Deletes the notes of a room that has ended: the next one of its name starts empty.
    func noteNothing() {
        guard let notes, noting.isBegun else { return }
        notes.setValue(nil, as: RoomHandoffSnapshot.head)
        for event in history.events { notes.setValue(nil, as: RoomHandoffSnapshot.event(event.number)) }
        notes.close()
    }

    /// Another node has taken ownership of the room. Further calls have no effect.
    func didMove() {
        guard !hasMoved else { return }
        (hasMoved, isClosed) = (true, true)
        notes = nil
        timer?.cancel()
        for handler in closeHandlers.values { handler.cancel() }
        closeHandlers = [:]
        for stay in holders.keys { holds(stay, nil) }
        for guest in membership.all.compactMap(\.guest) {
            guest.leave()
            guest.follows(noMore: self)
        }
        host.didChange(self, name, members: 0)
        host.giveBack(self, name)
    }
}
