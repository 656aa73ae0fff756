internal import Platform
internal import Trebuchet
internal import TrebuchetActors

/// A room `rooms/<type>-<id>`: its members, their presences and their events.
///
/// A membership belongs to the connection that joined. The server creates its identifier, and no method takes one as an
/// argument. When a connection closes, its membership stays for the grace period. A client that joins with the token in that
/// time resumes it, and the other members notice nothing. Only connections with a membership may observe the room.
@Trebuchet
distributed actor Room: RoomInterface {
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
    var presenceBatch: PresenceBatch
    /// The counted bytes of presences and events.
    let memory: RoomMemory
    /// The caller whose rate includes the activation of this room; nil once a client has joined.
    private var activator: ActivationOwner?
    var closeHandlers: [String: CallerConnection.CloseHandler] = [:]
    var timer: Task<Void, Never>?
    var isClosed = false
    /// True once another node owns the room.
    var hasMoved = false
    /// True while the deactivation of the empty room is in progress.
    private var isDeactivating = false
    /// The handoff state for the next owner; nil where no other node can own the room.
    var handoffState: HandoffState?
    var handoffProgress = RoomHandoffProgress()

    init(name: String, host: RoomHost, activator: ActivationOwner? = nil, actorSystem: TrebuchetActorSystem) {
        self.name = name
        self.host = host
        self.activator = activator
        memory = RoomMemory(host.memory)
        let limits = host.limits
        membership = RoomMembership(
            limit: limits.membersPerRoom, grace: limits.reconnectTime.nanoseconds,
            perPrincipal: limits.membersPerPrincipal,
            perHost: limits.membersPerHost)
        history = EventHistory(maximumEvents: limits.historyEvents, maximumBytes: limits.historyBytes)
        presenceBatch = PresenceBatch(
            limit: limits.rosterBytesPerRoom, interval: limits.presenceInterval.nanoseconds,
            perPrincipal: limits.rosterBytesPerPrincipal, perHost: limits.rosterBytesPerHost)
        self.actorSystem = actorSystem
    }

    deinit {
        timer?.cancel()
        host.releaseUnusedName(name)
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
        let client = try host.callingClient()
        defer { closeIfEmpty() }
        guard !isClosed else { throw .roomClosed }
        try host.consumeRate(.joins, of: client)
        updatePrincipal(of: client)
        // First, so that no later change of authorization is missed.
        client.registerActor(self)
        defer { if (try? membership.membershipID(of: client)) == nil { client.unregisterActor(self) } }
        let principal = client.connection.principal
        let rules = host.rules
        guard rules.canJoin(principal, name) else { throw .forbidden }
        if let time = host.banTimeLeft(client, of: name) { throw .kicked(retryAfterMilliseconds: time) }
        membership.limit = rules.memberLimit(of: name, host.limits.membersPerRoom)
        let isHere = (try? membership.membershipID(of: client)) != nil
        // A join of a member replaces its presence, as `setPresence` does.
        if isHere, let presence {
            try host.consumeRate(.presenceUpdates, of: client)
            try consumeUpdates(of: presence.byteCount, by: client)
        }
        let newPresence = try presence.map { (presence) throws(RoomError) in try value(presence) }
        if !isHere, !client.reserveUse() { throw .tooManyRooms(limit: client.maximumUses) }
        let holder = QuotaHolder(principal: principal?.id, host: client.host)
        let joined: RoomMembership<RoomConnectionState>.Joined
        do throws(RoomError) {
            // Before the membership is created: a client whose presence does not fit must not become a member.
            let known =
                (token ?? attempt).flatMap { try? membership.membershipID(provenBy: $0) }
                ?? (try? membership.membershipID(of: client))
            try presenceBatch.check(newPresence, of: known, for: holder)
            if known == nil { try host.checkQuota(of: holder) }
            let before = memory.presence(of: known)
            let charge = RoomMemory.Charge(bytes: PresenceBatch.size(newPresence), holder: holder, client: client)
            try memory.exchange(before, for: charge)
            do throws(RoomError) {
                joined = try membership.join(
                    client, principal: principal?.id,
                    holder: holder, token: token,
                    attempt: attempt, makeIdentity: Self.makeIdentity)
            } catch {
                memory.undo(charge, to: before)
                throw error
            }
            memory.setPresence(charge, of: joined.identity.membershipID)
        } catch {
            if !isHere { client.releaseUse() }
            throw error
        }
        didJoin()
        let membershipID = joined.identity.membershipID
        // The quota counts the membership, not the connection: a membership exists without one too.
        setQuotaHolder(of: membershipID, to: holder)
        if let replaced = joined.replaced { removeObserver(replaced) }
        observers.insert(client.connection)
        if !isHere {
            closeHandlers[membershipID]?.cancel()
            closeHandlers[membershipID] = client.connection.onClose { [weak self, weak client] in
                Task {
                    guard let client else { return }
                    await self?.whenLocal { $0.startGracePeriod(of: client) }
                }
            }
        }
        publishPresence(newPresence, of: membershipID)
        recordMembership(membershipID, of: client)
        host.didChange(self, name, members: membership.count)
        return RoomTicket(membershipID: membershipID, token: joined.identity.token, events: history.position)
    }

    /// Ends the membership of the caller or of the token at once.
    @Redacted
    distributed func leave(token: String?) throws(RoomError) {
        let client = try host.callingClient()
        defer { closeIfEmpty() }
        updatePrincipal(of: client)
        if let token {
            endMembership(try membership.membershipID(provenBy: token, for: client.connection.principal?.id))
        } else {
            endMembership(try membership.membershipID(of: client))
        }
    }

    /// Replaces the caller's presence; nil removes it.
    distributed func setPresence(_ presence: EncodedJSON?) throws(RoomError) {
        let (client, membershipID) = try callerMembership(consuming: .presenceUpdates)
        try consumeUpdates(of: presence?.byteCount ?? 0, by: client)
        let newPresence = try presence.map { (presence) throws(RoomError) in try value(presence) }
        try chargePresence(newPresence, of: membershipID, by: client)
        publishPresence(newPresence, of: membershipID)
    }

    /// Changes parts of the caller's presence with a merge patch (RFC 7396).
    distributed func patchPresence(_ patch: EncodedJSON) throws(RoomError) {
        let (client, membershipID) = try callerMembership(consuming: .presenceUpdates)
        let before = presenceBatch.newestPresence(of: membershipID, in: roster) ?? StoredJSON(JSONObject())
        try consumeUpdates(of: before.byteCount, by: client)
        let presence = before.merging(try value(patch))
        try check(presence.byteCount)
        try checkMembers(presence.withText(CanonicalJSON.memberCount))
        try chargePresence(presence, of: membershipID, by: client)
        publishPresence(presence, of: membershipID)
    }

    // MARK: Topics

    /// Publishes an event to the other members; returns its number.
    @discardableResult
    distributed func publish(topic: String, payload: EncodedJSON) throws(RoomError) -> Int {
        let (client, membershipID) = try callerMembership(consuming: .publishes)
        guard !topic.isEmpty, topic.utf8.count <= RoomLimits.maximumNameLength else { throw .invalidName }
        let bytes = payload.byteCount
        let limit = maximumRecorded(host.limits.payloadBytes)
        guard bytes <= limit else { throw .payloadTooLarge(bytes: bytes, limit: limit) }
        guard payload.depth <= RoomLimits.maximumDepth else { throw .tooDeep(limit: RoomLimits.maximumDepth) }
        guard host.rules.canPublish(client.connection.principal, topic, in: name) else { throw .forbidden }
        let charge = RoomMemory.Charge(
            bytes: RoomEvent.storedBytes(topic: topic, payload), holder: holders[membershipID] ?? .anonymous,
            client: client)
        try memory.appendEvent(charge, dropping: history.droppedCount(appending: bytes))
        let first = history.events.first?.number
        let event = history.append(topic: topic, peer: membershipID, payload: payload)
        guard let handoffState else {
            $events.send(event)
            return event.number
        }
        handoffState.setValue(RoomHandoffSnapshot.bytes(event), as: RoomHandoffSnapshot.eventKey(event.number))
        for number in (first ?? event.number)..<(history.events.first?.number ?? event.number) {
            handoffState.setValue(nil, as: RoomHandoffSnapshot.eventKey(number))
        }
        // Sent after the event is stored; otherwise the next owner might give its number to another event.
        handoffState.runAfterWrites { [weak self] in self?.assumeIsolated { $0.$events.send(event) } }
        return event.number
    }

    /// Returns the last events that the room stores, oldest first. It counts as a publish of the connection.
    ///
    /// - Parameters:
    ///   - topic: nil for all topics.
    ///   - after: the number of the last event that the client knows; nil for none.
    distributed func history(topic: String?, after: Int?, limit: Int?) throws(RoomError) -> [RoomEvent] {
        // The response can be large, so the publish rate applies.
        _ = try callerMembership(consuming: .publishes)
        let found = history.events.filter {
            $0.number > after ?? 0 && (topic == nil || $0.topic.isSameBytes(as: topic ?? ""))
        }
        return Array(found.suffix(max(0, limit ?? .max)))
    }

    // MARK: Private

    /// Writes all presences before a planned handoff.
    func deactivate() async {
        if !membership.isEmpty { recordPlannedHandoff() }
    }

    /// The activation of the room no longer counts for the rate of its caller.
    func didJoin() { if let activator = activator.take() { host.giveBackActivation(activator) } }

    private func callerMembership(
        consuming rate: RoomRate
    ) throws(RoomError) -> (client: RoomConnectionState, membershipID: String) {
        let client = try host.callingClient()
        defer { closeIfEmpty() }
        try host.consumeRate(rate, of: client)
        updatePrincipal(of: client)
        return (client, try membership.membershipID(of: client))
    }

    /// Sends the presence at once, or together with other changes of the interval.
    func publishPresence(_ presence: StoredJSON?, of membershipID: String) {
        presenceBatch.setPresence(
            presence, of: membershipID, principal: membership.principal(of: membershipID),
            for: holders[membershipID] ?? .anonymous)
        if handoffState != nil { schedulePresenceRecord(of: membershipID) }
        guard let wait = presenceBatch.timeToWait(at: MonotonicClock.now) else { return }
        guard wait > 0 else { return publishPresences() }
        Task { [weak self] in
            try? await Task.sleep(for: .nanoseconds(wait))
            await self?.whenLocal { $0.publishPresences() }
        }
    }

    /// Sends the changes that waited for the end of the interval.
    func publishPresences() {
        let now = MonotonicClock.now
        // Any access to the state publishes an update.
        guard presenceBatch.hasChanges(to: roster, at: now) else { return }
        presenceBatch.applyChanges(to: &roster, at: now)
    }

    /// Sets the holder whose room quota a membership uses; nil when it has ended.
    func setQuotaHolder(of membershipID: String, to holder: QuotaHolder?) {
        host.count(from: holders[membershipID], to: holder)
        if let holder {
            memory.movePresence(of: membershipID, to: holder)
        } else {
            memory.removePresence(of: membershipID)
        }
        holders[membershipID] = holder
    }

    func endMembership(_ membershipID: String) {
        setQuotaHolder(of: membershipID, to: nil)
        if let client = membership.endMembership(membershipID) { removeObserver(client) }
        closeHandlers.removeValue(forKey: membershipID)?.cancel()
        publishPresence(nil, of: membershipID)
        deleteRecord(of: membershipID)
        host.didChange(self, name, members: membership.count)
    }

    private func removeObserver(_ client: RoomConnectionState) {
        client.releaseUse()
        client.unregisterActor(self)
        guard observers.remove(client.connection) != nil else { return }
        client.connection.endStreams(
            ofActor: "\(RoomHost.name)/\(name)",
            TrebuchetError(.unauthorized, "the connection is no longer in the room"))
    }

    private func startGracePeriod(of client: RoomConnectionState) {
        guard let membershipID = membership.startGracePeriod(of: client, at: MonotonicClock.now) else { return }
        removeObserver(client)
        closeHandlers[membershipID] = nil
        scheduleExpiry()
    }

    /// Ends memberships whose grace period is over. There is one timer, for the first of them.
    func scheduleExpiry() {
        guard timer == nil, let end = membership.nextExpiry else { return }
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
        for membershipID in membership.endExpired(at: MonotonicClock.now) {
            setQuotaHolder(of: membershipID, to: nil)
            publishPresence(nil, of: membershipID)
            deleteRecord(of: membershipID)
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
    func deactivationDidFinish(_ isDeactivated: Bool) {
        (isDeactivating, isClosed) = (false, isDeactivated || hasMoved)
        guard isDeactivated else { return }
        deleteHandoffState()
        memory.releaseAll()
    }

    private static func makeIdentity() -> RoomMembership<RoomConnectionState>.Identity {
        RoomMembership.Identity(membershipID: RandomToken.make(), token: RandomToken.make())
    }
}

extension Room: ServiceActor {
    static var _inspectsObservers: Bool { true }

    func _refusal(ofStream stream: String, to connection: CallerConnection?) -> (any Error)? {
        guard let connection, observers.contains(connection) else {
            // A room that was activated only to be observed is deactivated as after any other call.
            closeIfEmpty()
            return RoomError.notJoined
        }
        return nil
    }
}

/// Checks of presences and events against the limits.
extension Room {
    /// Takes more updates from the caller's rate for a large presence, which costs more.
    func consumeUpdates(of bytes: Int, by client: RoomConnectionState) throws(RoomError) {
        let calls = bytes / RoomLimits.bytesPerUpdate
        if calls > 0 { try host.consumeRate(.presenceUpdates, of: client, calls: calls) }
    }

    func checkMembers(_ members: Int) throws(RoomError) {
        let limit = RoomLimits.maximumPresenceMembers
        guard members > limit else { return }
        throw .invalidValue("the objects of a presence have \(members) members, of at most \(limit)")
    }

    /// The size first: larger values are not decoded. The canonical text counts too: `1e15` has 16 digits.
    func value(_ encoded: EncodedJSON) throws(RoomError) -> StoredJSON {
        try check(encoded.byteCount)
        let (depth, members) = encoded.nesting
        guard depth <= RoomLimits.maximumDepth else { throw .tooDeep(limit: RoomLimits.maximumDepth) }
        try checkMembers(members)
        let value: StoredJSON
        do {
            value = try StoredJSON(json: encoded.bytes)
        } catch {
            throw .invalidValue("\(error)")
        }
        try check(value.byteCount)
        return value
    }

    func check(_ bytes: Int) throws(RoomError) {
        let limit = maximumRecorded(host.limits.presenceBytes)
        guard bytes > limit else { return }
        throw .presenceTooLarge(bytes: bytes, limit: limit)
    }

    /// Each value is one entry in the coordination store, which has its own limit.
    func maximumRecorded(_ limit: Int) -> Int {
        handoffState == nil ? limit : min(limit, RoomLimits.maximumRecordedEntries)
    }

    /// Counts the caller's new presence; throws when a limit refuses it.
    func chargePresence(
        _ presence: StoredJSON?, of membershipID: String, by client: RoomConnectionState
    ) throws(RoomError) {
        let holder = holders[membershipID] ?? .anonymous
        try presenceBatch.check(presence, of: membershipID, for: holder)
        let charge = RoomMemory.Charge(bytes: PresenceBatch.size(presence), holder: holder, client: client)
        try memory.exchange(memory.presence(of: membershipID), for: charge)
        memory.setPresence(charge, of: membershipID)
    }
}

/// Operations for administrators.
extension Room {
    /// Returns the members, sorted by the bytes of their identifiers.
    func members() -> [RoomMemberSummary] {
        updatePrincipals()
        return membership.all.map { member in
            RoomMemberSummary(
                membershipID: member.membershipID, principal: member.principal,
                host: member.client?.connection.remoteAddress?.host,
                isConnected: member.client != nil,
                storedPresence: presenceBatch.newestPresence(of: member.membershipID, in: roster))
        }.sorted { $0.membershipID.precedesInBytes($1.membershipID) }
    }

    /// Ends a membership and bans its client for a time; returns false when there is no such membership.
    func kick(_ membershipID: String, for time: Duration) -> Bool {
        guard let member = membership.all.first(where: { $0.membershipID.isSameBytes(as: membershipID) }) else {
            return false
        }
        host.ban(member.principal, member.client?.connection, from: name, for: time)
        endMembership(member.membershipID)
        closeIfEmpty()
        return true
    }
}

/// Changes of the principals of members.
extension Room {
    /// Removes a member whose principal has changed or whose session has ended, or that may not join any more because it lost a
    /// role.
    func authorizationDidChange(of client: RoomConnectionState) {
        updatePrincipal(of: client)
        defer { closeIfEmpty() }
        guard let membershipID = try? membership.membershipID(of: client),
            !host.rules.canJoin(client.connection.principal, name)
        else { return }
        endMembership(membershipID)
    }

    /// Ends the membership of a connection whose principal has changed or whose session has ended, so that the next principal
    /// gets nothing of it. When an anonymous client has signed in, its membership becomes that of the principal.
    ///
    /// Each call of a member compares the principals, because the notification of a change arrives later.
    func updatePrincipal(of client: RoomConnectionState) {
        guard let membershipID = try? membership.membershipID(of: client) else { return }
        let before = membership.principal(of: membershipID)
        guard !client.connection.isRevoked else { return endMembership(membershipID) }
        let principal = client.connection.principal?.id
        if before.map({ ByteText($0) }) == principal.map({ ByteText($0) }) { return }
        let holder = QuotaHolder(principal: principal, host: client.host)
        guard before == nil, let principal,
            (try? membership.setPrincipal(principal, of: membershipID, holder: holder)) != nil
        else { return endMembership(membershipID) }
        setQuotaHolder(of: membershipID, to: holder)
        publishPresence(presenceBatch.newestPresence(of: membershipID, in: roster), of: membershipID)
        recordMembership(membershipID, of: client)
    }

    /// Applies changes of principals that the room has not been notified of yet.
    func updatePrincipals() {
        for member in membership.all { if let client = member.client { updatePrincipal(of: client) } }
        closeIfEmpty()
    }
}
