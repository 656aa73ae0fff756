internal import Platform
internal import Trebuchet

/// The memberships of a room: their connections, secrets, quotas and grace periods.
///
/// Pure: the time, in nanoseconds, and the identities of new memberships are arguments.
struct RoomMembership<Guest: Hashable> {
    struct Identity: Equatable {
        /// The identifier that other members see.
        let stay: String
        /// The secret that proves to be the same client; only that client receives it.
        let token: String
    }

    struct Joined: Equatable {
        let identity: Identity
        let isNew: Bool
        /// The connection that had the membership until now and must be notified.
        let replaced: Guest?
    }

    private struct MembershipRecord {
        let identity: Identity
        /// A secret of the client for repeated joins; the client has it even if it never received the token.
        let attempt: String?
        var principal: String?
        /// The holder whose quota the membership uses.
        var holder: QuotaHolder?
        /// Nil during the grace period.
        var guest: Guest?
        var leavesAt: UInt64?
    }

    /// The maximum number of memberships; lowering it ends none.
    var limit: Int
    let grace: UInt64
    private var shares: HolderQuotaUsage
    private var stays: [String: MembershipRecord] = [:]
    /// Looked up by hash with a per-process seed, so that timing reveals nothing about tokens and attempts.
    private var staysBySecret: [ByteText: String] = [:]
    private var staysByGuest: [Guest: String] = [:]

    init(limit: Int, grace: UInt64, perPrincipal: Int = .max, perHost: Int = .max) {
        self.limit = limit
        self.grace = grace
        shares = HolderQuotaUsage(perPrincipal: perPrincipal, perHost: perHost)
    }

    private mutating func setHolder(_ holder: QuotaHolder?) -> QuotaHolder? {
        if let holder { shares.reserve(holder) }
        return holder
    }

    private mutating func release(_ holder: QuotaHolder?) {
        if let holder { shares.release(holder) }
    }

    var isEmpty: Bool { stays.isEmpty }
    var count: Int { stays.count }

    /// The time at which the next membership without a connection ends.
    var nextEnd: UInt64? { stays.values.lazy.compactMap(\.leavesAt).min() }

    /// Returns the membership of a connection.
    func stay(of guest: Guest) throws(RoomError) -> String {
        guard let stay = staysByGuest[guest] else { throw .notJoined }
        return stay
    }

    /// All memberships, unordered.
    var all: [(stay: String, principal: String?, guest: Guest?)] {
        stays.values.map { ($0.identity.stay, $0.principal, $0.guest) }
    }

    /// Returns the principal that is signed in over the connection of a membership.
    func principal(of stay: String) -> String? { stays[stay]?.principal }

    /// Gives a connection its membership: the existing one, the one of its token, the one of the same attempt, or a new one.
    mutating func join(
        _ guest: Guest, principal: String?, holder: QuotaHolder? = nil, token: String?, attempt: String? = nil,
        makeIdentity: () -> Identity
    ) throws(RoomError) -> Joined {
        let own = staysByGuest[guest]
        if let secret = token ?? attempt.flatMap({ staysBySecret[ByteText($0)] == nil ? nil : $0 }) {
            guard let id = staysBySecret[ByteText(secret)], var stay = stays[id] else { throw .unknownToken }
            guard own == nil || own == id else { throw .alreadyJoined }
            // A membership of a principal cannot be resumed by another principal, not even with the token.
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
            stay.holder = setHolder(holder)
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
        stays[identity.stay] = MembershipRecord(
            identity: identity, attempt: attempt, principal: principal, holder: setHolder(holder), guest: guest)
        staysBySecret[ByteText(identity.token)] = identity.stay
        if let attempt { staysBySecret[ByteText(attempt)] = identity.stay }
        staysByGuest[guest] = identity.stay
        return Joined(identity: identity, isNew: true, replaced: nil)
    }

    /// Restores a membership from the previous owner of the room; it waits for its client to join here.
    ///
    /// - Parameter end: the end of the membership when the client does not join.
    mutating func restore(
        _ identity: Identity, attempt: String?, principal: String?, holder: QuotaHolder?, until end: UInt64
    ) {
        stays[identity.stay] = MembershipRecord(
            identity: identity, attempt: attempt, principal: principal, holder: setHolder(holder), guest: nil,
            leavesAt: end)
        staysBySecret[ByteText(identity.token)] = identity.stay
        if let attempt { staysBySecret[ByteText(attempt)] = identity.stay }
    }

    /// Returns the secrets of a membership for the next owner of the room; nil when there is none.
    func secrets(of stay: String) -> (token: String, attempt: String?)? {
        stays[stay].map { ($0.identity.token, $0.attempt) }
    }

    /// Returns the membership that a token proves.
    func stay(provedBy token: String) throws(RoomError) -> String {
        guard let stay = staysBySecret[ByteText(token)] else { throw .unknownToken }
        return stay
    }

    /// Ends a membership. Returns the connection that had it.
    @discardableResult
    mutating func endSession(_ id: String) -> Guest? {
        guard let stay = stays.removeValue(forKey: id) else { return nil }
        release(stay.holder)
        staysBySecret[ByteText(stay.identity.token)] = nil
        if let attempt = stay.attempt { staysBySecret[ByteText(attempt)] = nil }
        if let guest = stay.guest { staysByGuest[guest] = nil }
        return stay.guest
    }

    /// Starts the grace period of a closed connection's membership and returns that; nil when it has none.
    mutating func lost(_ guest: Guest, at now: UInt64) -> String? {
        guard let id = staysByGuest.removeValue(forKey: guest) else { return nil }
        stays[id]?.guest = nil
        stays[id]?.leavesAt = now &+ grace
        return id
    }

    /// Ends the memberships whose grace period is over, and returns them.
    mutating func endOverdue(at now: UInt64) -> [String] {
        let overdue = stays.values.filter { ($0.leavesAt ?? .max) <= now }.map(\.identity.stay)
        for id in overdue { endSession(id) }
        return overdue
    }
}
