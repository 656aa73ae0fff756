public import TrebuchetActors

/// Limits for rooms and their members. Each limit has its own error (``RoomError``).
public struct RoomLimits: Sendable {
    package static let maximumNameLength = 256

    /// The time for which a membership without a connection waits for its client to reconnect. Default 10 s.
    public var reconnectTime = Duration.seconds(10)
    /// The maximum lifetime of a room that no client has joined. Default 2 s.
    public var unjoinedRoomTime = Duration.seconds(2)
    /// Rooms of the server at once. Default 50,000.
    public var rooms = 50_000
    /// Rooms that one connection may be in at once. Default 100.
    public var roomsPerConnection = 100
    /// Rooms that one principal may be in at once, over all of its connections and including memberships in their grace period.
    /// Default 3,125.
    public var roomsPerPrincipal = 3_125
    /// Rooms that one host, an IPv4 address or a /64 network of IPv6, may be in at once; loopback callers do not count. Default
    /// 3,125.
    public var roomsPerHost = 3_125
    /// Memberships of one room at once, including those in their grace period. Default 1,000.
    public var membersPerRoom = 1_000
    /// Memberships of one principal in a room at once. Default 100.
    public var membersPerPrincipal = 100
    /// Memberships of one host, an IPv4 address or a /64 network of IPv6, in a room at once; loopback callers do not count.
    /// Default 250.
    public var membersPerHost = 250
    /// Bytes of the presences of all members of one room, each counted with 256 more. A join or a presence above the limit is
    /// refused with `roomTooLarge`. Default 4 MiB: a joining client gets the roster as one message.
    public var rosterBytesPerRoom = 4 << 20
    /// Bytes of the presences of one principal in a room, counted as `rosterBytesPerRoom`. Default 1 MiB.
    public var rosterBytesPerPrincipal = 1 << 20
    /// Bytes of the presences of one host, an IPv4 address or a /64 network of IPv6, in a room; loopback callers do not count.
    /// Default 1 MiB.
    public var rosterBytesPerHost = 1 << 20
    /// Bytes of the presences and stored events of all rooms, each counted with 256 more. They also count towards
    /// `ServerLimits.memory.total`. Above either limit, presences and events are refused with `serverTooLarge`. Default 256 MiB.
    public var storedBytes = 256 << 20
    /// Bytes of the presences and stored events of one connection, over all rooms; more are refused with `clientTooLarge`.
    /// Default 16 MiB.
    public var storedBytesPerConnection = 16 << 20
    /// Bytes of the presences and stored events of one principal, over all rooms. Default 64 MiB.
    public var storedBytesPerPrincipal = 64 << 20
    /// Bytes of the presences and stored events of one host, an IPv4 address or a /64 network of IPv6, over all rooms; loopback
    /// callers do not count. Default 64 MiB.
    public var storedBytesPerHost = 64 << 20
    /// The minimum time between two messages with presence changes to a member; changes within that time are sent together.
    /// Default 50 ms.
    public var presenceInterval = Duration.milliseconds(50)
    /// Bytes of one member's presence. Default 64 KiB.
    public var presenceBytes = 64 << 10
    /// Bytes of one event. Default 16 KiB.
    public var payloadBytes = 16 << 10
    /// Events that a room stores, over all of its topics. Default 256.
    public var historyEvents = 256
    /// Bytes of the events that a room stores. Default 256 KiB; the newest event is always kept.
    public var historyBytes = 256 << 10
    /// Joins of one connection, over all rooms. Default 50 a second, 200 at once.
    public var joinsPerConnection = RateLimit(callsPerSecond: 50, burst: 200)
    /// Presence updates of one connection, over all rooms. Default 100 a second, 200 at once. Each 8 KiB of the presence count
    /// as one more update.
    public var presenceUpdatesPerConnection = RateLimit(callsPerSecond: 100, burst: 200)
    /// Publishes of one connection, over all rooms. Default 50 a second, 100 at once.
    public var publishesPerConnection = RateLimit(callsPerSecond: 50, burst: 100)

    /// Activations of rooms by calls that join none, from one host or loopback connection. Default 20 a second, 200 at once.
    public var activationsPerHost = RateLimit(callsPerSecond: 20, burst: 200)

    /// The maximum nesting depth of a presence or an event. Clients receive them inside other values, in messages of at most 64
    /// levels.
    package static let maximumDepth = JSONValue.maximumDepth
    /// The maximum number of members of all objects in a presence.
    package static let maximumPresenceMembers = 4_096
    /// The bytes of a presence that count as one more update.
    package static let bytesPerUpdate = 8 << 10
    /// The bytes that each member counts in addition to its presence, and each stored event in addition to its payload and topic.
    package static let memberOverhead = 256
    /// Hosts and connections whose activations are counted.
    package static let activationEntries = 10_000

    /// The maximum number of bytes of a presence or an event in a room that writes notes for its next owner.
    package static let maximumRecordedEntries = 512 << 10
    /// The interval between two writes of presences. At the next owner a presence is at most this much older, until the client
    /// has joined there.
    package static let presenceRecordInterval = Duration.seconds(1)

    /// Creates limits with the default values.
    public init() {}
}
