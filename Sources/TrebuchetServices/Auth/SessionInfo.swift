#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// One session of an account, as its user sees it.
public struct SessionInfo: Codable, Sendable, Hashable, Identifiable {
    /// What a label may be, in bytes.
    public static let longestLabel = 64

    /// No secret: it ends the session when the account's own user gives it, and is of no use to others.
    public let id: String
    /// When somebody signed in; nil when the server does not know.
    public let created: Date?
    /// When it was last renewed: a client does that every 12 minutes while it is connected, and when it connects.
    public let lastRenewed: Date
    /// Whether it is the one of the caller.
    public let isCurrent: Bool
    /// What its client calls its device, if it does.
    public let label: String?
}

/// What a client gets when it signs in, and each time that it renews its session.
public struct SessionGrant: Codable, Sendable, Equatable {
    /// Who is signed in by it.
    public var user: User
    /// Renews the session once, for `refresh`; who has it is the user.
    public var refreshToken: String
    /// What new connections are made with.
    public var accessToken: String
    /// How long the access token is good for, in seconds.
    public var accessSeconds: Int
}

/// The server's answer when it was asked for a magic code: the same for every address.
public struct SendMagicCodeResponse: Codable, Sendable, Hashable {
    /// How long the code is good for, in seconds.
    public var validSeconds: Int

    /// - Parameter validSeconds: how long the code is good for, in seconds.
    public init(validSeconds: Int) { self.validSeconds = validSeconds }
}
