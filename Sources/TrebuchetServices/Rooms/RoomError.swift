/// Why a room does not do what it was asked for.
public enum RoomError: Error, Codable, Sendable, Hashable {
    /// The server does not know its callers' connections: it needs `access.identifiesCallers = true`.
    case unknownCaller
    /// The name of the room or topic is empty or too long, or the attempt of a join too short.
    case invalidName
    /// The connection is not in the room, or another one has taken its stay over.
    case notJoined
    /// No stay of the room has this token: it was never given out, or its stay has ended.
    case unknownToken
    /// The stay belongs to somebody else than who is signed in over this connection.
    case notYours
    /// The stay belongs to somebody, and nobody is signed in over this connection, perhaps not yet.
    case notSignedIn
    /// The connection has a stay of its own in this room.
    case alreadyJoined
    /// The room is just being taken away; a room of the same name can be joined at once.
    case roomClosed
    /// The room has as many members as it may.
    case roomFull(limit: Int)
    /// The connection, its principal or its host is in as many rooms as it may be.
    case tooManyRooms(limit: Int)
    /// The server has as many rooms as it may.
    case serverFull(limit: Int)
    /// What all members show has as many bytes as it may.
    case roomTooLarge(limit: Int)
    /// One principal, or one host, has as many stays in the room as it may.
    case tooManySessions(limit: Int)
    /// A presence or an event nests arrays and objects deeper than it may.
    case tooDeep(limit: Int)
    /// A presence or an event is no JSON that can be kept: a member is there twice, or a number is too large.
    case invalidValue(String)
    /// The rules do not allow it.
    case forbidden
    /// An administrator has sent the caller out of the room for a time, of which this is left.
    case kicked(retryAfterMilliseconds: Int)
    /// The presence has more bytes of JSON than `RoomLimits.presenceBytes`.
    case presenceTooLarge(bytes: Int, limit: Int)
    /// The event has more bytes of JSON than `RoomLimits.payloadBytes`.
    case payloadTooLarge(bytes: Int, limit: Int)
    /// More joins, presence updates or publishes than a connection may make.
    case rateLimited(retryAfterMilliseconds: Int)
    /// So many events wait to be sent already.
    case tooManyWaiting(limit: Int)
    /// Events were missed that the server does not have any more.
    case eventsMissed(count: Int)
    /// The client has left its rooms, by `TrebuchetBackend.leaveRooms(within:)`.
    case left
    /// There is no `TrebuchetBackend` that the key could use.
    case noBackend
}

extension RoomError {
    /// Whether the caller is not to know who is in the room.
    var keepsOut: Bool {
        switch self {
        case .forbidden, .kicked: true
        default: false
        }
    }

    /// Whether the room takes its member, and not what that shows.
    var isAboutPresence: Bool {
        switch self {
        case .presenceTooLarge, .roomTooLarge, .tooDeep, .invalidValue: true
        default: false
        }
    }
}

extension RoomError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unknownCaller:
            "the server does not know its callers: it needs an AccessPolicy with identifiesCallers = true"
        case .invalidName:
            "a name is empty or longer than \(RoomLimits.longestName) bytes, or an attempt shorter than 16"
        case .notJoined: "this connection is not in the room; join it first"
        case .unknownToken: "no stay of the room has this token; join without one"
        case .notYours: "the stay belongs to somebody else"
        case .notSignedIn: "the stay belongs to somebody who is signed in; sign in first"
        case .alreadyJoined: "this connection has a stay of its own in the room; leave it first"
        case .roomClosed: "the room is just being taken away; try again"
        case .roomFull(let limit): "the room has \(limit) members already"
        case .tooManyRooms(let limit): "you are in \(limit) rooms already; leave one first"
        case .serverFull(let limit): "the server has \(limit) rooms already"
        case .roomTooLarge(let limit): "what the members of the room show has \(limit) bytes already"
        case .tooManySessions(let limit): "\(limit) stays of one user or host are in the room already"
        case .tooDeep(let limit): "arrays and objects may stand \(limit) deep in each other"
        case .invalidValue(let reason): "the value cannot be kept: \(reason)"
        case .forbidden: "the rules of the server do not allow it"
        case .kicked(let wait):
            "you were sent out of the room; you may join it again in \((max(0, wait) / 1_000) + 1) s"
        case .left: "this client has left its rooms; to join again, let go of the room's values and make them anew"
        case .presenceTooLarge(let bytes, let limit): "a presence of \(bytes) bytes is too large; \(limit) are allowed"
        case .payloadTooLarge(let bytes, let limit): "an event of \(bytes) bytes is too large; \(limit) are allowed"
        case .rateLimited(let wait): "too many in too short a time; try again in \(wait) ms"
        case .tooManyWaiting(let limit): "\(limit) events wait to be sent already"
        case .eventsMissed(let count): "\(count) events were missed"
        case .noBackend: "there is no backend: call TrebuchetBackend.use(_:), or make the value within its scope"
        }
    }
}
