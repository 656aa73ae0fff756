internal import Platform
internal import TrebuchetActors

/// An error of a room operation.
public enum RoomError: Error, Codable, Sendable, Hashable {
    /// The server does not track callers' connections: it needs `access.identifiesCallers = true`.
    case unknownCaller
    /// The name of the room or topic is empty or too long, or the attempt secret of a join is too short.
    case invalidName
    /// The connection is not in the room, or another connection has resumed its membership.
    case notJoined
    /// No membership of the room has this token: it was never issued, or the membership has ended.
    case unknownToken
    /// The membership, or the call itself, belongs to a principal other than the one signed in over this connection.
    case notYours
    /// The membership belongs to a principal, and no principal is signed in over this connection, perhaps not yet.
    case notSignedIn
    /// The connection already has another membership in this room.
    case alreadyJoined
    /// The room is being deactivated; a room of the same name can be joined at once.
    case roomClosed
    /// The room has the maximum number of members.
    case roomFull(limit: Int)
    /// The connection, its principal or its host is in the maximum number of rooms.
    case tooManyRooms(limit: Int)
    /// The server has the maximum number of rooms.
    case serverFull(limit: Int)
    /// The presences of all members of the room together, of the principal or of the host have the maximum number of bytes.
    case roomTooLarge(limit: Int)
    /// The presences and stored events of the connection, its principal or its host have the maximum number of bytes.
    case clientTooLarge(limit: Int)
    /// The presences and stored events of all rooms, or the buffered memory of the server, have the maximum number of bytes.
    case serverTooLarge(limit: Int)
    /// The principal or the host has the maximum number of memberships in the room.
    case tooManySessions(limit: Int)
    /// A presence or an event nests arrays and objects too deeply.
    case tooDeep(limit: Int)
    /// A presence or an event is JSON that cannot be stored: a member name occurs twice, or a number is too large.
    case invalidValue(String)
    /// The rules do not authorize the operation.
    case forbidden
    /// An administrator has removed the caller from the room for a time; the value is the rest of that time.
    case kicked(retryAfterMilliseconds: Int)
    /// The presence has more bytes of JSON than `RoomLimits.presenceBytes`.
    case presenceTooLarge(bytes: Int, limit: Int)
    /// The event has more bytes of JSON than `RoomLimits.payloadBytes`.
    case payloadTooLarge(bytes: Int, limit: Int)
    /// The connection exceeds its rate of joins, presence updates or publishes, or the host its rate of activations.
    case rateLimited(retryAfterMilliseconds: Int)
    /// The maximum number of events already waits to be sent.
    case tooManyWaiting(limit: Int)
    /// The client has missed events that the server no longer stores.
    case eventsMissed(count: Int)
    /// The client has left its rooms, by `TrebuchetBackend.leaveAllRooms(timeout:)`.
    case left
    /// There is no `TrebuchetBackend` that the key could use.
    case noBackend
}

extension RoomError: NamedError {
    package static var wireName: String { "TrebuchetServices.RoomError" }
}

extension RoomError {
    /// True when the client must no longer see the members of the room.
    package var hidesMembers: Bool {
        switch self {
        case .forbidden, .kicked: true
        default: false
        }
    }

    /// True when the room accepts the member but not its presence.
    package var isAboutPresence: Bool {
        switch self {
        case .presenceTooLarge, .roomTooLarge, .clientTooLarge, .serverTooLarge, .tooDeep, .invalidValue: true
        default: false
        }
    }
}

extension RoomError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unknownCaller:
            "the server does not identify callers; set an AccessPolicy with identifiesCallers = true"
        case .invalidName:
            "names must have 1 to \(RoomLimits.maximumNameLength) bytes, and the identifier of an attempt at least 16"
        case .notJoined: "this connection is not in the room; join it first"
        case .unknownToken: "no membership of the room has this token; join without a token"
        case .notYours:
            "the membership or the call belongs to a user who is not signed in over this connection; join again"
        case .notSignedIn: "the membership belongs to a signed-in user; sign in first"
        case .alreadyJoined: "this connection already has a membership in the room; leave it first"
        case .roomClosed: "the room is being deactivated; try again"
        case .roomFull(let limit): "the room has reached its limit of \(limit) members"
        case .tooManyRooms(let limit): "you have reached the limit of \(limit) rooms; leave one first"
        case .serverFull(let limit): "the server has reached its limit of \(limit) rooms"
        case .roomTooLarge(let limit):
            "the presence of the members of the room, or of your user or host, has reached its limit of \(limit) bytes"
        case .clientTooLarge(let limit):
            "the limit of \(limit) bytes for the presences and events of a connection, user or host is reached"
        case .serverTooLarge(let limit):
            "the rooms of the server have reached their limit of \(limit) bytes; try again later"
        case .tooManySessions(let limit): "the limit of \(limit) memberships per user or host in the room is reached"
        case .tooDeep(let limit): "arrays and objects may be nested at most \(limit) deep"
        case .invalidValue(let reason): "the value cannot be stored: \(reason)"
        case .forbidden: "the rules of the server do not allow it"
        case .kicked(let wait):
            "you were removed from the room; you may join it again in \((max(0, wait) / 1_000) + 1) s"
        case .left: "this client has left its rooms; to join again, release the room's values and create new ones"
        case .presenceTooLarge(let bytes, let limit):
            "a presence of \(bytes) bytes is too large; at most \(limit) are allowed"
        case .payloadTooLarge(let bytes, let limit):
            "an event of \(bytes) bytes is too large; at most \(limit) are allowed"
        case .rateLimited(let wait): "rate limit exceeded; try again in \(wait) ms"
        case .tooManyWaiting(let limit): "the limit of \(limit) unsent events is reached"
        case .eventsMissed(let count): "missed \(count.counted("event"))"
        case .noBackend: "no backend is set; call TrebuchetBackend.use(_:), or create the value within its scope"
        }
    }
}
