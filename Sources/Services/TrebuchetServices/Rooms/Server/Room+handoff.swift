internal import Platform
internal import Trebuchet
internal import TrebuchetActors

/// The progress of writing a room's handoff state.
struct RoomHandoffProgress {
    /// True when the handoff state has entries.
    var isBegun = false
    /// True when the entry `head` is current.
    var hasHead = false
    /// The number of joins, and the position of each member in the order of joins; the roster keeps that order.
    var joins = 0
    var orders: [String: Int] = [:]
    /// Memberships whose presence has not been written yet.
    var waiting: Set<String> = []
}

/// The handoff of a room that lives on one of several nodes: the state for its next owner, and the restart from it.
extension Room: HandoffActor, ClusteredServiceActor {
    static var handoffNamespace: String { "rooms" }

    /// Restores the room. Its members keep their memberships for the grace period, in which clients join again with their
    /// tokens; other members notice nothing.
    func restoreHandoffState(from entries: [String: [UInt8]], _ handoffState: HandoffState) throws {
        let snapshot = try RoomHandoffSnapshot(entries)
        self.handoffState = handoffState
        let limits = host.limits
        if let head = snapshot.head {
            let before = EventPosition(
                epoch: head.epoch, last: snapshot.events.last?.number ?? 0, earlier: head.earlier)
            history = EventHistory(
                maximumEvents: limits.historyEvents, maximumBytes: limits.historyBytes, after: before,
                events: snapshot.events)
        }
        (handoffProgress.isBegun, handoffProgress.hasHead) = (
            !entries.isEmpty, snapshot.head.map { $0.left == nil } ?? false
        )
        // A coordination store that has failed over or was restored may lack the last events, so numbers that clients have seen
        // may be used again. The new epoch is written before any client sees it.
        if handoffProgress.hasHead {
            handoffState.setValue(
                RoomHandoffSnapshot.bytes(RoomHandoffSnapshot.Head(history)), as: RoomHandoffSnapshot.head)
        }
        let now = MonotonicClock.now
        let absence = snapshot.head?.left.map { max(0, CollectionClock().now() - $0) } ?? 0
        let left = limits.reconnectTime - .milliseconds(absence)
        for (membershipID, record) in snapshot.memberships {
            guard left > .zero else {
                deleteRecord(of: membershipID)
                continue
            }
            let holder = QuotaHolder(principal: record.principal, host: record.host.flatMap { CallerHost(address: $0) })
            membership.restore(
                RoomMembership.Identity(membershipID: membershipID, token: record.token), attempt: record.attempt,
                principal: record.principal, holder: holder, until: now &+ left.nanoseconds)
            setQuotaHolder(of: membershipID, to: holder)
            handoffProgress.joins = max(handoffProgress.joins, record.order)
            handoffProgress.orders[membershipID] = record.order
            guard let presence = snapshot.presences[membershipID] else { continue }
            memory.addPresence(
                RoomMemory.Charge(bytes: PresenceBatch.size(presence), holder: holder, client: nil), of: membershipID)
            presenceBatch.setPresence(presence, of: membershipID, principal: record.principal, for: holder)
            // One by one, to keep their order.
            presenceBatch.applyChanges(to: &roster, at: now)
        }
        for event in history.events {
            memory.addEvent(
                RoomMemory.Charge(bytes: event.storedBytes, holder: holders[event.peer] ?? .anonymous, client: nil))
        }
        if !membership.isEmpty { didJoin() }
        host.didChange(self, name, members: membership.count)
        scheduleExpiry()
    }

    /// Writes all presences and the time, for a planned handoff.
    func recordPlannedHandoff() {
        recordPresences()
        let head = RoomHandoffSnapshot.Head(history, left: CollectionClock().now())
        handoffState?.setValue(RoomHandoffSnapshot.bytes(head), as: RoomHandoffSnapshot.head)
    }

    /// Writes a membership after a join, perhaps a repeated one.
    func recordMembership(_ membershipID: String, of client: RoomConnectionState) {
        guard let handoffState, let secrets = membership.secrets(of: membershipID) else { return }
        if !handoffProgress.hasHead {
            handoffState.setValue(
                RoomHandoffSnapshot.bytes(RoomHandoffSnapshot.Head(history)), as: RoomHandoffSnapshot.head)
            (handoffProgress.isBegun, handoffProgress.hasHead) = (true, true)
        }
        if handoffProgress.orders[membershipID] == nil {
            handoffProgress.joins += 1
            handoffProgress.orders[membershipID] = handoffProgress.joins
        }
        let record = RoomHandoffSnapshot.MemberRecord(
            token: secrets.token, attempt: secrets.attempt, principal: membership.principal(of: membershipID),
            host: client.connection.remoteAddress?.host, order: handoffProgress.orders[membershipID] ?? 0)
        handoffState.setValue(RoomHandoffSnapshot.bytes(record), as: RoomHandoffSnapshot.membershipKey(membershipID))
        recordPresences()
    }

    func deleteRecord(of membershipID: String) {
        guard let handoffState else { return }
        handoffProgress.waiting.remove(membershipID)
        handoffProgress.orders[membershipID] = nil
        handoffState.setValue(nil, as: RoomHandoffSnapshot.membershipKey(membershipID))
        handoffState.setValue(nil, as: RoomHandoffSnapshot.presenceKey(membershipID))
    }

    /// Schedules the write of a presence, together with others. The client sends its presence again when it joins at the next owner, so an
    /// unwritten presence loses nothing.
    func schedulePresenceRecord(of membershipID: String) {
        guard handoffProgress.waiting.insert(membershipID).inserted, handoffProgress.waiting.count == 1 else { return }
        Task { [weak self] in
            try? await Task.sleep(for: RoomLimits.presenceRecordInterval)
            await self?.whenLocal { $0.recordPresences() }
        }
    }

    func recordPresences() {
        guard let handoffState, !isClosed else { return }
        for membershipID in handoffProgress.waiting {
            handoffState.setValue(
                presenceBatch.newestPresence(of: membershipID, in: roster).map { $0.withText { Array($0) } },
                as: RoomHandoffSnapshot.presenceKey(membershipID))
        }
        handoffProgress.waiting = []
    }

    /// Deletes the handoff state of a room that has ended: the next one of its name starts empty.
    func deleteHandoffState() {
        guard let handoffState, handoffProgress.isBegun else { return }
        handoffState.setValue(nil, as: RoomHandoffSnapshot.head)
        for event in history.events { handoffState.setValue(nil, as: RoomHandoffSnapshot.eventKey(event.number)) }
        handoffState.close()
    }

    /// Another node has taken ownership of the room. Further calls have no effect.
    func didMove() {
        guard !hasMoved else { return }
        (hasMoved, isClosed) = (true, true)
        handoffState = nil
        timer?.cancel()
        for handler in closeHandlers.values { handler.cancel() }
        closeHandlers = [:]
        for membershipID in holders.keys { setQuotaHolder(of: membershipID, to: nil) }
        memory.releaseAll()
        for client in membership.all.compactMap(\.client) {
            client.releaseUse()
            client.unregisterActor(self)
        }
        host.didChange(self, name, members: 0)
        host.releaseName(of: self, name)
    }
}
