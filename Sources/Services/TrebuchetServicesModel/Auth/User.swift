// trebuchet: as declared
/// A signed-in user.
public struct User: Codable, Sendable, Hashable, Identifiable {
    /// The identifier of the account. It never changes, even when a guest becomes a user with an address.
    public let id: String
    /// The address, verified by a magic code or by a provider; nil for a guest, and for a user whose provider sends none.
    public var email: String?
    /// True for a guest, an account that cannot be recovered without its session.
    public var isGuest: Bool
    /// The roles granted by an administrator, sorted by name, without `guest` and `user`; nil for none.
    public var roles: [String]?

    /// - Parameter isGuest: default: true without an address.
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
