public import TrebuchetActors
internal import Transports
public import WebSockets

/// The routes that a program adds to a server: `TrebuchetServer.http(_:)`.
///
/// A path has components between slashes. `:name` is a parameter, which any component without a slash matches; other components match
/// literally and take precedence. A route of GET serves HEAD too. A path that has routes of other methods only is answered 405.
///
/// The parameters of all functions:
///
/// - `path`: The path, percent-encoded, such as `/orders/:id`. `/healthz`, `/livez`, `/readyz`, `/metrics`, `/schema.json`, `/call`
///   and `/observe` belong to the server.
/// - `authenticated`: True to identify the caller by `AccessPolicy.authenticate`, before the body is read. A request without a principal
///   is answered 401. False, the default, asks for no credentials.
/// - `bodyBytes`: The maximum size of the body; a larger one is answered 413. Default: `ServerLimits.messages.inboundBytes`.
/// - `timeout`: The maximum time of the handler until its response; then its task is cancelled, and the request is answered 504.
///   Default: `ServerLimits.calls.timeout`.
/// - `handler`: Responds to a request, in a task away from the reactors. The task is cancelled when the client disconnects.
public struct HTTPRoutes {
    /// Responds to a request. A `TrebuchetError` that it throws is answered with a problem document and the status of its code; any
    /// other error as one of an actor's method.
    public typealias Handler = @Sendable (_ request: RouteRequest) async throws -> HTTPResponse

    private(set) var tree: RouteTree
    /// The first error of a route.
    private(set) var failure: TransportError?
    /// A route that requires authentication.
    private(set) var authenticatedPath: String?

    init(_ tree: RouteTree) { self.tree = tree }

    /// Adds a route of GET, which serves HEAD too.
    public mutating func get(
        _ path: String, authenticated: Bool = false, bodyBytes: Int? = nil, timeout: Duration? = nil,
        _ handler: @escaping Handler
    ) {
        add("GET", path, authenticated, bodyBytes, timeout, handler)
    }

    /// Adds a route of POST.
    public mutating func post(
        _ path: String, authenticated: Bool = false, bodyBytes: Int? = nil, timeout: Duration? = nil,
        _ handler: @escaping Handler
    ) {
        add("POST", path, authenticated, bodyBytes, timeout, handler)
    }

    /// Adds a route of PUT.
    public mutating func put(
        _ path: String, authenticated: Bool = false, bodyBytes: Int? = nil, timeout: Duration? = nil,
        _ handler: @escaping Handler
    ) {
        add("PUT", path, authenticated, bodyBytes, timeout, handler)
    }

    /// Adds a route of PATCH.
    public mutating func patch(
        _ path: String, authenticated: Bool = false, bodyBytes: Int? = nil, timeout: Duration? = nil,
        _ handler: @escaping Handler
    ) {
        add("PATCH", path, authenticated, bodyBytes, timeout, handler)
    }

    /// Adds a route of DELETE.
    public mutating func delete(
        _ path: String, authenticated: Bool = false, bodyBytes: Int? = nil, timeout: Duration? = nil,
        _ handler: @escaping Handler
    ) {
        add("DELETE", path, authenticated, bodyBytes, timeout, handler)
    }

    /// Adds the routes of all `@HTTP` methods of an actor type.
    ///
    ///     routes.serve(OrderDesk.self, as: "orders")
    ///
    /// A request calls the method as a client of the server does: it is authenticated, and `AccessPolicy.authorize`, rates, limits,
    /// deadlines and interceptors apply. `Idempotency-Key`, `Trebuchet-Timeout` and `traceparent` are as for calls over HTTP, which
    /// need not be enabled. A type without such methods traps.
    ///
    /// - Parameter name: The name of the actor, as for `expose`; the actor may be exposed later, or be activated on demand.
    public mutating func serve<A: TrebuchetActor>(_ type: A.Type, as name: String) {
        let entry = ActorTypes.entry(of: type)
        // unreachable from data: the program writes the type.
        precondition(!entry.routes.isEmpty, "\(entry.name) has no method marked @HTTP")
        for (target, route) in entry.routes {
            let method = HTTPServedMethod(actor: name, target: target, route: route)
            add(route.method, route.path, .method(method))
        }
    }

