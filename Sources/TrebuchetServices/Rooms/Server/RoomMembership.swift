internal import Platform
internal import Trebuchet

/// Who is in a room: stays, the connections that have them, and how long they live without one.
///
/// Pure: the time is given, in nanoseconds, and so are the identities of new stays.
struct RoomMembership<Guest: Hashable> {
    struct Identity: Equatable {
        /// What the others see.
        let stay: String
        /// What proves to be the same client; nobody else ever sees it.
        let token: String
    }

    struct Joined: Equatable {
        let identity: Identity
        let isNew: Bool
        /// The connection that had the stay until now and does not know yet that it is gone.
        let replaced: Guest?
    }

    private struct Stay {
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

    /// Of stays; those that are there when it is lowered remain.
    var limit: Int
    let grace: UInt64
    private var shares: HolderShares
    private var stays: [String: Stay] = [:]
    /// Found by hash, with a seed of the process: how long it takes tells nothing about tokens and attempts.
    private var staysBySecret: [ByteText: String] = [:]
    private var staysByGuest: [Guest: String] = [:]

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

    var isEmpty: Bool { stays.isEmpty }
    var count: Int { stays.count }

    /// When the next stay ends for want of a connection.
    var nextEnd: UInt64? { stays.values.lazy.compactMap(\.leavesAt).min() }

    /// The stay that a connection has.
    func stay(of guest: Guest) throws(RoomError) -> String {
        guard let stay = staysByGuest[guest] else { throw .notJoined }
        return stay
    }

    /// All stays, in no order.
    var all: [(stay: String, principal: String?, guest: Guest?)] {
        stays.values.map { ($0.identity.stay, $0.principal, $0.guest) }
    }

    /// Who is signed in over the connection of a stay.
    func principal(of stay: String) -> String? { stays[stay]?.principal }

    /// Gives a connection its stay: the one that it has, the one that its token proves, the one that it made with the same
    /// attempt, or a new one.
    mutating func join(
        _ guest: Guest, principal: String?, holder: Holder? = nil, token: String?, attempt: String? = nil,
        makeIdentity: () -> Identity
    ) throws(RoomError) -> Joined {
        let own = staysByGuest[guest]
        if let secret = token ?? attempt.flatMap({ staysBySecret[ByteText($0)] == nil ? nil : $0 }) {
            guard let id = staysBySecret[ByteText(secret)], var stay = stays[id] else { throw .unknownToken }
            guard own == nil || own == id else { throw .alreadyJoined }
            // What belongs to somebody is nobody else's, not even with the token.
            if let before = stay.principal {
                guard let principal else { throw .notSignedIn }
                guard before.isSameBytes(as: principal) else { throw .notYours }
            }
            let replaced = stay.guest == guest ? nil : stay.guest
            if let replaced { staysByGuest[replaced] = nil }
            stay.guest = guest
            stay.leavesAt = nil
            stay.principal = principal ?? stay.principal
            release(stay.holder)
            stay.holder = take(holder)
            stays[id] = stay
            staysByGuest[guest] = id
            return Joined(identity: stay.identity, isNew: false, replaced: replaced)
        }
        if let own, let stay = stays[own] {
            return Joined(identity: stay.identity, isNew: false, replaced: nil)
        }
        guard stays.count < limit else { throw .roomFull(limit: limit) }
        if let full = holder.flatMap({ shares.exceeded($0) }) { throw .tooManySessions(limit: full) }
        let identity = makeIdentity()
        stays[identity.stay] = Stay(
            identity: identity, attempt: attempt, principal: principal, holder: take(holder), guest: guest)
        staysBySecret[ByteText(identity.token)] = identity.stay
        if let attempt { staysBySecret[ByteText(attempt)] = identity.stay }
        staysByGuest[guest] = identity.stay
        return Joined(identity: identity, isNew: true, replaced: nil)
    }

    /// A stay that began at another owner of the room, and waits for its client to come here.
    ///
    /// - Parameter end: when it ends without that.
    mutating func restore(
        _ identity: Identity, attempt: String?, principal: String?, holder: Holder?, until end: UInt64
    ) {
        stays[identity.stay] = Stay(
            identity: identity, attempt: attempt, principal: principal, holder: take(holder), guest: nil,
            leavesAt: end)
        staysBySecret[ByteText(identity.token)] = identity.stay
        if let attempt { staysBySecret[ByteText(attempt)] = identity.stay }
    }

    /// What is to be known of a stay at the next owner of the room; nil when there is none.
    func secrets(of stay: String) -> (token: String, attempt: String?)? {
        stays[stay].map { ($0.identity.token, $0.attempt) }
    }

    /// The stay that a token proves to be one's own.
    func stay(provedBy token: String) throws(RoomError) -> String {
        guard let stay = staysBySecret[ByteText(token)] else { throw .unknownToken }
        return stay
    }

    /// Ends a stay. Returns the connection that had it.
    @discardableResult
    mutating func end(_ id: String) -> Guest? {
        guard let stay = stays.removeValue(forKey: id) else { return nil }
        release(stay.holder)
        staysBySecret[ByteText(stay.identity.token)] = nil
        if let attempt = stay.attempt { staysBySecret[ByteText(attempt)] = nil }
        if let guest = stay.guest { staysByGuest[guest] = nil }
        return stay.guest
    }

    /// A connection has gone. Its stay, if it still has one, waits for another.
    mutating func lost(_ guest: Guest, at now: UInt64) -> String? {
        guard let id = staysByGuest.removeValue(forKey: guest) else { return nil }
        stays[id]?.guest = nil
        stays[id]?.leavesAt = now &+ grace
        return id
    }

    /// Ends the stays that have waited long enough, and returns them.
    mutating func endOverdue(at now: UInt64) -> [String] {
        let overdue = stays.values.filter { ($0.leavesAt ?? .max) <= now }.map(\.identity.stay)
        for id in overdue { end(id) }
        return overdue
    }
}
