internal import Trebuchet

/// A refresh token: a handle that identifies its session, and a secret that proves that the token is the newest one.
///
/// The handle is secret too: only a client that had a token of the session can send another under it. The server stores digests
/// of both. The successor of a token is derived from it with a key of the server, so that a repeated request gets the response
/// that was lost.
struct RefreshToken: Equatable {
    private static let handleCount = 16
    private static let secretCount = 32

    private let handle: [UInt8]
    private let secret: [UInt8]

    private init(handle: [UInt8], secret: [UInt8]) {
        self.handle = handle
        self.secret = secret
    }

    /// Returns the first token of a new session.
    static func random() -> RefreshToken {
        while true {
            let token = RefreshToken(handle: .random(count: handleCount), secret: .random(count: secretCount))
            // The name must not begin with a dash, because commands would parse it as an option.
            if !token.session.hasPrefix("-") { return token }
        }
    }

    /// Returns nil when the text is not a token.
    init?(_ text: String) {
        guard text.utf8.count <= 128 else { return nil }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let handle = Base64URL.decode(parts[0]), let secret = Base64URL.decode(parts[1]),
            handle.count == Self.handleCount, secret.count == Self.secretCount
        else { return nil }
        self.init(handle: handle, secret: secret)
    }

    var text: String { Base64URL.encode(handle) + "." + Base64URL.encode(secret) }

    /// The public name of the session.
    var session: String { Base64URL.encode(Array(Digest.sha256(handle).prefix(16))) }
    var digest: [UInt8] { Digest.sha256(secret) }

    func successor(key: [UInt8]) -> RefreshToken {
        RefreshToken(handle: handle, secret: Digest.hmacSHA256(handle + secret, key: key))
    }
}

extension [UInt8] {
    /// Returns unpredictable bytes.
    static func random(count: Int) -> [UInt8] {
        // The system's generator: getrandom(2) on Linux.
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in .random(in: 0...255, using: &generator) }
    }
}

extension Duration {
    /// The whole milliseconds, rounded down.
    var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1000 + attoseconds / 1_000_000_000_000_000
    }
}
