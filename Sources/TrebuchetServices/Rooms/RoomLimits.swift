public import Trebuchet

/// What rooms and their members may use of a server. Each limit has its own error (``RoomError``).
public struct RoomLimits: Sendable {
    static let longestName = 256

    /// How long a stay lives on without its connection, for its client to come back to. Default 10 s.
    public var grace = Duration.seconds(10)
    /// How long a room may be there without anybody ever joining it. Default 2 s.
    public var unjoinedTime = Duration.seconds(2)
    /// Rooms of the server at once. Default 50,000.
    public var rooms = 50_000
    /// Rooms that one connection may be in at once. Default 100.
    public var roomsPerConnection = 100
    /// Rooms that one principal may be in at once, over all of its connections, those within their grace too. Default 3,125.
    public var roomsPerPrincipal = 3_125
    /// The same of one host, an IPv4 address or a /64 network of IPv6; this machine's own do not count. Default 3,125.
    public var roomsPerHost = 3_125
    /// Stays of one room at once, those within their grace too. Default 1,000.
    public var membersPerRoom = 1_000
    /// Of these, those of one principal. Default 100.
    public var membersPerPrincipal = 100
    /// The same of one host, an IPv4 address or a /64 network of IPv6; this machine's own do not count. Default 250.
    public var membersPerHost = 250
    /// Bytes of what all members of one room show, each counted with 256 more; a join or a presence beyond it is refused with
    /// `roomTooLarge`. Default 4 MiB: who joins gets it as one message.
    public var rosterBytes = 4 << 20
    /// The least time between two messages that tell a member what others have changed; what is changed within it leaves together.
    /// Default 50 ms.
    public var presenceInterval = Duration.milliseconds(50)
    /// Bytes of one member's presence. Default 64 KiB.
    public var presenceBytes = 64 << 10
    /// Bytes of one event. Default 16 KiB.
    public var payloadBytes = 16 << 10
    /// Events that a room remembers, over all of its topics. Default 256.
    public var historyEvents = 256
    /// Bytes of the events that a room remembers. Default 256 KiB; the newest event is kept in any case.
    public var historyBytes = 256 << 10
    /// Joins of one connection, over all rooms. Default 50 a second, 200 at once.
    public var joins = RateLimit(callsPerSecond: 50, burst: 200)
    /// Presence updates of one connection, over all rooms. Default 100 a second, 200 at once.
    public var presenceUpdates = RateLimit(callsPerSecond: 100, burst: 200)
    /// Publishes of one connection, over all rooms. Default 50 a second, 100 at once.
    public var publishes = RateLimit(callsPerSecond: 50, burst: 100)

    /// How deep a presence or an event may nest arrays and objects: it goes to the others within other things, in messages of 64
    /// levels.
    static let deepest = JSONValue.deepest
    /// What a member counts beside what it shows.
    static let memberOverhead = 256

    /// Bytes of a presence or an event that a room notes for its next owner, where it has one.
    static let mostNoted = 512 << 10
    /// How long what a member shows is not noted: what its next owner shows is at most so much older, until the client has joined there.
    static let notingInterval = Duration.seconds(1)

    /// All limits at their defaults.
    public init() {}
}
