internal import Platform
internal import Transfers
internal import Transports
public import Trebuchet

/// An issuer of JSON Web Tokens that publishes its keys, and the tokens of it that are accepted.
///
///     var work = try TokenIssuer("https://login.example.org", audience: "todos")
///     work.algorithms = [.rs256]
public struct TokenIssuer: Sendable {
    /// The place of an issuer's keys. URLs are `https`, or `http` to the local machine.
    public enum Keys: Sendable, Hashable {
        /// The `jwks_uri` of `<issuer>/.well-known/openid-configuration` (OpenID Connect Discovery 1.0).
        case discovery
        /// The `jwks_uri` of the document at a URL, such as one of RFC 8414. Its `issuer` must be that of the tokens.
        case discoveryURL(String)
        /// The URL of a key set (RFC 7517).
        case keySetURL(String)
    }

    /// The reason why an issuer cannot be used.
    public struct Problem: Error, Sendable, Equatable, CustomStringConvertible {
        /// The invalid member, such as `issuer`.
        public let member: String
        /// The reason, for the author of the configuration.
        public let reason: String

        public var description: String { "\(member): \(reason)" }
    }

    /// The `iss` of its tokens, compared byte by byte.
    public let issuer: String
    /// The accepted audiences: `aud` of a token must equal or contain one of them.
    public let audiences: Set<String>
    /// The accepted algorithms. Default: all.
    public var algorithms = Set(JSONWebTokenAlgorithm.allCases)
    /// The tolerated clock difference for `exp` and `nbf`. Default 30 s.
    public var leeway = Duration.seconds(30)
    /// The time after their expiry for which keys are used while they cannot be fetched. Default 24 h; at most 30 days are used.
    /// With zero, tokens are answered 503 as soon as the keys have expired.
    public var staleKeyTime = Duration.seconds(24 * 60 * 60)
    /// The text before `sub` in the id of a principal, such as `partner:`. Default nil: the id is `sub`.
    ///
    /// It separates the users of several issuers, of which at most one has none. Issuers with the same prefix share their users. A token
    /// whose `sub` gives an id with the prefix of another issuer is rejected.
    public var principalPrefix: String?
    let source: KeySource

    /// - Parameters:
    ///   - issuer: the `iss` of its tokens.
    ///   - audience: the `aud` of tokens for the app.
    ///   - keys: the place of its keys. Default: discovery.
    public init(_ issuer: String, audience: String, keys: Keys = .discovery) throws(Problem) {
        try self.init(issuer, audiences: [audience], keys: keys)
    }

    /// Creates an issuer whose tokens are accepted for several audiences.
    public init(_ issuer: String, audiences: Set<String>, keys: Keys = .discovery) throws(Problem) {
        guard !issuer.isEmpty else { throw Problem(member: "issuer", reason: "it is empty") }
        guard !audiences.isEmpty, !audiences.contains("") else {
            throw Problem(member: "audience", reason: "it is empty")
        }
        self.issuer = issuer
        self.audiences = audiences
        do throws(TransportError) {
            source =
                switch keys {
                case .discovery: try .wellKnown(at: issuer)
                case .discoveryURL(let url): .discovery(try HTTPEndpoint(url), issuer: issuer)
                case .keySetURL(let url): .keySet(try HTTPEndpoint(url))
                }
        } catch {
            throw Problem(member: keys == .discovery ? "issuer" : "keys", reason: error.message)
        }
    }
}