    private mutating func add(
        _ method: String, _ path: String, _ isAuthenticated: Bool, _ bodyBytes: Int?, _ timeout: Duration?,
        _ handler: @escaping Handler
    ) {
        add(method, path, .program(handler), isAuthenticated: isAuthenticated, bodyBytes: bodyBytes, timeout: timeout)
    }

    private mutating func add(
        _ method: String, _ path: String, _ action: HTTPRoute.Action, isAuthenticated: Bool = false,
        bodyBytes: Int? = nil, timeout: Duration? = nil
    ) {
        guard failure == nil else { return }
        do throws(TransportError) {
            let route = HTTPRoute(
                method: method, path: path, components: try HTTPRoute.components(of: path),
                isAuthenticated: isAuthenticated, bodyBytes: bodyBytes, timeout: timeout, action: action)
            guard tree.insert(route) else {
                throw TransportError(.addressInvalid, "route '\(path)': another route of \(method) has this path")
            }
            if isAuthenticated { authenticatedPath = path }
        } catch {
            failure = error
        }
    }
}

extension HTTPResponse {
    /// Returns a response with a value as JSON. Throws `EncodingError` for a value that has no JSON, such as NaN.
    ///
    /// - Parameter status: 200 by default.
    public static func json(_ value: some Encodable, status: Int = 200) throws -> HTTPResponse {
        HTTPResponse(status: status, headers: ["Content-Type": "application/json"], body: try RouteJSON.encode(value))
    }

    /// Returns a response with a text.
    ///
    /// - Parameter status: 200 by default.
    public static func text(_ text: String, status: Int = 200) -> HTTPResponse {
        HTTPResponse(status: status, headers: ["Content-Type": "text/plain; charset=utf-8"], body: Array(text.utf8))
    }

    /// Returns a response with any bytes.
    ///
    /// - Parameters:
    ///   - type: The media type, such as `image/png`.
    ///   - status: 200 by default.
    public static func bytes(_ bytes: [UInt8], type: String, status: Int = 200) -> HTTPResponse {
        HTTPResponse(status: status, headers: ["Content-Type": type], body: bytes)
    }

    /// Returns a response whose body is sent while it is made, in the chunked transfer coding; its length is not limited.
    ///
    /// The next chunk is requested when fewer than 256 KiB of the earlier ones wait to be sent, so at most one chunk more is in memory.
    /// The task of the handler reads the sequence. It is cancelled when the client disconnects, reads too slowly (`ServerLimits.pages`),
    /// or the server stops; the timeout of the route ends with the first chunk. An error of the sequence is logged and resets the
    /// connection, so that the client sees that the body is incomplete.
    ///
    /// - Parameters:
    ///   - chunks: The body; each chunk has at most `ServerLimits.messages.outboundBytes`. Not read for a HEAD.
    ///   - type: The media type, such as `text/csv`.
    ///   - status: 200 by default.
    public static func stream<Chunks: AsyncSequence & Sendable>(
        _ chunks: Chunks, type: String, status: Int = 200
    ) -> HTTPResponse where Chunks.Element == [UInt8] {
        var response = HTTPResponse(status: status, headers: ["Content-Type": type])
        response.chunks = { write in for try await chunk in chunks { try await write(chunk) } }
        return response
    }

    /// Returns a response without a body. A status of 204 or 304 has none; others have an empty one.
    public static func status(_ status: Int) -> HTTPResponse { HTTPResponse(status: status) }

    /// Returns a problem document (RFC 9457) with a status, without a code.
    ///
    /// - Parameter detail: The reason, for the developer of the client.
    public static func problem(_ status: Int, _ detail: String) -> HTTPResponse {
        HTTPProblem(status: status, detail).response
    }

    /// Returns the problem document of an error, with the status of its code, as for a call.
    public static func problem(_ error: TrebuchetError) -> HTTPResponse { HTTPProblem(error).response }
}
