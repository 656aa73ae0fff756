internal import Trebuchet

/// A refresh token: a name under which its session is found, and what proves that it is the last one.
///
/// The name is secret too: only who had a token of the session can send another one, right or wrong, under it. The server
/// keeps digests of both. A token's successor is derived from it, with a key of the server, so that a repeated request
/// gets the answer that was lost.
struct RefreshToken: Equatable {
    private static let handleCount = 16
    private static let secretCount = 32

    private let handle: [UInt8]
    private let secret: [UInt8]

    private init(handle: [UInt8], secret: [UInt8]) {
        self.handle = handle
        self.secret = secret
    }

    /// The first token of a new session.
    static func random() -> RefreshToken {
        while true {
            let token = RefreshToken(handle: .random(count: handleCount), secret: .random(count: secretCount))
            // Commands take what begins with a dash for an option.
            if !token.session.hasPrefix("-") { return token }
        }
    }

    /// Nil for what is no token.
    init?(_ text: String) {
        guard text.utf8.count <= 128 else { return nil }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let handle = Base64URL.decode(parts[0]), let secret = Base64URL.decode(parts[1]),
            handle.count == Self.handleCount, secret.count == Self.secretCount
        else { return nil }
        self.init(handle: handle, secret: secret)
    }

    var text: String { Base64URL.encode(handle) + "." + Base64URL.encode(secret) }

    /// The name of the session as others may know it.
    var session: String { Base64URL.encode(Array(Digest.sha256(handle).prefix(16))) }
    var digest: [UInt8] { Digest.sha256(secret) }

    func successor(key: [UInt8]) -> RefreshToken {
        RefreshToken(handle: handle, secret: Digest.hmacSHA256(handle + secret, key: key))
    }
}

extension [UInt8] {
    /// Bytes that nobody can foresee.
    static func random(count: Int) -> [UInt8] {
        // The system's generator: getrandom(2) on Linux.
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in .random(in: 0...255, using: &generator) }
    }
}

extension Duration {
    /// Whole milliseconds, rounded down.
    var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1000 + attoseconds / 1_000_000_000_000_000
    }
}
