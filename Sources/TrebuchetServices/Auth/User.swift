/// Somebody who is signed in.
public struct User: Codable, Sendable, Hashable, Identifiable {
    /// Stays the same for life, also when a guest becomes a user with an address.
    public let id: String
    /// The address that was verified by a magic code; nil for a guest.
    public var email: String?

    public init(id: String, email: String? = nil) {
        self.id = id
        self.email = email
    }

    public var isGuest: Bool { email == nil }
}
