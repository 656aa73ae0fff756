/// What members of a room have changed and the others have not been told: all of it leaves together, once in an interval. Pure:
/// times are nanoseconds.
struct PresenceBatch {
    private struct Change {
        var presence: JSONValue?
        var principal: String?
    }

    private let limit: Int
    private let interval: UInt64
    private var changes: [String: Change] = [:]
    /// Bytes of what each shows, or will.
    private var sizes: [String: Int] = [:]
    private var bytes = 0
    private var lastTime: UInt64 = 0
    private var isAwaited = false

    init(limit: Int, interval: UInt64) {
        self.limit = limit
        self.interval = interval
    }

    /// Throws when there is no room for what a stay, or one that is still to come, wants to show.
    func check(_ presence: JSONValue?, of stay: String?) throws(RoomError) {
        let before = stay.flatMap { sizes[$0] } ?? 0
        let after = Self.size(presence)
        guard after <= before || bytes - before + after <= limit else { throw .roomTooLarge(limit: limit) }
    }

    private static func size(_ presence: JSONValue?) -> Int {
        presence.map { $0.byteCount + RoomLimits.memberOverhead } ?? 0
    }

    /// What a stay shows when all has been told.
    func wanted(_ stay: String, in roster: Roster) -> JSONValue? {
        if let change = changes[stay] { return change.presence }
        return roster[stay]
    }

    mutating func show(_ presence: JSONValue?, of stay: String, principal: String?) {
        let size = Self.size(presence)
        bytes += size - (sizes[stay] ?? 0)
        sizes[stay] = size > 0 ? size : nil
        changes[stay] = Change(presence: presence, principal: principal)
    }

    /// How long to wait until the others are told; nil when somebody waits for that already.
    mutating func timeToWait(at now: UInt64) -> UInt64? {
        guard !isAwaited else { return nil }
        let next = lastTime &+ interval
        guard lastTime > 0, now < next else { return 0 }
        isAwaited = true
        return next - now
    }

    /// Whether there is anything to tell; if not, all has been told. A stay that shows again what it showed before changes
    /// nothing.
    mutating func isToTell(_ roster: Roster, at now: UInt64) -> Bool {
        changes = changes.filter { !roster.shows($1.presence, of: $0, $1.principal) }
        if changes.isEmpty { (isAwaited, lastTime) = (false, now) }
        return !changes.isEmpty
    }

    mutating func bring(into roster: inout Roster, at now: UInt64) {
        (isAwaited, lastTime) = (false, now)
        for (stay, change) in changes where !roster.shows(change.presence, of: stay, change.principal) {
            roster.set(change.presence, of: stay, principal: change.principal)
        }
        changes = [:]
    }
}
