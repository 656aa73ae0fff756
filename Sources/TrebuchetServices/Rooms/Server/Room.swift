internal import Platform
internal import Trebuchet
internal import TrebuchetActors

/// `rooms/<type>-<id>`: who is there, what they show each other, and what they tell each other.
///
/// A stay belongs to the connection that joined; the server makes its id, and no argument ever names one. A connection
/// that goes leaves its stay behind for the grace: who then joins with the stay's token has it again, and the others
/// notice nothing. Only connections with a stay observe the room.
@Trebuchet
distributed actor Room {
    /// What the members show each other.
    @StreamedState var roster: Roster = Roster()
    /// What they tell each other.
    @StreamedEvents var events: RoomEvent

    /// `chat-lobby`.
    let name: String
    let host: RoomHost
    /// Those with a stay.
    private var observers: Set<CallerConnection> = []
    var membership: RoomMembership<RoomGuest>
    /// By stay: whose share of all rooms it uses.
    var holders: [String: Holder] = [:]
    var history: EventHistory
    var showing: PresenceBatch
    var closeHandlers: [String: CallerConnection.CloseHandler] = [:]
    var timer: Task<Void, Never>?
    var isClosed = false
    /// Whether it is to go as soon as nobody is in it.
    private var isLeaving = false
    /// For its next owner; nil where no other node ever owns it.
    var notes: ActorNotes?
    var noting = RoomNoting()

    init(name: String, host: RoomHost, actorSystem: TrebuchetActorSystem) {
        self.name = name
        self.host = host
        let limits = host.limits
        membership = RoomMembership(
            limit: limits.membersPerRoom, grace: limits.grace.nanoseconds, perPrincipal: limits.membersPerPrincipal,
            perHost: limits.membersPerHost)
        history = EventHistory(maximumEvents: limits.historyEvents, maximumBytes: limits.historyBytes)
        showing = PresenceBatch(limit: limits.rosterBytes, interval: limits.presenceInterval.nanoseconds)
        self.actorSystem = actorSystem
    }

    deinit { timer?.cancel() }

    // MARK: Members

    /// Gives the calling connection its stay in the room.
    ///
    /// - Parameters:
    ///   - presence: what the others see of it; nil for nothing.
    ///   - token: of the stay that it had over another connection, which loses it at once.
    ///   - attempt: a secret of the caller's making, at least 16 bytes, the same each time it tries: a join whose answer was
    ///     lost made a stay of which it has no token. Nil for none.
    @Redacted
    distributed func join(
        presence: EncodedJSON?, token: String?, attempt: String?
    ) throws(RoomError) -> RoomTicket {
        guard (16...RoomLimits.longestName).contains(attempt?.utf8.count ?? 16) else { throw .invalidName }
        let guest = try host.guest()
        defer { closeIfEmpty() }
        guard !isClosed else { throw .roomClosed }
        try host.take(.joins, of: guest)
        // First: what changes from then on is heard of.
        guest.follows(self)
        defer { if (try? membership.stay(of: guest)) == nil { guest.follows(noMore: self) } }
        let principal = guest.connection.principal
        let rules = host.rules
        guard rules.mayJoin(principal, name) else { throw .forbidden }
        if let time = host.timeKeptOut(guest, of: name) { throw .kicked(retryAfterMilliseconds: time) }
        membership.limit = rules.memberLimit(of: name, host.limits.membersPerRoom)
        let shown = try presence.map { (presence) throws(RoomError) in try value(presence) }
        let isHere = (try? membership.stay(of: guest)) != nil
        if !isHere, !guest.enter() { throw .tooManyRooms(limit: guest.placeLimit) }
        let holder = Holder(principal: principal?.id, host: guest.host)
        let joined: RoomMembership<RoomGuest>.Joined
        do {
            // Before the stay: who finds no room for what it shows is not there.
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
        // The stay counts, and not the connection: it is there without one too.
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
        note(stay, of: guest)
        host.didChange(name, members: membership.count)
        return RoomTicket(stay: stay, token: joined.identity.token, events: history.position)
    }

    /// Ends a stay at once: the caller's, or the one of the token.
    @Redacted
    distributed func leave(token: String?) throws(RoomError) {
        let guest = try host.guest()
        defer { closeIfEmpty() }
        if let token {
            end(try membership.stay(provedBy: token))
        } else {
            end(try membership.stay(of: guest))
        }
    }

    /// Replaces what the others see of the caller; nil for nothing.
    distributed func setPresence(_ presence: EncodedJSON?) throws(RoomError) {
        let stay = try self.stay(at: .presenceUpdates)
        let shown = try presence.map { (presence) throws(RoomError) in try value(presence) }
        try showing.check(shown, of: stay)
        show(shown, of: stay)
    }

    /// Changes parts of what the others see of the caller: a merge patch (RFC 7396).
    distributed func patchPresence(_ patch: EncodedJSON) throws(RoomError) {
        let stay = try self.stay(at: .presenceUpdates)
        let presence = (showing.wanted(stay, in: roster) ?? .object([:])).merging(try value(patch))
        try check(presence.byteCount)
        try showing.check(presence, of: stay)
        show(presence, of: stay)
    }

    // MARK: Topics

    /// Hands an event to the other members; returns its number.
    @discardableResult
    distributed func publish(topic: String, payload: EncodedJSON) throws(RoomError) -> Int {
        let stay = try self.stay(at: .publishes)
        guard !topic.isEmpty, topic.utf8.count <= RoomLimits.longestName else { throw .invalidName }
        let bytes = payload.byteCount
        let limit = mostNoted(host.limits.payloadBytes)
        guard bytes <= limit else { throw .payloadTooLarge(bytes: bytes, limit: limit) }
        guard payload.depth <= RoomLimits.deepest else { throw .tooDeep(limit: RoomLimits.deepest) }
        let principal = try host.guest().connection.principal
        guard host.rules.mayPublish(principal, topic, in: name) else { throw .forbidden }
        let first = history.events.first?.number
        let event = history.append(topic: topic, peer: stay, payload: payload)
        guard let notes else {
            $events.send(event)
            return event.number
        }
        notes.note(KeptRoom.bytes(event), as: KeptRoom.event(event.number))
        for number in (first ?? event.number)..<(history.events.first?.number ?? event.number) {
            notes.note(nil, as: KeptRoom.event(number))
        }
        // Else the next owner might give its number to another one.
        notes.show { [weak self] in self?.assumeIsolated { $0.$events.send(event) } }
        return event.number
    }

    /// The last events that the room remembers, the oldest first. Counts as a publish of the connection.
    ///
    /// - Parameters:
    ///   - topic: nil for all topics.
    ///   - after: the number of the last event that is known; nil for none.
    distributed func history(topic: String?, after: Int?, limit: Int?) throws(RoomError) -> [RoomEvent] {
        // It answers with a lot: as often as one may publish.
        _ = try self.stay(at: .publishes)
        let found = history.events.filter {
            $0.number > after ?? 0 && (topic == nil || $0.topic.isSameBytes(as: topic ?? ""))
        }
        return Array(found.suffix(max(0, limit ?? .max)))
    }

    // MARK: Administration

    /// Who is there, by the bytes of their stays.
    func members() -> [RoomMemberSummary] {
        membership.all.map { member in
            RoomMemberSummary(
                stay: member.stay, principal: member.principal,
                host: member.guest?.connection.remoteAddress?.host,
                isConnected: member.guest != nil, presence: showing.wanted(member.stay, in: roster))
        }.sorted { $0.stay.precedesInBytes($1.stay) }
    }

    /// Ends a stay, and keeps its client out for a time; false when there is no such stay.
    func kick(_ stay: String, for time: Duration) -> Bool {
        guard let member = membership.all.first(where: { $0.stay.isSameBytes(as: stay) }) else { return false }
        host.keepOut(member.principal, member.guest?.connection, of: name, for: time)
        end(member.stay)
        closeIfEmpty()
        return true
    }

    // MARK: Inside

    /// Its owner gives it away in order: all that it shows is noted.
    func deactivate() async {
        if !membership.isEmpty { noteLeaving() }
    }

    private func stay(at rate: RoomRate) throws(RoomError) -> String {
        let guest = try host.guest()
        defer { closeIfEmpty() }
        try host.take(rate, of: guest)
        return try membership.stay(of: guest)
    }

    /// Its size first: larger ones are not looked into.
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
        let limit = mostNoted(host.limits.presenceBytes)
        guard bytes > limit else { return }
        throw .presenceTooLarge(bytes: bytes, limit: limit)
    }

    /// What is noted is one entry at the engine, whatever the limits are.
    private func mostNoted(_ limit: Int) -> Int { notes == nil ? limit : min(limit, RoomLimits.mostNoted) }

    /// At once, or together with what others change within the interval.
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

    /// Shows what waits for the interval to be over.
    func showAll() {
        let now = MonotonicClock.now
        // To touch the state is to send it.
        guard showing.isToTell(roster, at: now) else { return }
        showing.bring(into: &roster, at: now)
    }

    /// Whose share of all rooms a stay uses; nil when it has ended.
    func holds(_ stay: String, _ holder: Holder?) {
        host.count(from: holders[stay], to: holder)
        holders[stay] = holder
    }

    private func end(_ stay: String) {
        holds(stay, nil)
        if let guest = membership.end(stay) { leave(guest) }
        closeHandlers.removeValue(forKey: stay)?.cancel()
        show(nil, of: stay)
        noteEnd(of: stay)
        host.didChange(name, members: membership.count)
    }

    /// Who may not join any more, as a role was taken from him or somebody else is signed in, is out.
    func rightsChanged(of guest: RoomGuest) {
        guard let stay = try? membership.stay(of: guest),
            !host.rules.mayJoin(guest.connection.principal, name)
        else { return }
        end(stay)
        closeIfEmpty()
    }

    private func leave(_ guest: RoomGuest) {
        guest.leave()
        guest.follows(noMore: self)
        guard observers.remove(guest.connection) != nil else { return }
        guest.connection.endStreams(
            ofActor: "\(RoomHost.name)/\(name)",
            TrebuchetError(.unauthorized, "the connection is not in the room any more"))
    }

    private func lost(_ guest: RoomGuest) {
        guard let stay = membership.lost(guest, at: MonotonicClock.now) else { return }
        leave(guest)
        closeHandlers[stay] = nil
        watchForEnds()
    }

    /// Ends stays when their grace is over. One timer, for the first of them.
    func watchForEnds() {
        guard timer == nil, let end = membership.nextEnd else { return }
        let now = MonotonicClock.now
        let wait = Duration.nanoseconds(end > now ? end - now : 0)
        timer = Task { [weak self] in
            try? await Task.sleep(for: wait)
            guard !Task.isCancelled else { return }
            await self?.whenLocal { $0.endOverdue() }
        }
    }

    private func endOverdue() {
        timer = nil
        for stay in membership.endOverdue(at: MonotonicClock.now) {
            holds(stay, nil)
            show(nil, of: stay)
            noteEnd(of: stay)
        }
        host.didChange(name, members: membership.count)
        watchForEnds()
        closeIfEmpty()
    }

    /// A room without members goes; its observers' streams end with it.
    func closeIfEmpty() {
        guard isUnused, !isLeaving else { return }
        isLeaving = true
        Task { await host.letGo(self, name) }
    }

    var isUnused: Bool { membership.isEmpty }

    /// Whether it has gone, or stays for somebody who has come.
    func didDecide(_ goes: Bool) {
        (isLeaving, isClosed) = (false, goes)
        if goes { noteNothing() }
    }

    private static func makeIdentity() -> RoomMembership<RoomGuest>.Identity {
        RoomMembership.Identity(stay: Secret.make(), token: Secret.make())
    }
}

extension Room: ServicePart {
    static var _looksAtObservers: Bool { true }

    func _refusal(ofStream stream: String, to connection: CallerConnection?) -> (any Error)? {
        guard let connection, observers.contains(connection) else {
            // Made for who only looks, it goes as with any other call.
            closeIfEmpty()
            return RoomError.notJoined
        }
        return nil
    }
}
