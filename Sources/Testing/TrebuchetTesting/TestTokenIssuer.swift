internal import Bytes
internal import Glibc
internal import Networking
internal import Synchronization
public import Trebuchet

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// An issuer of JSON Web Tokens for tests: it signs tokens, and an HTTP server at a free port of 127.0.0.1 publishes its keys.
///
///     let issuer = try TestTokenIssuer()
///     let issuers = try TokenIssuers([TokenIssuer(issuer.url, audience: "todos")])
///     let principal = try await issuers.verify(issuer.token(for: "ada", audience: "todos"))
///     issuer.rotate()
///     await issuers.refreshKeys()                     // without it, `issuers` fetches keys at most every 30 s
///
/// Usable from any isolation. It closes itself at its release.
public final class TestTokenIssuer: Sendable {
    private let algorithm: JSONWebTokenAlgorithm
    private let site = Site()
    private let listener: Listener

    /// Creates an issuer with one key.
    ///
    /// - Parameters:
    ///   - algorithm: the algorithm of its keys. Default: ES256.
    ///   - maxAge: the time of `Cache-Control: max-age` in the response with its keys. Default nil: the response has none.
    /// - Throws: `TransportError` when it cannot listen.
    public init(_ algorithm: JSONWebTokenAlgorithm = .es256, maxAge: Duration? = nil) throws(TransportError) {
        self.algorithm = algorithm
        let site = site
        listener = try Listener.bind(
            host: "127.0.0.1", port: 0, reactors: ReactorGroup.servers(count: 1).reactors
        ) { channel in try? channel.start(Exchange(site)) }
        let url = "http://127.0.0.1:\(listener.address.port)"
        site.state.withLock { state in
            state.url = url
            state.cacheControl = maxAge.map { "Cache-Control: max-age=\(Int64($0 / .seconds(1)))\r\n" } ?? ""
        }
        rotate()
    }

    deinit {
        let listener = listener
        Task { await listener.close() }
    }

    /// The `iss` of its tokens. Its discovery document is at `/.well-known/openid-configuration` below this URL.
    public var url: String { site.state.withLock { $0.url } }

    /// The URL of its key set.
    public var keySetURL: String { url + Site.keySetPath }

    /// A Boolean value that indicates whether the issuer ends connections without a response. Default false.
    public var isDown: Bool {
        get { site.state.withLock { $0.isDown } }
        set { site.state.withLock { $0.isDown = newValue } }
    }

    /// The number of requests that it has received, also while it is down. A fetch of its keys is one request with ``keySetURL``, and
    /// two with discovery.
    public var requestCount: Int { site.state.withLock { $0.requestCount } }

    /// Creates another key, which signs further tokens.
    ///
    /// - Parameter withdrawingOldKeys: whether the previous keys are removed from the key set, so that their tokens become invalid.
    ///   Default false.
    public func rotate(withdrawingOldKeys: Bool = false) {
        let number = site.state.withLock { state in
            state.keyCount += 1
            return state.keyCount
        }
        let key = TestSigningKey("key-\(number)", algorithm.testKind)
        site.state.withLock { state in
            if withdrawingOldKeys { state.keys = [] }
            state.keys.append(key)
        }
    }

    /// Returns a token that is signed with the newest key.
    ///
    /// - Parameters:
    ///   - subject: the `sub`, the id of a principal.
    ///   - audience: the `aud`.
    ///   - roles: the roles of the principal. Default: none.
    ///   - claims: further claims. They replace others of the same name. Default: none.
    ///   - lifetime: the time until its `exp`; negative for an expired token. Default: one hour.
    public func token(
        for subject: String, audience: String, roles: [String] = [], claims: [String: String] = [:],
        expiresIn lifetime: Duration = .seconds(3_600)
    ) -> String {
        let content = Claims(
            issuer: url, subject: subject, audience: audience, roles: roles,
            expiry: Int64(time(nil)) + Int64(lifetime / .seconds(1)), others: claims)
        guard let json = try? JSONEncoder().encode(content) else { fatalError("claims cannot be encoded") }
        return key.token(String(decoding: json, as: UTF8.self))
    }

    /// Ends its server.
    public func close() async { await listener.close() }

    /// The newest key.
    package var key: TestSigningKey { site.state.withLock { $0.keys[$0.keys.count - 1] } }

