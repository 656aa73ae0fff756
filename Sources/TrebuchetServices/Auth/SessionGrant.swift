/// What a client gets when it signs in, and each time that it renews its session.
public struct SessionGrant: Codable, Sendable, Equatable {
    public var user: User
    /// Renews the session once, for `refresh`; who has it is the user.
    public var refreshToken: String
    /// What new connections are made with.
    public var accessToken: String
    /// How long the access token is good for, in seconds.
    public var accessSeconds: Int
}
