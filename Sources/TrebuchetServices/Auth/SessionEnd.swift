// trebuchet: as declared
/// Why a session has ended that its client has not ended itself.
public enum SessionEnd: String, Codable, Sendable, Hashable, CaseIterable {
    /// Somebody signed out who has the same session, or ended it from another one of the account's.
    case elsewhere
    /// Its client signed in anew.
    case replaced
    /// The account has more sessions than it may, and this was the oldest.
    case tooMany
    /// A refresh token was used again: somebody else may have had it.
    case tokenReused
    /// It was not renewed for too long.
    case expired
    /// The account was deleted.
    case accountDeleted
    /// Somebody who looks after the server ended it.
    case administrator
    /// The server does not know, or not any more.
    case unknown

    /// One that this version does not know is `unknown`.
    public init(from decoder: any Decoder) throws {
        self = Self(rawValue: try decoder.singleValueContainer().decode(String.self)) ?? .unknown
    }
}

extension SessionEnd: CustomStringConvertible {
    public var description: String {
        switch self {
        case .elsewhere: "it was ended from elsewhere"
        case .replaced: "its client has signed in anew"
        case .tooMany: "the account has newer sessions, as many as it may"
        case .tokenReused: "a token of it was used twice, so somebody else may have it"
        case .expired: "it was not used for too long"
        case .accountDeleted: "the account was deleted"
        case .administrator: "an administrator has ended it"
        case .unknown: "the server does not know it"
        }
    }
}
