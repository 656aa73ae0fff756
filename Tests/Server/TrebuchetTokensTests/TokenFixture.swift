import Synchronization
import TestSupport
import Trebuchet
import TrebuchetTesting
import TrebuchetTokens

/// A clock that advances only when a test advances it.
final class ManualTime: Sendable {
    private let milliseconds = Mutex<Int64>(1_000_000)

    var now: Int64 { milliseconds.withLock { $0 } }
    func advance(by seconds: Int64) { milliseconds.withLock { $0 += seconds * 1_000 } }
}

/// A verifier of the tokens of some issuers on this machine. Tokens have the audience `app` and expire at 1,800,000,100; it is 1,800,000,000.
struct TokenFixture: Sendable {
    let issuer: TestTokenIssuer
    let issuers: TokenIssuers
    let time = ManualTime()
    /// The lines of the log.
    let lines = Journal()

    /// Creates an issuer, found by the URL of its key set, or by discovery.
    init(
        _ algorithm: JSONWebTokenAlgorithm = .es256, maxAge: Duration? = nil, discovery: Bool = false,
        _ change: (inout TokenIssuer) -> Void = { _ in }
    ) throws {
        let issuer = try TestTokenIssuer(algorithm, maxAge: maxAge)
        var settings = try TokenIssuer(
            issuer.url, audience: "app", keys: discovery ? .discovery : .keySetURL(issuer.keySetURL))
        change(&settings)
        try self.init(issuer, [settings])
    }

    /// - Parameter issuer: the issuer whose tokens `token` returns.
    init(_ issuer: TestTokenIssuer, _ settings: [TokenIssuer]) throws {
        self.issuer = issuer
        let (time, lines) = (time, lines)
        issuers = try TokenIssuers(
            settings, log: ConsoleLog { lines.record($0) }, now: { 1_800_000_000 }, uptime: { time.now })
    }

    func close() async { await issuer.close() }

    /// The claims of a token.
    ///
    /// - Parameter more: further members, with a comma before each.
    func claims(_ subject: String = "ada", _ more: String = "", issuer: String? = nil) -> String {
        #"{"iss":"\#(issuer ?? self.issuer.url)","sub":"\#(subject)","aud":"app","exp":1800000100\#(more)}"#
    }

    /// A token that is signed with a key, by default the newest one of the issuer.
    func token(_ subject: String = "ada", _ more: String = "", key: TestSigningKey? = nil) -> String {
        (key ?? issuer.key).token(claims(subject, more))
    }

    /// The id of the principal, or the reason of the rejection.
    func outcome(_ token: String) async -> String {
        do {
            return try await issuers.verify(token).id
        } catch AccessDenied.unauthenticated(let reason) {
            return String(reason.dropFirst("the token was not accepted: ".count))
        } catch let error as TrebuchetError {
            return "\(error.code)\(error.retryAfter.map { ", retry after \($0)" } ?? "")"
        } catch {
            return "\(error)"
        }
    }
}
