internal import Platform
internal import Transfers
internal import Transports
internal import TrebuchetTokens

/// An issuer of ID tokens with which users can sign in (OpenID Connect Core 1.0).
///
///     let accounts = try await Accounts(mailer: mailer, providers: [.google(clientID: "…"), .apple(clientID: "…")])
public struct OpenIDProvider: Sendable {
    /// The source of the keys that verify tokens: RS256 or ES256.
    public enum Keys: Sendable, Hashable {
        /// The `jwks_uri` of `<issuer>/.well-known/openid-configuration` (OpenID Connect Discovery 1.0).
        case discovery
        /// The URL of a key set (RFC 7517).
        case url(String)
    }

    /// The reason why a provider cannot be created.
    public struct Problem: Error, Sendable, Equatable, CustomStringConvertible {
        /// The invalid member, as `issuer`.
        public let member: String
        /// The reason, for the author of the configuration.
        public let reason: String

        public var description: String { "\(member): \(reason)" }
    }

    /// The name by which clients select the provider.
    public let name: String
    /// The `iss` of its tokens, compared byte by byte.
    public let issuer: String
    /// Other values of `iss` that the provider's tokens may have. Default none.
    public var otherIssuers: Set<String> = []
    /// The ids of the app at the provider: a token must be issued for one of them.
    public let audiences: Set<String>
    /// True when an address that the provider has verified finds the account that already has it, and becomes the address of a
    /// new account. Such a provider can sign in as any user. Set it to false for a provider that is not trusted for addresses;
    /// its accounts have no address until they verify one. Default true.
    public var linksAccountsByEmail = true
    /// The tolerated clock difference. Default 60 seconds.
    public var leeway = Duration.seconds(60)
    let source: KeySource

    /// - Parameters:
    ///   - name: the name by which clients select the provider. Default: the issuer.
    ///   - issuer: the `iss` of its tokens.
    ///   - audience: the `aud` of tokens for the app: its client id.
    ///   - keys: the source of its keys. Default: discovery. The URL must be `https`, or `http` to the local machine.
    public init(
        name: String? = nil, issuer: String, audience: String, keys: Keys = .discovery
    ) throws(Problem) {
        try self.init(name: name, issuer: issuer, audiences: [audience], keys: keys)
    }

    /// Creates a provider with several client ids.
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
        do throws(TransportError) {
            source =
                switch keys {
                case .discovery: try .wellKnown(at: issuer)
                case .url(let url): .keySet(try HTTPEndpoint(url))
                }
        } catch {
            throw Problem(member: keys == .discovery ? "issuer" : "keys", reason: error.message)
        }
    }

    /// Returns the provider Google, with the name `google`.
    ///
    /// - Parameter clientID: the client id of the app, as `….apps.googleusercontent.com`.
    public static func google(clientID: String) -> OpenIDProvider {
        var google = preset(
            "google", "https://accounts.google.com", clientID, "https://www.googleapis.com/oauth2/v3/certs")
        google.otherIssuers = ["accounts.google.com"]
        return google
    }

    /// Returns the provider Apple, with the name `apple`.
    ///
    /// - Parameter clientID: the bundle id of the app, or the id of a service.
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
