// trebuchet: as declared
/// Somebody who is signed in.
public struct User: Codable, Sendable, Hashable, Identifiable {
    /// Stays the same for life, also when a guest becomes a user with an address.
    public let id: String
    /// The address that was verified, by a magic code or by a provider; nil for a guest, and for somebody whose provider
    /// tells none.
    public var email: String?
    /// Whether nobody could be this user again without the session.
    public var isGuest: Bool
    /// What an administrator has granted, beside `guest` or `user`, by name; nil for nothing.
    public var roles: [String]?

    /// - Parameter isGuest: default: whether there is no address.
    public init(id: String, email: String? = nil, isGuest: Bool? = nil, roles: [String]? = nil) {
        self.id = id
        self.email = email
        self.isGuest = isGuest ?? (email == nil)
        self.roles = roles
    }

    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            id: try members.decode(String.self, forKey: .id),
            email: try members.decodeIfPresent(String.self, forKey: .email),
            isGuest: try members.decodeIfPresent(Bool.self, forKey: .isGuest),
            roles: try members.decodeIfPresent([String].self, forKey: .roles))
    }
}
