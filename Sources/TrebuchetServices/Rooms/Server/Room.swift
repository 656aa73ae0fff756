internal import Networking
internal import Trebuchet

/// `rooms/<type>-<id>`: who is there, what they show each other, and what they tell each other.
///
/// A session belongs to the connection that joined; the server makes its id, and no argument ever names one. A connection
/// that goes leaves its session behind for the grace: who then joins with the session's token has it again, and the others
/// notice nothing.
@Trebuchet
distributed actor Room {
    /// What the members show each other.
    @StreamedState var roster: Roster = Roster()
    /// What was published last.
    @StreamedState var events: EventWindow = EventWindow(maximumEvents: 32, maximumBytes: 32 << 10)

    private let name: String
    private let host: RoomHost
    private var membership: RoomMembership<RoomGuest>
    private var history: EventWindow
    private var closeHandlers: [String: CallerConnection.CloseHandler] = [:]
    private var timer: Task<Void, Never>?
    private var isClosed = false

    init(name: String, host: RoomHost, actorSystem: TrebuchetActorSystem) {
        self.name = name
        self.host = host
        let limits = host.limits
        membership = RoomMembership(limit: limits.membersPerRoom, grace: limits.grace.nanoseconds)
        history = EventWindow(maximumEvents: limits.historyEvents, maximumBytes: limits.historyBytes)
        self.actorSystem = actorSystem
    }

    deinit { timer?.cancel() }

    // MARK: Members

    /// Gives the calling connection its session in the room.
    ///
    /// - Parameters:
    ///   - presence: what the others see of it; nil for nothing.
    ///   - token: of the session that it had over another connection, which loses it at once.
    ///   - attempt: a secret of the caller's making, at least 16 bytes, the same each time it tries: a join whose answer was
    ///     lost made a session of which it has no token. Nil for none.
    distributed func join(
        presence: JSONValue?, token: String?, attempt: String?
    ) throws(RoomError) -> RoomTicket {
        guard (16...RoomLimits.longestName).contains(attempt?.utf8.count ?? 16) else { throw .invalidName }
        let guest = try host.guest()
        defer { closeIfEmpty() }
        guard !isClosed else { throw .roomClosed }
        try guest.take(.join)
        try check(presence)
        let isHere = (try? membership.session(of: guest)) != nil
        if !isHere { try guest.enter() }
        let joined: RoomMembership<RoomGuest>.Joined
        do {
            joined = try membership.join(
                guest, principal: guest.connection.principal?.id, token: token, attempt: attempt,
                makeIdentity: Self.makeIdentity)
        } catch {
            if !isHere { guest.leave() }
            throw error
        }
        let session = joined.identity.session
        joined.replaced?.leave()
        if !isHere {
            closeHandlers[session]?.cancel()
            closeHandlers[session] = guest.connection.onClose { [weak self, weak guest] in
                Task {
                    guard let guest else { return }
                    await self?.whenLocal { $0.lost(guest) }
                }
            }
        }
        show(presence, of: session)
        return RoomTicket(session: session, token: joined.identity.token, events: events.position)
    }

    /// Ends a session at once: the caller's, or the one of the token.
    distributed func leave(token: String?) throws(RoomError) {
        let guest = try host.guest()
        defer { closeIfEmpty() }
        if let token {
            end(try membership.session(provedBy: token))
        } else {
            end(try membership.session(of: guest))
        }
    }

    /// Replaces what the others see of the caller; nil for nothing.
    distributed func setPresence(_ presence: JSONValue?) throws(RoomError) {
        let session = try self.session(for: .presence)
        try check(presence)
        show(presence, of: session)
    }

    /// Changes parts of what the others see of the caller: a merge patch (RFC 7396).
    distributed func patchPresence(_ patch: JSONValue) throws(RoomError) {
        let session = try self.session(for: .presence)
        let presence = (roster[session] ?? .object([:])).merging(patch)
        try check(presence)
        show(presence, of: session)
    }

    // MARK: Topics

    /// Hands an event to the other members and to those that observe the room; returns its number.
    @discardableResult
    distributed func publish(topic: String, payload: JSONValue) throws(RoomError) -> Int {
        let session = try self.session(for: .publish)
        guard !topic.isEmpty, topic.utf8.count <= RoomLimits.longestName else { throw .invalidName }
        let bytes = payload.byteCount
        guard bytes <= host.limits.payloadBytes else {
            throw .payloadTooLarge(bytes: bytes, limit: host.limits.payloadBytes)
        }
        let number = events.append(topic: topic, peer: session, payload: payload, bytes: bytes)
        history.append(topic: topic, peer: session, payload: payload, bytes: bytes)
        return number
    }

    /// The last events that the room remembers, the oldest first. Counts as a publish of the connection.
    ///
    /// - Parameters:
    ///   - topic: nil for all topics.
    ///   - after: the number of the last event that is known; nil for none.
    distributed func history(topic: String?, after: Int?, limit: Int?) throws(RoomError) -> [RoomEvent] {
        // It answers with a lot: as often as one may publish.
        _ = try self.session(for: .publish)
        let found = history.events.filter { $0.number > after ?? 0 && (topic == nil || $0.topic == topic) }
        return Array(found.suffix(max(0, limit ?? .max)))
    }

    // MARK: Inside

    private func session(for action: RoomGuest.Action) throws(RoomError) -> String {
        let guest = try host.guest()
        defer { closeIfEmpty() }
        try guest.take(action)
        return try membership.session(of: guest)
    }

    private func check(_ presence: JSONValue?) throws(RoomError) {
        guard let bytes = presence?.byteCount, bytes > host.limits.presenceBytes else { return }
        throw .presenceTooLarge(bytes: bytes, limit: host.limits.presenceBytes)
    }

    /// A session that comes back with what it showed before changes nothing.
    private func show(_ presence: JSONValue?, of session: String) {
        if roster[session] != presence { roster.set(presence, of: session) }
    }

    private func end(_ session: String) {
        membership.end(session)?.leave()
        closeHandlers.removeValue(forKey: session)?.cancel()
        show(nil, of: session)
    }

    private func lost(_ guest: RoomGuest) {
        guard let session = membership.lost(guest, at: MonotonicClock.now) else { return }
        guest.leave()
        closeHandlers[session] = nil
        watchForEnds()
    }

    /// Ends sessions when their grace is over. One timer, for the first of them.
    private func watchForEnds() {
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
        for session in membership.endOverdue(at: MonotonicClock.now) { show(nil, of: session) }
        watchForEnds()
        closeIfEmpty()
    }

    /// A room without members goes; its observers' streams end with it.
    func closeIfEmpty() {
        guard membership.isEmpty, !isClosed else { return }
        isClosed = true
        host.didClose(name)
    }

    private static func makeIdentity() -> RoomMembership<RoomGuest>.Identity {
        RoomMembership.Identity(session: RoomSecret.make(), token: RoomSecret.make())
    }
}
