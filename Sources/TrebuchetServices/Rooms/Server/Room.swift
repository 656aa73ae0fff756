internal import Platform
internal import Trebuchet
internal import TrebuchetActors

/// A room `rooms/<type>-<id>`: its members, their presences and their events.
///
/// A membership belongs to the connection that joined. The server creates its identifier, and no method takes one as an
/// argument. When a connection closes, its membership stays for the grace period. A client that joins with the token in that
/// time resumes it, and the other members notice nothing. Only connections with a membership may observe the room.
@Trebuchet
distributed actor Room {
    /// The presences of the members.
    @StreamedState var roster: Roster = Roster()
    /// The events that members publish.
    @StreamedEvents var events: RoomEvent

    /// The name of the room, as `chat-lobby`.
    let name: String
    let host: RoomHost
    /// The connections with a membership.
    private var observers: Set<CallerConnection> = []
    var membership: RoomMembership<RoomConnectionState>
    /// The holder whose room quota each membership uses.
    var holders: [String: QuotaHolder] = [:]
    var history: EventHistory
    var showing: PresenceBatch
    var closeHandlers: [String: CallerConnection.CloseHandler] = [:]
    var timer: Task<Void, Never>?
    var isClosed = false
    /// True once another node owns the room.
    var hasMoved = false
    /// True while the deactivation of the empty room is in progress.
    private var isDeactivating = false
    /// The notes for the next owner; nil where no other node can own the room.
    var notes: HandoffState?
    var noting = RoomHandoffProgress()

    init(name: String, host: RoomHost, actorSystem: TrebuchetActorSystem) {
        self.name = name
        self.host = host
        let limits = host.limits
        membership = RoomMembership(
            limit: limits.membersPerRoom, grace: limits.reconnectTime.nanoseconds,
            perPrincipal: limits.membersPerPrincipal,
            perHost: limits.membersPerHost)
        history = EventHistory(maximumEvents: limits.historyEvents, maximumBytes: limits.historyBytes)
        showing = PresenceBatch(limit: limits.rosterBytes, interval: limits.presenceInterval.nanoseconds)
        self.actorSystem = actorSystem
    }

    deinit {
        timer?.cancel()
        host.giveBackIfGone(name)
    }

    // MARK: Members

    /// Makes the calling connection a member of the room, or resumes its membership.
    ///
    /// - Parameters:
    ///   - presence: the presence that other members see; nil for none.
    ///   - token: the token of a membership over another connection, which loses it at once.
    ///   - attempt: a secret of the client, at least 16 bytes, the same for each attempt. It finds the membership of a join
    ///     whose response, with the token, was lost. Nil for none.
    @Redacted
    distributed func join(
        presence: EncodedJSON?, token: String?, attempt: String?
    ) throws(RoomError) -> RoomTicket {
        guard (16...RoomLimits.maximumNameLength).contains(attempt?.utf8.count ?? 16) else { throw .invalidName }
        let guest = try host.guest()
        defer { closeIfEmpty() }
        guard !isClosed else { throw .roomClosed }
        try host.consumeRate(.joins, of: guest)
        // First, so that no later change of authorization is missed.
        guest.follows(self)
        defer { if (try? membership.stay(of: guest)) == nil { guest.follows(noMore: self) } }
        let principal = guest.connection.principal
        let rules = host.rules
        guard rules.canJoin(principal, name) else { throw .forbidden }
        if let time = host.timeKeptOut(guest, of: name) { throw .kicked(retryAfterMilliseconds: time) }
        membership.limit = rules.memberLimit(of: name, host.limits.membersPerRoom)
        let shown = try presence.map { (presence) throws(RoomError) in try value(presence) }
        let isHere = (try? membership.stay(of: guest)) != nil
        if !isHere, !guest.enter() { throw .tooManyRooms(limit: guest.placeLimit) }
        let holder = QuotaHolder(principal: principal?.id, host: guest.host)
        let joined: RoomMembership<RoomConnectionState>.Joined
        do {
            // Before the membership is created: a client whose presence does not fit must not become a member.
            let known = token.flatMap { try? membership.stay(provedBy: $0) } ?? (try? membership.stay(of: guest))
            try showing.check(shown, of: known)
            if known == nil { try host.checkShare(of: holder) }
            joined = try membership.join(
                guest, principal: principal?.id,
                holder: holder, token: token,
                attempt: attempt, makeIdentity: Self.makeIdentity)
        } catch {
            if !isHere { guest.leave() }
            throw error
        }
        let stay = joined.identity.stay
        // The quota counts the membership, not the connection: a membership exists without one too.
        holds(stay, holder)
        if let replaced = joined.replaced { leave(replaced) }
        observers.insert(guest.connection)
        if !isHere {
            closeHandlers[stay]?.cancel()
            closeHandlers[stay] = guest.connection.onClose { [weak self, weak guest] in
                Task {
                    guard let guest else { return }
                    await self?.whenLocal { $0.lost(guest) }
                }
            }
        }
        show(shown, of: stay)
        recordMembership(stay, of: guest)
        host.didChange(self, name, members: membership.count)
        return RoomTicket(stay: stay, token: joined.identity.token, events: history.position)
    }

    /// Ends the membership of the caller or of the token at once.
    @Redacted
    distributed func leave(token: String?) throws(RoomError) {
        let guest = try host.guest()
        defer { closeIfEmpty() }
        if let token {
            endMembership(try membership.stay(provedBy: token))
        } else {
            endMembership(try membership.stay(of: guest))
        }
    }

    /// Replaces the caller's presence; nil removes it.
    distributed func setPresence(_ presence: EncodedJSON?) throws(RoomError) {
        let stay = try self.stay(at: .presenceUpdates)
        let shown = try presence.map { (presence) throws(RoomError) in try value(presence) }
        try showing.check(shown, of: stay)
        show(shown, of: stay)
    }

    /// Changes parts of the caller's presence with a merge patch (RFC 7396).
    distributed func patchPresence(_ patch: EncodedJSON) throws(RoomError) {
        let stay = try self.stay(at: .presenceUpdates)
        let presence = (showing.wanted(stay, in: roster) ?? .object([:])).merging(try value(patch))
        try check(presence.byteCount)
        try showing.check(presence, of: stay)
        show(presence, of: stay)
    }

    // MARK: Topics

    /// Publishes an event to the other members; returns its number.
    @discardableResult
    distributed func publish(topic: String, payload: EncodedJSON) throws(RoomError) -> Int {
        let stay = try self.stay(at: .publishes)
        guard !topic.isEmpty, topic.utf8.count <= RoomLimits.maximumNameLength else { throw .invalidName }
        let bytes = payload.byteCount
        let limit = maximumRecorded(host.limits.payloadBytes)
        guard bytes <= limit else { throw .payloadTooLarge(bytes: bytes, limit: limit) }
        guard payload.depth <= RoomLimits.deepest else { throw .tooDeep(limit: RoomLimits.deepest) }
        let principal = try host.guest().connection.principal
        guard host.rules.canPublish(principal, topic, in: name) else { throw .forbidden }
        let first = history.events.first?.number
        let event = history.append(topic: topic, peer: stay, payload: payload)
        guard let notes else {
            $events.send(event)
            return event.number
        }
        notes.setValue(RoomHandoffSnapshot.bytes(event), as: RoomHandoffSnapshot.event(event.number))
        for number in (first ?? event.number)..<(history.events.first?.number ?? event.number) {
            notes.setValue(nil, as: RoomHandoffSnapshot.event(number))
        }
        // Sent after the note is stored; otherwise the next owner might give its number to another event.
        notes.show { [weak self] in self?.assumeIsolated { $0.$events.send(event) } }
        return event.number
    }

    /// Returns the last events that the room stores, oldest first. It counts as a publish of the connection.
    ///
    /// - Parameters:
    ///   - topic: nil for all topics.
    ///   - after: the number of the last event that the client knows; nil for none.
    distributed func history(topic: String?, after: Int?, limit: Int?) throws(RoomError) -> [RoomEvent] {
        // The response can be large, so the publish rate applies.
        _ = try self.stay(at: .publishes)
        let found = history.events.filter {
            $0.number > after ?? 0 && (topic == nil || $0.topic.isSameBytes(as: topic ?? ""))
        }
        return Array(found.suffix(max(0, limit ?? .max)))
    }

    // MARK: Administration

    /// Returns the members, sorted by the bytes of their identifiers.
    func members() -> [RoomMemberSummary] {
        membership.all.map { member in
            RoomMemberSummary(
                stay: member.stay, principal: member.principal,
                host: member.guest?.connection.remoteAddress?.host,
                isConnected: member.guest != nil, presence: showing.wanted(member.stay, in: roster))
        }.sorted { $0.stay.precedesInBytes($1.stay) }
    }

    /// Ends a membership and bans its client for a time; returns false when there is no such membership.
    func kick(_ stay: String, for time: Duration) -> Bool {
        guard let member = membership.all.first(where: { $0.stay.isSameBytes(as: stay) }) else { return false }
        host.keepOut(member.principal, member.guest?.connection, of: name, for: time)
        endMembership(member.stay)
        closeIfEmpty()
        return true
    }

    // MARK: Private

    /// Notes all presences before a planned handoff.
    func deactivate() async {
        if !membership.isEmpty { noteLeaving() }
    }

    private func stay(at rate: RoomRate) throws(RoomError) -> String {
        let guest = try host.guest()
        defer { closeIfEmpty() }
        try host.consumeRate(rate, of: guest)
        return try membership.stay(of: guest)
    }

    /// The size first: larger values are not decoded.
    private func value(_ encoded: EncodedJSON) throws(RoomError) -> JSONValue {
        try check(encoded.byteCount)
        guard encoded.depth <= RoomLimits.deepest else { throw .tooDeep(limit: RoomLimits.deepest) }
        do {
            return try encoded.value()
        } catch {
            throw .invalidValue("\(error)")
        }
    }

    private func check(_ bytes: Int) throws(RoomError) {
        let limit = maximumRecorded(host.limits.presenceBytes)
        guard bytes > limit else { return }
        throw .presenceTooLarge(bytes: bytes, limit: limit)
    }

    /// Each note is one entry in the coordination store, which has its own limit.
    private func maximumRecorded(_ limit: Int) -> Int {
        notes == nil ? limit : min(limit, RoomLimits.maximumRecordedEntries)
    }

    /// Sends the presence at once, or together with other changes of the interval.
    private func show(_ presence: JSONValue?, of stay: String) {
        showing.show(presence, of: stay, principal: membership.principal(of: stay))
        if notes != nil { noteLater(stay) }
        guard let wait = showing.timeToWait(at: MonotonicClock.now) else { return }
        guard wait > 0 else { return showAll() }
        Task { [weak self] in
            try? await Task.sleep(for: .nanoseconds(wait))
            await self?.whenLocal { $0.showAll() }
        }
    }

    /// Sends the changes that waited for the end of the interval.
    func showAll() {
        let now = MonotonicClock.now
        // Any access to the state publishes an update.
        guard showing.isToTell(roster, at: now) else { return }
        showing.bring(into: &roster, at: now)
    }

    /// Sets the holder whose room quota a membership uses; nil when it has ended.
    func holds(_ stay: String, _ holder: QuotaHolder?) {
        host.count(from: holders[stay], to: holder)
        holders[stay] = holder
    }

    private func endMembership(_ stay: String) {
        holds(stay, nil)
        if let guest = membership.endSession(stay) { leave(guest) }
        closeHandlers.removeValue(forKey: stay)?.cancel()
        show(nil, of: stay)
        noteEnd(of: stay)
        host.didChange(self, name, members: membership.count)
    }

    /// Removes a member that may not join any more, because it lost a role or another principal is signed in.
    func rightsChanged(of guest: RoomConnectionState) {
        guard let stay = try? membership.stay(of: guest),
            !host.rules.canJoin(guest.connection.principal, name)
        else { return }
        endMembership(stay)
        closeIfEmpty()
    }

    private func leave(_ guest: RoomConnectionState) {
        guest.leave()
        guest.follows(noMore: self)
        guard observers.remove(guest.connection) != nil else { return }
        guest.connection.endStreams(
            ofActor: "\(RoomHost.name)/\(name)",
            TrebuchetError(.unauthorized, "the connection is no longer in the room"))
    }

    private func lost(_ guest: RoomConnectionState) {
        guard let stay = membership.lost(guest, at: MonotonicClock.now) else { return }
        leave(guest)
        closeHandlers[stay] = nil
        scheduleExpiry()
    }

    /// Ends memberships whose grace period is over. There is one timer, for the first of them.
    func scheduleExpiry() {
        guard timer == nil, let end = membership.nextEnd else { return }
        let now = MonotonicClock.now
        let wait = Duration.nanoseconds(end > now ? end - now : 0)
        timer = Task { [weak self] in
            try? await Task.sleep(for: wait)
            guard !Task.isCancelled else { return }
            await self?.whenLocal { $0.endExpired() }
        }
    }

    private func endExpired() {
        timer = nil
        for stay in membership.endOverdue(at: MonotonicClock.now) {
            holds(stay, nil)
            show(nil, of: stay)
            noteEnd(of: stay)
        }
        host.didChange(self, name, members: membership.count)
        scheduleExpiry()
        closeIfEmpty()
    }

    /// Deactivates the room when it has no members; the streams of its observers end with it.
    func closeIfEmpty() {
        guard isUnused, !isDeactivating else { return }
        isDeactivating = true
        Task { await host.deactivateRoom(self, name) }
    }

    var isUnused: Bool { membership.isEmpty }

    /// Reports whether the room was deactivated or a caller has started to use it again.
    func deactivationDidFinish(_ goes: Bool) {
        (isDeactivating, isClosed) = (false, goes || hasMoved)
        if goes { noteNothing() }
    }

    private static func makeIdentity() -> RoomMembership<RoomConnectionState>.Identity {
        RoomMembership.Identity(stay: RandomToken.make(), token: RandomToken.make())
    }
}

extension Room: ServiceActor {
    static var _looksAtObservers: Bool { true }

    func _refusal(ofStream stream: String, to connection: CallerConnection?) -> (any Error)? {
        guard let connection, observers.contains(connection) else {
            // A room that was activated only to be observed is deactivated as after any other call.
            closeIfEmpty()
            return RoomError.notJoined
        }
        return nil
    }
}
