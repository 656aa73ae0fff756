internal import Platform
internal import Outbound

/// Who signs ID tokens that sign somebody in here (OpenID Connect Core 1.0).
///
///     let accounts = try await Accounts(mailer: mailer, providers: [.google(clientID: "…"), .apple(clientID: "…")])
public struct OpenIDProvider: Sendable {
    /// Where the keys are that tokens are signed with: RS256 or ES256.
    public enum Keys: Sendable, Hashable {
        /// At the `jwks_uri` of `<issuer>/.well-known/openid-configuration` (OpenID Connect Discovery 1.0).
        case discovery
        /// At the URL of a key set (RFC 7517).
        case url(String)
    }

    /// Why a provider cannot be made.
    public struct Problem: Error, Sendable, Equatable, CustomStringConvertible {
        /// Which of its members is wrong, as `issuer`.
        public let member: String
        /// Why, in words for who wrote it.
        public let reason: String

        public var description: String { "\(member): \(reason)" }
    }

    /// What clients call it by.
    public let name: String
    /// The `iss` of its tokens, compared byte by byte.
    public let issuer: String
    /// Other texts that stand for the issuer in its tokens. Default none.
    public var otherIssuers: Set<String> = []
    /// Ids of one's own apps at the provider: a token must be made for one of them.
    public let audiences: Set<String>
    /// Whether an address that the provider has verified leads to the account that has it already, and is that of a new one.
    /// Then the provider can say that somebody is any of one's users: set it to false for one whose word on addresses does not
    /// count as much; its accounts have no address until they verify one. Default true.
    public var linksAddresses = true
    /// How far clocks may differ. Default 60 seconds.
    public var leeway = Duration.seconds(60)
    let source: KeySource

    enum KeySource: Sendable {
        case discovery(HTTPAddress)
        case keys(HTTPAddress)
    }

    /// - Parameters:
    ///   - name: what clients call it by. Default: the issuer.
    ///   - issuer: the `iss` of its tokens.
    ///   - audience: the `aud` of tokens for one's own app: its client id.
    ///   - keys: where its keys are. Default: discovery. `https`, or `http` at this machine itself.
    public init(
        name: String? = nil, issuer: String, audience: String, keys: Keys = .discovery
    ) throws(Problem) {
        try self.init(name: name, issuer: issuer, audiences: [audience], keys: keys)
    }

    /// The same for several apps.
    public init(
        name: String? = nil, issuer: String, audiences: Set<String>, keys: Keys = .discovery
    ) throws(Problem) {
        guard !issuer.isEmpty else { throw Problem(member: "issuer", reason: "it is empty") }
        guard !audiences.isEmpty, !audiences.contains("") else {
            throw Problem(member: "audience", reason: "it is empty")
        }
        self.name = name ?? issuer
        guard !self.name.isEmpty, self.name.utf8.count <= 128 else {
            throw Problem(member: "name", reason: "it has none, or more than 128 bytes")
        }
        self.issuer = issuer
        self.audiences = audiences
        switch keys {
        case .discovery:
            let base = issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer
            source = .discovery(try Self.address(base + "/.well-known/openid-configuration", "issuer"))
        case .url(let url): source = .keys(try Self.address(url, "keys"))
        }
    }

    private static func address(_ url: String, _ member: String) throws(Problem) -> HTTPAddress {
        do throws(FetchError) { return try HTTPAddress(url) } catch {
            throw Problem(member: member, reason: error.description)
        }
    }

    /// Google, called `google`.
    ///
    /// - Parameter clientID: of one's own app there, as `….apps.googleusercontent.com`.
    public static func google(clientID: String) -> OpenIDProvider {
        var google = preset(
            "google", "https://accounts.google.com", clientID, "https://www.googleapis.com/oauth2/v3/certs")
        google.otherIssuers = ["accounts.google.com"]
        return google
    }

    /// Apple, called `apple`.
    ///
    /// - Parameter clientID: of one's own app there: its bundle id, or the id of a service.
    public static func apple(clientID: String) -> OpenIDProvider {
        preset("apple", "https://appleid.apple.com", clientID, "https://appleid.apple.com/auth/keys")
    }

    private static func preset(_ name: String, _ issuer: String, _ clientID: String, _ keys: String) -> OpenIDProvider {
        do {
            return try OpenIDProvider(name: name, issuer: issuer, audience: clientID, keys: .url(keys))
        } catch {
            preconditionFailure("\(name): \(error)")
        }
    }

    func isIssuer(_ text: String) -> Bool {
        text.isSameBytes(as: issuer) || otherIssuers.contains { $0.isSameBytes(as: text) }
    }

    func isAudience(_ text: String) -> Bool { audiences.contains { $0.isSameBytes(as: text) } }
}