    /// A Boolean value that indicates whether the issuer withholds its responses until the value is false.
    package var isHeld: Bool {
        get { site.state.withLock { $0.isHeld } }
        set {
            let held = site.state.withLock { state -> [@Sendable () -> Void] in
                state.isHeld = newValue
                defer { if !newValue { state.held = [] } }
                return newValue ? [] : state.held
            }
            for respond in held { respond() }
        }
    }

    /// Replaces the whole response to a path, by default that of the key set; nil restores the usual one.
    package func setResponse(_ response: String?, at path: String? = nil) {
        site.state.withLock { $0.responses[path ?? Site.keySetPath] = response }
    }

    /// Replaces the body of the response to a path.
    package func publish(_ body: String, at path: String) { setResponse(Site.response(body), at: path) }

    /// Publishes a key set in the place of its keys.
    ///
    /// - Parameters:
    ///   - keys: the elements of the key set in JSON.
    ///   - fields: header fields of the response, each with CR LF.
    package func publish(_ keys: [String], fields: String = "") {
        setResponse(Site.response(#"{"keys":[\#(keys.joined(separator: ","))]}"#, fields: fields))
    }

    /// The claims of a token.
    private struct Claims: Encodable {
        let issuer: String
        let subject: String
        let audience: String
        let roles: [String]
        let expiry: Int64
        let others: [String: String]

        /// A coding key of any name.
        private struct Name: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }
            init(_ name: String) { stringValue = name }
            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }

        func encode(to encoder: any Encoder) throws {
            var members = encoder.container(keyedBy: Name.self)
            try members.encode(issuer, forKey: Name("iss"))
            try members.encode(subject, forKey: Name("sub"))
            try members.encode(audience, forKey: Name("aud"))
            try members.encode(expiry, forKey: Name("exp"))
            if !roles.isEmpty { try members.encode(roles, forKey: Name("roles")) }
            for (name, value) in others { try members.encode(value, forKey: Name(name)) }
        }
    }
}

extension JSONWebTokenAlgorithm {
    fileprivate var testKind: TestSigningKey.Kind {
        switch self {
        case .rs256: .rsa(bits: 2_048)
        case .es256: .ec
        case .edDSA: .ed25519
        }
    }
}

/// The published documents of an issuer.
private final class Site: Sendable {
    static let keySetPath = "/keys"

    struct State {
        var url = ""
        var cacheControl = ""
        /// The keys of the key set; the last one is the newest.
        var keys: [TestSigningKey] = []
        var keyCount = 0
        var requestCount = 0
        var isDown = false
        var isHeld = false
        var held: [@Sendable () -> Void] = []
        /// Responses that replace the usual ones, by path.
        var responses: [String: String] = [:]
    }

    let state = Mutex(State())

    static func response(_ body: String, fields: String = "") -> String {
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\(fields)\r\n\(body)"
    }

    /// Returns the response to a path; nil while the issuer is down.
    private func response(at path: String) -> String? {
        state.withLock { state -> String? in
            if state.isDown { return nil }
            if let response = state.responses[path] { return response }
            switch path {
            case Self.keySetPath:
                let keys = state.keys.map(\.json).joined(separator: ",")
                return Self.response(#"{"keys":[\#(keys)]}"#, fields: state.cacheControl)
            case "/.well-known/openid-configuration":
                return Self.response(#"{"issuer":"\#(state.url)","jwks_uri":"\#(state.url)\#(Self.keySetPath)"}"#)
            default: return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
            }
        }
    }

    func respond(to path: String, on channel: ByteChannel) {
        let respond: @Sendable () -> Void = { [self] in
            let response = response(at: path)
            channel.reactor.execute {
                guard let response else { return channel.close() }
                channel.write { (buffer: inout ByteBuffer) in buffer.append(utf8: response) }
                channel.closeAfterFlush()
            }
        }
        let isHeld = state.withLock { state in
            state.requestCount += 1
            if state.isHeld { state.held.append(respond) }
            return state.isHeld
        }
        if !isHeld { respond() }
    }
}

/// A connection, on its reactor.
private final class Exchange: ByteChannelDelegate {
    private let site: Site
    private var text = ""

    init(_ site: Site) { self.site = site }

    func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
        text += String(decoding: bytes, as: UTF8.self)
        guard text.hasSuffix("\r\n\r\n") else { return }
        site.respond(to: text.split(separator: " ").dropFirst().first.map(String.init) ?? "", on: channel)
    }

    func channelDidBecomeWritable(_ channel: ByteChannel) {}
    func channelDidClose(_ channel: ByteChannel, error: TransportError?) {}
}
