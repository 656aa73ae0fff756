#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// One session of an account, as shown to its user.
public struct SessionInfo: Codable, Sendable, Hashable, Identifiable {
    /// The maximum length of a label in bytes.
    public static let maximumLabelLength = 64

    /// The identifier of the session. It is no secret: only the account's user can end the session with it.
    public let id: String
    /// The time of the sign-in; nil when the server does not know it.
    public let created: Date?
    /// The time of the last renewal. A client renews every 12 minutes while it is connected, and when it connects.
    public let lastRenewed: Date
    /// True for the caller's session.
    public let isCurrent: Bool
    /// The client's name for its device, if it has set one.
    public let label: String?

    package init(id: String, created: Date?, lastRenewed: Date, isCurrent: Bool, label: String?) {
        self.id = id
        self.created = created
        self.lastRenewed = lastRenewed
        self.isCurrent = isCurrent
        self.label = label
    }
}

/// The response to a sign-in and to each renewal of a session.
public struct SessionGrant: Codable, Sendable, Equatable {
    /// The user that is signed in.
    public var user: User
    /// The token that renews the session once, with `refresh`. It authenticates the user, so it must be kept secret.
    public var refreshToken: String
    /// The token that authenticates new connections.
    public var accessToken: String
    /// The lifetime of the access token in seconds.
    public var accessSeconds: Int

    package init(user: User, refreshToken: String, accessToken: String, accessSeconds: Int) {
        self.user = user
        self.refreshToken = refreshToken
        self.accessToken = accessToken
        self.accessSeconds = accessSeconds
    }
}

/// The response to the request for a magic code, the same for every address.
public struct SendMagicCodeResponse: Codable, Sendable, Hashable {
    /// The lifetime of the code in seconds.
    public var validSeconds: Int

    /// - Parameter validSeconds: the lifetime of the code in seconds.
    public init(validSeconds: Int) { self.validSeconds = validSeconds }
}
