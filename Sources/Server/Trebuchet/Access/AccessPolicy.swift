internal import Bytes
internal import Platform
public import WebSockets

/// The rules that a server evaluates before each call and each stream.
struct AccessRules: Sendable {
    let mayCall: AccessPolicy.Authorize
    let cachesGrants: Bool

    /// Rules that permit nothing.
    static let none = AccessRules(mayCall: { _, _, _ in false }, cachesGrants: false)
}

/// The reason why a client is rejected.
public enum AccessDenied: Error, Sendable, Equatable {
    /// Missing or invalid credentials: answered 401. The text is sent to the client and occurs in its `TransportError`.
    case unauthenticated(String)
    /// The client is identified but not permitted: answered 403.
    case forbidden(String)
}

/// The clients that may connect to a server, and the permissions of each caller.
///
///     var access = AccessPolicy(origins: ["https://app.example"])
///     access.authenticate = AccessPolicy.apiKeys(["k3y": Principal(id: "ada", roles: ["editor"])])
///     access.authorize = { caller, actorID, target in
///         target.hasPrefix("observe") || caller?.principal?.roles.contains("editor") == true
///     }
public struct AccessPolicy: Sendable {
    /// Returns the principal of a request; nil accepts the client without a principal. The errors that it may throw are listed
    /// at `authenticate`.
    public typealias Authenticate = @Sendable (_ request: HTTPRequestHead) async throws -> Principal?
    /// Decides whether a caller may call a method of an actor, or observe a stream of it. The arguments are described at
    /// `authorize`.
    public typealias Authorize = @Sendable (_ caller: Caller?, _ actorID: String, _ target: String) -> Bool

    /// The permitted origins of web pages, as `https://app.example` or `http://localhost:3000`. Requests of pages with other
    /// origins are answered 403 before any other check. `["*"]` (`anyOrigin`) permits all pages.
    ///
    /// Nil, the default, permits pages from the server's host and port: `Origin` must equal `Host`, whatever the scheme. At a
    /// loopback address `Host` must also be a name of this machine (`localhost`, `*.localhost`, 127.0.0.0/8, `[::1]`); this
    /// prevents DNS rebinding. Behind a proxy on this machine, list the origins. Clients other than browsers send no `Origin`
    /// and are accepted.
    public var origins: Set<String>?
    /// The proxies whose `X-Forwarded-For` is trusted: addresses and ranges, as `127.0.0.1` or `10.0.0.0/8`. Behind such a
    /// proxy the client is the right-most address of the field that is no trusted proxy. Its address counts for the limits and
    /// quotas of a host, and is `Caller.remoteAddress`, with port 0. If an entry that must be read is no address, the request
    /// is answered 400; without the field the proxy counts as the client. The field is ignored from all other peers.
    ///
    /// None by default. Each proxy must append its client's address to the field or replace the field, else clients control it.
    /// With `127.0.0.1` every program of this machine may claim any address. `start` throws `addressInvalid` for an invalid
    /// range.
    public var trustedProxies: Set<String> = []
    /// Identifies a client by the head of its request, before it is connected. Throws `AccessDenied`, or a `TrebuchetError`:
    /// `unauthenticated` is answered 401, `unauthorized` 403, `rateLimited` and `unavailable` 503, with `Retry-After` if the
    /// error has a time; their texts are sent to the client. Any other error is answered 503 without its text, which is written
    /// to the server log. Nil accepts every client.
    public var authenticate: Authenticate?

    /// Decides each call and each stream, of every connection from the first one on. Nil, the default, permits all.
    ///
    /// The arguments are the caller, the actor name, and the readable name of the method or stream (`addTodo(title:)`,
    /// `observeState`). The caller is nil where the policy identifies no callers. A `false` is answered `unauthorized`, or
    /// `unauthenticated` to a caller without a principal. The closure runs on reactors and must not block. Calls of the
    /// server's actors (`Caller.isServer`) are not subject to it. Helper actors of services, such as query results, need the
    /// permission for their owner. The log has a line for each rejected pair of an actor and a method, once an hour.
    ///
    /// `TrebuchetServer.replaceAuthorization` replaces it while the server runs.
    public var authorize: Authorize?

    /// Enables the authorization cache: a `true` of `authorize` is cached for its connection, actor and target. Default false.
    ///
    /// An entry is valid until `TrebuchetServer.invalidateAuthorizationCache()` or `replaceAuthorization`, or until
    /// `CallerConnection.principal` is set; each connection has the last 16. Suitable for a closure that is slow and depends only
    /// on its arguments. A `false` is never cached.
    ///
    /// With either value, a call that waits for its actor is decided once. When the actor moves between servers meanwhile, the
    /// call keeps its permission while the closure and the principal stay the same. The permission is valid for this one call.
    public var cachesGrants = false

