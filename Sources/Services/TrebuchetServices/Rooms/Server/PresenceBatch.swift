/// Presence changes that the members of a room have not received yet; they are sent together, once per interval. Pure: times
/// are nanoseconds.
struct PresenceBatch {
    private struct Change {
        var presence: StoredJSON?
        var principal: String?
    }

    private let limit: Int
    private let interval: UInt64
    private var changes: [String: Change] = [:]
    /// The bytes of each member's presence, including pending changes, and the holder for which they count.
    private var sizes: [String: (bytes: Int, holder: QuotaHolder)] = [:]
    private var usage: HolderQuotaUsage
    private var bytes = 0
    private var lastTime: UInt64 = 0
    private var isTimerScheduled = false

    init(limit: Int, interval: UInt64, perPrincipal: Int = .max, perHost: Int = .max) {
        self.limit = limit
        self.interval = interval
        usage = HolderQuotaUsage(perPrincipal: perPrincipal, perHost: perHost)
    }

    /// Throws when the presence of a membership, or of a new one, does not fit into the limit or the quotas of its holder.
    func check(
        _ presence: StoredJSON?, of membershipID: String?, for holder: QuotaHolder = .anonymous
    ) throws(RoomError) {
        let before = membershipID.flatMap { sizes[$0] } ?? (0, holder)
        let after = Self.size(presence)
        guard after > before.bytes else { return }
        guard bytes - before.bytes + after <= limit else { throw .roomTooLarge(limit: limit) }
        let own = before.holder == holder ? before.bytes : 0
        if let exceeded = usage.exceeded(holder, by: after - own) { throw .roomTooLarge(limit: exceeded) }
    }

    /// The bytes that a presence counts.
    static func size(_ presence: StoredJSON?) -> Int {
        presence.map { $0.byteCount + RoomLimits.memberOverhead } ?? 0
    }

    /// Returns the presence of a membership, including its pending change.
    func newestPresence(of membershipID: String, in roster: Roster) -> StoredJSON? {
        if let change = changes[membershipID] { return change.presence }
        return roster[membershipID]
    }

    mutating func setPresence(
        _ presence: StoredJSON?, of membershipID: String, principal: String?, for holder: QuotaHolder = .anonymous
    ) {
        if let before = sizes.removeValue(forKey: membershipID) {
            bytes -= before.bytes
            usage.release(before.holder, before.bytes)
        }
        let size = Self.size(presence)
        if size > 0 {
            bytes += size
            usage.reserve(holder, size)
            sizes[membershipID] = (size, holder)
        }
        changes[membershipID] = Change(presence: presence, principal: principal)
    }

    /// Returns the time until the next update; nil when a timer already waits for it.
    mutating func timeToWait(at now: UInt64) -> UInt64? {
        guard !isTimerScheduled else { return nil }
        let next = lastTime &+ interval
        guard lastTime > 0, now < next else { return 0 }
        isTimerScheduled = true
        return next - now
    }

    /// Returns whether there are changes to send; if not, the batch is complete. A change back to the sent presence does not
    /// count.
    mutating func hasChanges(to roster: Roster, at now: UInt64) -> Bool {
        changes = changes.filter { !roster.hasPresence($1.presence, of: $0, $1.principal) }
        if changes.isEmpty { (isTimerScheduled, lastTime) = (false, now) }
        return !changes.isEmpty
    }

    mutating func applyChanges(to roster: inout Roster, at now: UInt64) {
        (isTimerScheduled, lastTime) = (false, now)
        for (membershipID, change) in changes
        where !roster.hasPresence(change.presence, of: membershipID, change.principal) {
            roster.set(change.presence, of: membershipID, principal: change.principal)
        }
        changes = [:]
    }
}
