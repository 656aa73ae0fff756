internal import Platform
internal import Synchronization
internal import Trebuchet

/// A connection as rooms see it: how many it is in, and how fast it may go on. One for all rooms.
final class RoomGuest: Sendable {
    enum Action { case join, presence, publish }

    private struct Usage {
        var rooms = 0
        /// The names of those that it is in, or just joins.
        var names: Set<ByteText> = []
        var joins: TokenBucket
        var presence: TokenBucket
        var publishes: TokenBucket
    }

    let connection: CallerConnection
    let host: CallerHost?
    private let roomLimit: Int
    private let usage: Mutex<Usage>

    init(_ connection: CallerConnection, limits: RoomLimits) {
        self.connection = connection
        host = connection.host
        roomLimit = limits.roomsPerConnection
        let now = MonotonicClock.now
        usage = Mutex(
            Usage(
                joins: TokenBucket(limits.joins, now: now), presence: TokenBucket(limits.presenceUpdates, now: now),
                publishes: TokenBucket(limits.publishes, now: now)))
    }

    func take(_ action: Action) throws(RoomError) {
        let now = MonotonicClock.now
        let wait = usage.withLock { usage in
            switch action {
            case .join: usage.joins.take(at: now)
            case .presence: usage.presence.take(at: now)
            case .publish: usage.publishes.take(at: now)
            }
        }
        if let wait { throw .rateLimited(retryAfterMilliseconds: wait) }
    }

    func enter() throws(RoomError) {
        let isAllowed = usage.withLock { usage in
            guard usage.rooms < roomLimit else { return false }
            usage.rooms += 1
            return true
        }
        guard isAllowed else { throw .tooManyRooms(limit: roomLimit) }
    }

    func leave() { usage.withLock { $0.rooms -= 1 } }

    /// Notes a room, which hears from then on when somebody else is signed in.
    func follows(_ room: String) { usage.withLock { _ = $0.names.insert(ByteText(room)) } }
    func follows(noMore room: String) { usage.withLock { _ = $0.names.remove(ByteText(room)) } }
    var followed: [String] { usage.withLock { $0.names.map(\.text) } }
}

extension RoomGuest: Hashable {
    static func == (a: RoomGuest, b: RoomGuest) -> Bool { a === b }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
