internal import Bytes
internal import Platform
public import WebSockets

/// The rules that a server evaluates before each call and each stream.
struct AccessRules: Sendable {
    let mayCall: AccessPolicy.Authorize
    let keepsGrants: Bool

    /// Permit nothing.
    static let none = AccessRules(mayCall: { _, _, _ in false }, keepsGrants: false)
}

/// Why a client may not come in.
public enum AccessDenied: Error, Sendable, Equatable {
    /// No credentials, or wrong ones: answered 401. The text goes to the client, and stands in its `TransportError`.
    case unauthenticated(String)
    /// Known, and not allowed: answered 403.
    case forbidden(String)
}

/// Who may connect to a server, and what each caller may do there.
///
///     var access = AccessPolicy(origins: ["https://app.example"])
///     access.authenticate = AccessPolicy.apiKeys(["k3y": Principal(id: "ada", roles: ["editor"])])
///     access.authorize = { caller, actorID, target in
///         target.hasPrefix("observe") || caller?.principal?.roles.contains("editor") == true
///     }
public struct AccessPolicy: Sendable {
    /// Tells who sends a request; nil lets it in without a principal. `authenticate` says which errors it may throw.
    public typealias Authenticate = @Sendable (_ request: HTTPRequestHead) async throws -> Principal?
    /// Decides whether a caller may call a method of an actor, or observe a stream of it. `authorize` has the arguments.
    public typealias Authorize = @Sendable (_ caller: Caller?, _ actorID: String, _ target: String) -> Bool

    /// Where web pages may come from, as `https://app.example` or `http://localhost:3000`; those of others are answered
    /// 403, before anything else is looked at. `["*"]` (`anyOrigin`) lets in the pages of everybody.
    ///
    /// Nil, the default, lets in pages of the server's own host and port: `Origin` is what `Host` says, whatever the scheme.
    /// At a loopback address `Host` must be a name of this machine besides (`localhost`, `*.localhost`, 127.0.0.0/8, `[::1]`),
    /// so that nobody's name can be made to lead there. Behind a proxy on this machine, name the origins.
    /// Clients that are no browsers send no `Origin` and are let through.
    public var origins: Set<String>?
    /// Proxies that are believed when they say in `X-Forwarded-For` whose connection they hand on: addresses and ranges, as
    /// `127.0.0.1` or `10.0.0.0/8`. Behind one of them the client is the right-most address of that field that is no trusted
    /// proxy's: it has the limits and shares of a host, and is `Caller.remoteAddress`, with port 0. An entry on the way to it
    /// that is no address is answered 400; without the field the proxy is the client. Of all others the field is ignored.
    ///
    /// None by default. Each of them must add its client's address to the field or replace it: else clients write it. With
    /// `127.0.0.1` every program of this machine may say to be anybody. `start` throws `addressInvalid` for what is no range.
    public var trustedProxies: Set<String> = []
    /// Finds out who a client is from the head of its request, before it is connected. Throws `AccessDenied`, or a
    /// `TrebuchetError`: `unauthenticated` is answered 401, `unauthorized` 403, `rateLimited` and `unavailable` 503, with
    /// `Retry-After` where the error has a time; their texts go to the client. Any other error is answered 503 without its
    /// text, which goes to the server's log. Nil lets anybody in.
    public var authenticate: Authenticate?

    /// Decides each call and each stream, of every connection from the first one on. Nil, the default, permits all.
    ///
    /// The arguments are the caller, the name of the actor, and the readable name of the method or stream (`addTodo(title:)`,
    /// `observeState`). The caller is nil where the policy identifies no callers. A `false` is answered `unauthorized`, or
    /// `unauthenticated` to a caller without a principal. The closure runs on reactors and must not block. Calls of the server's own
    /// actors (`Caller.isServer`) are not decided by it. Helpers of services, such as results of queries, need the permission for their owner.
    /// The log has a line for each pair of an actor and a method that is refused, once an hour.
    ///
    /// `TrebuchetServer.replaceRules` replaces it while the server runs.
    public var authorize: Authorize?

    /// Whether a `true` of `authorize` is kept for its connection, actor and target. Default false.
    ///
    /// It is kept until `TrebuchetServer.rulesDidChange()` or `replaceRules`, or until `CallerConnection.principal` is set; the last 16 of
    /// a connection are. For rules that take long and depend on nothing else than their arguments. A `false` is never kept.
    public var keepsGrants = false