    /// Enables calls over HTTP, `POST /call/ACTOR/METHOD` with a JSON array of the arguments, and streams over HTTP,
    /// `GET /observe/ACTOR/STATE` with Server-Sent Events. Default false, which answers calls 404.
    ///
    /// Each request is authenticated like the request of a WebSocket and is a connection for `onConnect` and `authorize`. `origins`
    /// applies. A request without `Origin` is from a program other than a browser.
    public var acceptsHTTPCalls = false

    /// The pages of other origins that may read responses of calls, streams and routes over HTTP; nil, the default, permits none. An
    /// origin of the policy also passes the check of `origins`, except for WebSockets.
    public var cors: CORSPolicy?

    /// Enables `Caller.current` for policies that accept every client without `authenticate`. Default false, which avoids its
    /// cost.
    public var identifiesCallers = false

    /// Code that runs around each call and before each stream; the first one is the outermost, and `authorize` is checked inside the last
    /// one. Default none. With interceptors, callers are identified as with `identifiesCallers`.
    public var interceptors: [any ServerInterceptor] = []

    /// The names of the header fields that `CallerConnection.headers` has of the request with which a client connects. Default none. Fields
    /// of a client that is connected to another cluster node are those that its node retains. A value of more than 1,024 bytes is not
    /// retained.
    public var retainedHeaders: Set<String> = []

    /// The maximum length of a retained value in bytes.
    private static let maximumRetainedBytes = 1_024

    /// Called for each accepted connection, before its first call; `onClose` is called at its end. It runs on the connection's
    /// reactor and must not block.
    public var onConnect: (@Sendable (CallerConnection) -> Void)?

    /// The reason why accounts that several servers share are unavailable, for readiness; nil without such accounts.
    package var accountsProblem: (@Sendable () -> String?)?

    /// Admits every client but web pages of other origins, and permits every call, unless the arguments restrict that.
    public init(
        origins: Set<String>? = nil, authenticate: Authenticate? = nil, authorize: Authorize? = nil
    ) {
        self.origins = origins
        self.authenticate = authenticate
        self.authorize = authorize
    }

    /// For `origins`: permits web pages of all origins. Each page that a user of this network opens can then use the server
    /// with the user's cookies and certificates.
    public static let anyOrigin: Set<String> = ["*"]

    /// Accepts every client; web pages as `origins` permits.
    public static var open: AccessPolicy { AccessPolicy() }

    /// The rules of `authorize`; nil without any.
    var rules: AccessRules? { authorize.map { AccessRules(mayCall: $0, cachesGrants: cachesGrants) } }

    /// True if connections have no `Caller`. `authorize` alone requires none.
    var isOpen: Bool {
        authenticate == nil && !identifiesCallers && onConnect == nil && interceptors.isEmpty && retainedHeaders.isEmpty
    }

    /// Returns the caller of a request, or the rejection of the request.
    ///
    /// - Parameter failures: logs errors that are not disclosed to the client.
    func admit(_ upgrade: WebSocketUpgrade, _ failures: RejectionLog) async -> WebSocketUpgrade.Admission {
        do {
            return .admitted(try await caller(upgrade.request, from: upgrade.remoteAddress))
        } catch {
            return .rejected(Self.refusal(error, failures).response)
        }
    }

    /// Returns the rejection of a client for an error of `authenticate`.
    static func refusal(_ error: any Error, _ failures: RejectionLog) -> (response: HTTPResponse, reason: String) {
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
        failures.logLine(
            "authenticate threw \(String(reflecting: type(of: error))): \("\(error)".prefix(bytes: 4_000))")
        return answer(503, "authentication is temporarily unavailable; see the server log")
    }

    /// Returns the caller of a request; throws the errors of `authenticate`.
    func caller(_ request: HTTPRequestHead, from address: SocketAddress?) async throws -> Caller {
        let principal = try await authenticate?(request)
        var headers: [String: String] = [:]
        for name in retainedHeaders {
            guard let value = request.headers[name], value.utf8.count <= Self.maximumRetainedBytes else { continue }
            headers[name.lowercased()] = value
        }
        return Caller(connection: CallerConnection(principal: principal, remoteAddress: address, headers: headers))
    }
}

extension HTTPRequestHead {
    /// The token of `Authorization: Bearer …`. Browsers cannot send that with a WebSocket; for them, the subprotocol `bearer.…`
    /// that is offered beside `trebuchet.v3`.
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

    /// Returns the value of a cookie (RFC 6265 §4.2).
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
