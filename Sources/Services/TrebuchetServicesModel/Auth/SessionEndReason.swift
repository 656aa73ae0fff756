// trebuchet: as declared
/// The reason for a session end that the client did not cause.
public enum SessionEndReason: String, Codable, Sendable, Hashable, CaseIterable {
    /// Another client with the same session signed out, or another session of the account ended this one.
    case elsewhere
    /// The client signed in again.
    case replaced
    /// The account exceeded its number of sessions, and this was the oldest.
    case tooMany
    /// A refresh token was used a second time, so it may have been stolen.
    case tokenReused
    /// The session was not renewed in time.
    case expired
    /// The account was deleted.
    case accountDeleted
    /// An administrator ended the session.
    case administrator
    /// The server does not know the reason, or not any more.
    case unknown

    /// Decodes a reason; one that this version does not know becomes `unknown`.
    public init(from decoder: any Decoder) throws {
        self = Self(rawValue: try decoder.singleValueContainer().decode(String.self)) ?? .unknown
    }
}

extension SessionEndReason: CustomStringConvertible {
    public var description: String {
        switch self {
        case .elsewhere: "it was ended by another session"
        case .replaced: "its client has signed in again"
        case .tooMany: "it was replaced by newer sessions: the account reached its limit"
        case .tokenReused: "its refresh token was used twice, so another party may have it"
        case .expired: "it was unused for too long"
        case .accountDeleted: "the account was deleted"
        case .administrator: "an administrator ended it"
        case .unknown: "it is unknown to the server"
        }
    }
}
