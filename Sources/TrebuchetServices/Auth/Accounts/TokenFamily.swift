internal import Trebuchet

/// A session as it is kept: of its refresh tokens it has the digests of the last two. Pure: times are milliseconds.
///
/// Each token is good once. The one before the last may be repeated for a while as long as the last has not been used: its
/// client may have lost the answer. Whatever else comes under the session's name is a token of old or a forgery by
/// somebody who had one, so that the session is not safe any more.
struct TokenFamily: Codable, Equatable {
    enum Use: Equatable {
        /// The token was the last one; now its successor is.
        case renewed
        /// The token was the one before; its successor is still the last one.
        case repeated
        case expired
        /// The session must end.
        case reused
    }

    let account: String
    /// When somebody signed in; nil in records of before it was kept.
    let created: Int64?
    /// What the client calls its device.
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
    ///   - token: the digest of the token that was shown.
    ///   - successor: the digest of the token that follows on it.
    mutating func use(
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
