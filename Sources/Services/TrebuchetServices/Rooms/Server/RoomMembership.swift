internal import Platform
internal import Trebuchet

/// The memberships of a room: their connections, secrets, quotas and grace periods.
///
/// Pure: the time, in nanoseconds, and the identities of new memberships are arguments.
struct RoomMembership<Client: Hashable> {
    struct Identity: Equatable {
        /// The identifier that other members see.
        let membershipID: String
        /// The secret that proves to be the same client; only that client receives it.
        let token: String
    }

    struct Joined: Equatable {
        let identity: Identity
        let isNew: Bool
        /// The connection that had the membership until now and must be notified.
        let replaced: Client?
    }

    private struct MembershipRecord {
        let identity: Identity
        /// A secret of the client for repeated joins; the client has it even if it never received the token.
        let attempt: String?
        var principal: String?
        /// The holder whose quota the membership uses.
        var holder: QuotaHolder?
        /// Nil during the grace period.
        var client: Client?
        var expiresAt: UInt64?

        /// Throws for a caller with another principal: a membership belongs to its principal, whoever has the token.
        func checkPrincipal(_ caller: String?) throws(RoomError) {
            guard let principal else { return }
            guard let caller else { throw .notSignedIn }
            guard principal.isSameBytes(as: caller) else { throw .notYours }
        }
    }

    /// The maximum number of memberships; lowering it ends none.
    var limit: Int
    let grace: UInt64
    private var quotaUsage: HolderQuotaUsage
    private var memberships: [String: MembershipRecord] = [:]
    /// Looked up by hash with a per-process seed, so that timing reveals nothing about tokens and attempts.
    private var membershipIDsBySecret: [ByteText: String] = [:]
    private var membershipIDsByClient: [Client: String] = [:]

    init(limit: Int, grace: UInt64, perPrincipal: Int = .max, perHost: Int = .max) {
        self.limit = limit
        self.grace = grace
        quotaUsage = HolderQuotaUsage(perPrincipal: perPrincipal, perHost: perHost)
    }

    private mutating func setHolder(_ holder: QuotaHolder?) -> QuotaHolder? {
        if let holder { quotaUsage.reserve(holder) }
        return holder
    }

    private mutating func release(_ holder: QuotaHolder?) {
        if let holder { quotaUsage.release(holder) }
    }

    var isEmpty: Bool { memberships.isEmpty }
    var count: Int { memberships.count }

    /// The time at which the next membership without a connection ends.
    var nextExpiry: UInt64? { memberships.values.lazy.compactMap(\.expiresAt).min() }

    /// Returns the membership of a connection.
    func membershipID(of client: Client) throws(RoomError) -> String {
        guard let membershipID = membershipIDsByClient[client] else { throw .notJoined }
        return membershipID
    }

    /// All memberships, unordered.
    var all: [(membershipID: String, principal: String?, client: Client?)] {
        memberships.values.map { ($0.identity.membershipID, $0.principal, $0.client) }
    }

    /// Returns the principal that is signed in over the connection of a membership.
    func principal(of membershipID: String) -> String? { memberships[membershipID]?.principal }

    /// Gives the membership of an anonymous client to the principal that has signed in over its connection.
    mutating func setPrincipal(
        _ principal: String, of membershipID: String, holder: QuotaHolder
    ) throws(RoomError) {
        guard var record = memberships[membershipID] else { throw .notJoined }
        release(record.holder)
        if let full = quotaUsage.exceeded(holder) {
            record.holder = setHolder(record.holder)
            throw .tooManySessions(limit: full)
        }
        record.holder = setHolder(holder)
        record.principal = principal
        memberships[membershipID] = record
    }

