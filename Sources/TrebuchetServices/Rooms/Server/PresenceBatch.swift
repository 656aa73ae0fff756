/// Presence changes that the members of a room have not received yet; they are sent together, once per interval. Pure: times
/// are nanoseconds.
struct PresenceBatch {
    private struct Change {
        var presence: JSONValue?
        var principal: String?
    }

    private let limit: Int
    private let interval: UInt64
    private var changes: [String: Change] = [:]
    /// The bytes of each member's presence, including pending changes.
    private var sizes: [String: Int] = [:]
    private var bytes = 0
    private var lastTime: UInt64 = 0
    private var isAwaited = false

    init(limit: Int, interval: UInt64) {
        self.limit = limit
        self.interval = interval
    }

    /// Throws when the presence of a membership, or of a new one, does not fit into the limit.
    func check(_ presence: JSONValue?, of stay: String?) throws(RoomError) {
        let before = stay.flatMap { sizes[$0] } ?? 0
        let after = Self.size(presence)
        guard after <= before || bytes - before + after <= limit else { throw .roomTooLarge(limit: limit) }
    }

    private static func size(_ presence: JSONValue?) -> Int {
        presence.map { $0.byteCount + RoomLimits.memberOverhead } ?? 0
    }

    /// Returns the presence of a membership, including its pending change.
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

    /// Returns the time until the next update; nil when a timer already waits for it.
    mutating func timeToWait(at now: UInt64) -> UInt64? {
        guard !isAwaited else { return nil }
        let next = lastTime &+ interval
        guard lastTime > 0, now < next else { return 0 }
        isAwaited = true
        return next - now
    }

    /// Returns whether there are changes to send; if not, the batch is complete. A change back to the sent presence does not
    /// count.
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
