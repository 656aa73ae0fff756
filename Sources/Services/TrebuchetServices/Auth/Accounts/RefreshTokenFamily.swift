internal import Trebuchet

/// The persisted form of a session, with the digests of its last two refresh tokens. Pure: times are milliseconds.
///
/// Each token works once. The previous token may be repeated for a while as long as the newest is unused, because its client
/// may have lost the response. Any other token with the session's handle is an old one or a forgery by a party that had one, so
/// the session must end.
struct RefreshTokenFamily: Codable, Equatable {
    enum Use: Equatable {
        /// The token was the newest; now its successor is.
        case renewed
        /// The token was the previous one; its successor is still the newest.
        case repeated
        case expired
        /// The session must end.
        case reused
    }

    let account: String
    /// The time of the sign-in; nil in records from before it was stored.
    let created: Int64?
    /// The client's name for its device.
    var label: String?
    private(set) var current: [UInt8]
    private(set) var previous: [UInt8]?
    private(set) var renewedAt: Int64
    private(set) var expiry: Int64

    init(account: String, token: [UInt8], label: String? = nil, at now: Int64, lifetime: Int64) {
        self.account = account
        self.label = label
        created = now
        current = token
        renewedAt = now
        expiry = now + lifetime
    }

    /// - Parameters:
    ///   - token: the digest of the token that the client sent.
    ///   - successor: the digest of the token's successor.
    mutating func rotate(
        _ token: [UInt8], successor: [UInt8], at now: Int64, lifetime: Int64, repeatWindow: Int64
    ) -> Use {
        guard now < expiry else { return .expired }
        if Digest.areEqual(token, current) {
            previous = current
            current = successor
            renewedAt = now
            expiry = now + lifetime
            return .renewed
        }
        guard let previous, Digest.areEqual(token, previous), now - renewedAt < repeatWindow else { return .reused }
        return .repeated
    }
}