    /// Gives a connection its membership: the existing one, the one of its token, the one of the same attempt, or a new one.
    mutating func join(
        _ client: Client, principal: String?, holder: QuotaHolder? = nil, token: String?, attempt: String? = nil,
        makeIdentity: () -> Identity
    ) throws(RoomError) -> Joined {
        let own = membershipIDsByClient[client]
        if let secret = token ?? attempt.flatMap({ membershipIDsBySecret[ByteText($0)] == nil ? nil : $0 }) {
            guard let id = membershipIDsBySecret[ByteText(secret)], var record = memberships[id] else {
                throw .unknownToken
            }
            guard own == nil || own == id else { throw .alreadyJoined }
            try record.checkPrincipal(principal)
            let replaced = record.client == client ? nil : record.client
            if let replaced { membershipIDsByClient[replaced] = nil }
            record.client = client
            record.expiresAt = nil
            record.principal = principal ?? record.principal
            release(record.holder)
            record.holder = setHolder(holder)
            memberships[id] = record
            membershipIDsByClient[client] = id
            return Joined(identity: record.identity, isNew: false, replaced: replaced)
        }
        if let own, let record = memberships[own] {
            try record.checkPrincipal(principal)
            return Joined(identity: record.identity, isNew: false, replaced: nil)
        }
        guard memberships.count < limit else { throw .roomFull(limit: limit) }
        if let full = holder.flatMap({ quotaUsage.exceeded($0) }) { throw .tooManySessions(limit: full) }
        let identity = makeIdentity()
        memberships[identity.membershipID] = MembershipRecord(
            identity: identity, attempt: attempt, principal: principal, holder: setHolder(holder), client: client)
        membershipIDsBySecret[ByteText(identity.token)] = identity.membershipID
        if let attempt { membershipIDsBySecret[ByteText(attempt)] = identity.membershipID }
        membershipIDsByClient[client] = identity.membershipID
        return Joined(identity: identity, isNew: true, replaced: nil)
    }

    /// Restores a membership from the previous owner of the room; it waits for its client to join here.
    ///
    /// - Parameter end: the end of the membership when the client does not join.
    mutating func restore(
        _ identity: Identity, attempt: String?, principal: String?, holder: QuotaHolder?, until end: UInt64
    ) {
        memberships[identity.membershipID] = MembershipRecord(
            identity: identity, attempt: attempt, principal: principal, holder: setHolder(holder), client: nil,
            expiresAt: end)
        membershipIDsBySecret[ByteText(identity.token)] = identity.membershipID
        if let attempt { membershipIDsBySecret[ByteText(attempt)] = identity.membershipID }
    }

    /// Returns the secrets of a membership for the next owner of the room; nil when there is none.
    func secrets(of membershipID: String) -> (token: String, attempt: String?)? {
        memberships[membershipID].map { ($0.identity.token, $0.attempt) }
    }

    /// Returns the membership that a token proves.
    func membershipID(provenBy token: String) throws(RoomError) -> String {
        guard let membershipID = membershipIDsBySecret[ByteText(token)] else { throw .unknownToken }
        return membershipID
    }

    /// Returns the membership that a token proves, unless it belongs to another principal.
    func membershipID(provenBy token: String, for principal: String?) throws(RoomError) -> String {
        let membershipID = try membershipID(provenBy: token)
        try memberships[membershipID]?.checkPrincipal(principal)
        return membershipID
    }

    /// Ends a membership. Returns the connection that had it.
    @discardableResult
    mutating func endMembership(_ id: String) -> Client? {
        guard let record = memberships.removeValue(forKey: id) else { return nil }
        release(record.holder)
        membershipIDsBySecret[ByteText(record.identity.token)] = nil
        if let attempt = record.attempt { membershipIDsBySecret[ByteText(attempt)] = nil }
        if let client = record.client { membershipIDsByClient[client] = nil }
        return record.client
    }

    /// Starts the grace period of a closed connection's membership and returns that; nil when it has none.
    mutating func startGracePeriod(of client: Client, at now: UInt64) -> String? {
        guard let id = membershipIDsByClient.removeValue(forKey: client) else { return nil }
        memberships[id]?.client = nil
        memberships[id]?.expiresAt = now &+ grace
        return id
    }

    /// Ends the memberships whose grace period is over, and returns them.
    mutating func endExpired(at now: UInt64) -> [String] {
        let expired = memberships.values.filter { ($0.expiresAt ?? .max) <= now }.map(\.identity.membershipID)
        for id in expired { endMembership(id) }
        return expired
    }
}
