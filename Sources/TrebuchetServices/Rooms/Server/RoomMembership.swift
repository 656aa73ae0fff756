internal import Trebuchet

/// Who is in a room: sessions, the connections that have them, and how long they live without one.
///
/// Pure: the time is given, in nanoseconds, and so are the identities of new sessions.
struct RoomMembership<Guest: Hashable> {
    struct Identity: Equatable {
        /// What the others see.
        let session: String
        /// What proves to be the same client; nobody else ever sees it.
        let token: String
    }

    struct Joined: Equatable {
        let identity: Identity
        let isNew: Bool
        /// The connection that had the session until now and does not know yet that it is gone.
        let replaced: Guest?
    }

    private struct Session {
        let identity: Identity
        /// What its client can show besides the token, which it may never have got.
        let attempt: String?
        var principal: String?
        /// Whose share it uses.
        var holder: Holder?
        /// Nil within the grace.
        var guest: Guest?
        var leavesAt: UInt64?
    }

    /// Of sessions; those that are there when it is lowered stay.
    var limit: Int
    let grace: UInt64
    private var shares: HolderShares
    private var sessions: [String: Session] = [:]
    /// Found by hash, with a seed of the process: how long it takes tells nothing about tokens and attempts.
    private var sessionsBySecret: [ByteText: String] = [:]
    private var sessionsByGuest: [Guest: String] = [:]

    init(limit: Int, grace: UInt64, perPrincipal: Int = .max, perHost: Int = .max) {
        self.limit = limit
        self.grace = grace
        shares = HolderShares(perPrincipal: perPrincipal, perHost: perHost)
    }

    private mutating func take(_ holder: Holder?) -> Holder? {
        if let holder { shares.take(holder) }
        return holder
    }

    private mutating func release(_ holder: Holder?) {
        if let holder { shares.release(holder) }
    }

    var isEmpty: Bool { sessions.isEmpty }
    var count: Int { sessions.count }

    /// When the next session ends for want of a connection.
    var nextEnd: UInt64? { sessions.values.lazy.compactMap(\.leavesAt).min() }

    /// The session that a connection has.
    func session(of guest: Guest) throws(RoomError) -> String {
        guard let session = sessionsByGuest[guest] else { throw .notJoined }
        return session
    }

    /// All sessions, in no order.
    var all: [(session: String, principal: String?, guest: Guest?)] {
        sessions.values.map { ($0.identity.session, $0.principal, $0.guest) }
    }

    /// Who is signed in over the connection of a session.
    func principal(of session: String) -> String? { sessions[session]?.principal }

    /// Gives a connection its session: the one that it has, the one that its token proves, the one that it made with the same
    /// attempt, or a new one.
    mutating func join(
        _ guest: Guest, principal: String?, holder: Holder? = nil, token: String?, attempt: String? = nil,
        makeIdentity: () -> Identity
    ) throws(RoomError) -> Joined {
        let own = sessionsByGuest[guest]
        if let secret = token ?? attempt.flatMap({ sessionsBySecret[ByteText($0)] == nil ? nil : $0 }) {
            guard let id = sessionsBySecret[ByteText(secret)], var session = sessions[id] else { throw .unknownToken }
            guard own == nil || own == id else { throw .alreadyJoined }
            // What belongs to somebody is nobody else's, not even with the token.
            if let before = session.principal {
                guard let principal else { throw .notSignedIn }
                guard before.isSameBytes(as: principal) else { throw .notYours }
            }
            let replaced = session.guest == guest ? nil : session.guest
            if let replaced { sessionsByGuest[replaced] = nil }
            session.guest = guest
            session.leavesAt = nil
            session.principal = principal ?? session.principal
            release(session.holder)
            session.holder = take(holder)
            sessions[id] = session
            sessionsByGuest[guest] = id
            return Joined(identity: session.identity, isNew: false, replaced: replaced)
        }
        if let own, let session = sessions[own] {
            return Joined(identity: session.identity, isNew: false, replaced: nil)
        }
        guard sessions.count < limit else { throw .roomFull(limit: limit) }
        if let full = holder.flatMap({ shares.exceeded($0) }) { throw .tooManySessions(limit: full) }
        let identity = makeIdentity()
        sessions[identity.session] = Session(
            identity: identity, attempt: attempt, principal: principal, holder: take(holder), guest: guest)
        sessionsBySecret[ByteText(identity.token)] = identity.session
        if let attempt { sessionsBySecret[ByteText(attempt)] = identity.session }
        sessionsByGuest[guest] = identity.session
        return Joined(identity: identity, isNew: true, replaced: nil)
    }

    /// The session that a token proves to be one's own.
    func session(provedBy token: String) throws(RoomError) -> String {
        guard let session = sessionsBySecret[ByteText(token)] else { throw .unknownToken }
        return session
    }

    /// Ends a session. Returns the connection that had it.
    @discardableResult
    mutating func end(_ id: String) -> Guest? {
        guard let session = sessions.removeValue(forKey: id) else { return nil }
        release(session.holder)
        sessionsBySecret[ByteText(session.identity.token)] = nil
        if let attempt = session.attempt { sessionsBySecret[ByteText(attempt)] = nil }
        if let guest = session.guest { sessionsByGuest[guest] = nil }
        return session.guest
    }

    /// A connection has gone. Its session, if it still has one, waits for another.
    mutating func lost(_ guest: Guest, at now: UInt64) -> String? {
        guard let id = sessionsByGuest.removeValue(forKey: guest) else { return nil }
        sessions[id]?.guest = nil
        sessions[id]?.leavesAt = now &+ grace
        return id
    }

    /// Ends the sessions that have waited long enough, and returns them.
    mutating func endOverdue(at now: UInt64) -> [String] {
        let overdue = sessions.values.filter { ($0.leavesAt ?? .max) <= now }.map(\.identity.session)
        for id in overdue { end(id) }
        return overdue
    }
}