    /// Tells methods who calls them (`Caller.current`) also where anybody may come in. Default false: then it costs nothing.
    public var identifiesCallers = false

    /// Told of each connection that was let in, before its first call; `onClose` tells of its end. It runs on the
    /// connection's reactor and must not block.
    public var onConnect: (@Sendable (CallerConnection) -> Void)?

    /// Why accounts that several nodes share cannot be used any more, for readiness; nil where there are none such.
    package var accountsProblem: (@Sendable () -> String?)?

    /// Admits every client but web pages of other origins, and permits every call, unless the arguments restrict that.
    public init(
        origins: Set<String>? = nil, authenticate: Authenticate? = nil, authorize: Authorize? = nil
    ) {
        self.origins = origins
        self.authenticate = authenticate
        self.authorize = authorize
    }

    /// For `origins`: web pages may come from anywhere. Then each page that a user of this network looks at can use the
    /// server, with his cookies and certificates.
    public static let anyOrigin: Set<String> = ["*"]

    /// Anybody may come; web pages as `origins` says.
    public static var open: AccessPolicy { AccessPolicy() }

    /// The rules of `authorize`; nil without any.
    var rules: AccessRules? { authorize.map { AccessRules(mayCall: $0, keepsGrants: keepsGrants) } }

    /// Whether a connection needs no `Caller`. Rules alone need none.
    var isOpen: Bool { authenticate == nil && !identifiesCallers && onConnect == nil }

    /// The answer to a request, or who is behind it.
    ///
    /// - Parameter failures: told of errors that are not the client's to know.
    func admit(_ upgrade: WebSocketUpgrade, _ failures: RefusalLog) async -> WebSocketUpgrade.Admission {
        do {
            return .admitted(try await caller(upgrade.request, from: upgrade.remoteAddress))
        } catch {
            return .rejected(Self.refusal(error, failures).response)
        }
    }

    /// How a client is refused because of what `authenticate` threw.
    static func refusal(_ error: any Error, _ failures: RefusalLog) -> (response: HTTPResponse, reason: String) {
        func answer(_ status: Int, _ reason: String) -> (response: HTTPResponse, reason: String) {
            var response = HTTPResponse(status: status, text: reason)
            if status == 401 { response.headers.add("WWW-Authenticate", "Bearer") }
            return (response, reason)
        }
        if let denied = error as? AccessDenied {
            switch denied {
            case .unauthenticated(let reason): return answer(401, reason)
            case .forbidden(let reason): return answer(403, reason)
            }
        }
        if let error = error as? TrebuchetError {
            switch error.code {
            case .unauthenticated: return answer(401, error.message)
            case .unauthorized: return answer(403, error.message)
            case .rateLimited, .unavailable:
                var refusal = answer(503, error.message)
                if let wait = error.retryAfter {
                    refusal.response.headers.add("Retry-After", "\((max(0, wait.milliseconds) + 999) / 1_000)")
                }
                return refusal
            default: break
            }
        }
        failures.note("authenticate threw \(String(reflecting: type(of: error))): \("\(error)".prefix(bytes: 4_000))")
        return answer(503, "who you are cannot be found out now; the server's log has the reason")
    }

    /// Who is behind a request; throws what `authenticate` does.
    func caller(_ request: HTTPRequestHead, from address: SocketAddress?) async throws -> Caller {
        let principal = try await authenticate?(request)
        return Caller(connection: CallerConnection(principal: principal, remoteAddress: address))
    }
}

extension HTTPRequestHead {
    /// The token of `Authorization: Bearer …`; from browsers, which cannot send that with a WebSocket, the subprotocol
    /// `bearer.…` that is offered beside `trebuchet.v3`.
    public var bearerToken: String? {
        if let field = headers["Authorization"] {
            let parts = field.split(separator: " ", omittingEmptySubsequences: true)
            return parts.count == 2 && parts[0].lowercased() == "bearer" ? String(parts[1]) : nil
        }
        let prefix = "bearer."
        return headers.list("Sec-WebSocket-Protocol").first { $0.hasPrefix(prefix) }.map {
            String($0.dropFirst(prefix.count))
        }
    }

    /// The value of a cookie (RFC 6265 §4.2).
    public func cookie(_ name: String) -> String? {
        for field in headers.values("Cookie") {
            for pair in field.split(separator: ";") {
                let text = pair.drop { $0 == " " }
                guard let equals = text.firstIndex(of: "="), text[..<equals] == name else { continue }
                return String(text[text.index(after: equals)...])
            }
        }
        return nil
    }
}
