package import Networking
internal import TrebuchetActors
package import Transports
internal import TrebuchetWire
package import WebSockets

/// The access control of endpoints for operators, such as the admin endpoint: permitted origins and host names, the token, and
/// security headers
/// of every response.
package struct AdminRequestGuard: Sendable {
    static let shortestToken = 16
    private static let connections = 512
    private static let bufferedBytes = 64 << 20
    /// Prevents caching, content sniffing, and framing by other pages.
    private static let protection: [(name: String, value: String)] = [
        ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
        ("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
        ("Cross-Origin-Resource-Policy", "same-origin"), ("Referrer-Policy", "no-referrer"),
    ]

    /// A weak reference to the server.
    private final class Server: Sendable {
        weak let server: TrebuchetServer?
        init(_ server: TrebuchetServer) { self.server = server }
    }

    private let holder: Server
    /// The name of the endpoint in the log.
    private let name: String
    /// The digest of the token; digests have equal lengths.
    private let digest: [UInt8]?
    /// True to accept requests of same-origin web pages; false rejects those of all web pages.
    private let acceptsSameOriginPages: Bool
    private let refusals: RejectionLog

    package init(_ server: TrebuchetServer, name: String, token: String?, acceptsSameOriginPages: Bool = false) {
        holder = Server(server)
        self.name = name
        digest = token.map { Digest.sha256(Array($0.utf8)) }
        self.acceptsSameOriginPages = acceptsSameOriginPages
        refusals = RejectionLog(server.context.log)
    }

    package var server: TrebuchetServer? { holder.server }

    /// Starts listening.
    ///
    /// - Parameters:
    ///   - acceptsPost: whether POST requests, without a body, are accepted.
    ///   - clients: the server that accepts WebSocket clients with the token; none by default.
    ///   - answer: responds to a request after the origin checks.
    package func listen(
        host: String, port: Int, tls: TLSServerSettings?, on reactors: ReactorGroup, acceptsPost: Bool = false,
        clients: TrebuchetServer? = nil, answer: @escaping @Sendable (HTTPRequestHead, SocketAddress?) -> PlainResponse
    ) throws(TransportError) -> WebSocketServer {
        var limits = WebSocketLimits()
        limits.connections = Self.connections
        // All operators may connect from one address, and evicted connections count until they have closed.
        limits.connectionsPerHost = 2 * Self.connections
        limits.bufferedBytes = Self.bufferedBytes
        limits.bufferedBytesPerHost = Self.bufferedBytes
        limits.pages.transferInterval = .seconds(10)
        let origins = try OriginRule(nil)
        let shards = clients?.shards ?? []
        let (acceptsSameOriginPages, name, refusals) = (acceptsSameOriginPages, name, refusals)
        @Sendable func refuse(_ response: HTTPResponse, _ address: SocketAddress?, _ reason: String) -> HTTPResponse {
            refusals.logLine("\(name): \(address.map { "\($0)" } ?? "unknown address") was refused: \(reason)")
            return Self.protected(response)
        }
        return try WebSocketServer(
            host: host, port: port, reactors: reactors,
            subprotocols: shards.isEmpty ? [] : [ProtocolVersion.subprotocol], limits: limits, tls: tls, memory: nil,
            check: { request, address in
                // Subresources of other pages, such as scripts and images, are requested without an Origin.
                if request.headers["Sec-Fetch-Site"] == "cross-site", request.headers["Sec-Fetch-Mode"] != "navigate" {
                    let response = HTTPResponse(status: 403, text: "cross-origin requests are not allowed")
                    return refuse(response, address, "a cross-site request of a web page")
                }
                guard acceptsSameOriginPages || request.headers.values("Origin").isEmpty else {
                    let response = HTTPResponse(status: 403, text: "requests from web pages are not allowed")
                    return refuse(response, address, "a web page (Origin header)")
                }
                guard Self.isOwn(request.headers.values("Origin"), host: request.headers["Host"], hasTLS: tls != nil)
                else {
                    let response = HTTPResponse(status: 403, text: "cross-origin requests are not allowed")
                    return refuse(response, address, "a web page of another origin")
                }
                guard address.map({ Self.isLoopback($0) }) == true else { return nil }
                // Client WebSockets permit programs to use any host name; here only loopback names are valid.
                if request.wantsWebSocket, HostAndPort(request.headers["Host"] ?? "")?.isLoopback != true {
                    let response = HTTPResponse(status: 403, text: "the host is not a name of this machine")
                    return refuse(response, address, "a name that does not belong to this machine")
                }
                return origins.refusal(of: request, at: address).map { _ in
                    let response = HTTPResponse(
                        status: 403, text: "the host is not a name of this machine, such as localhost or 127.0.0.1")
                    return refuse(
                        response, address, "a name that does not belong to this machine, or a page of another origin")
                }
            },
            admit: shards.isEmpty ? nil : admit, plain: { Self.protected(answer($0.head, $0.remoteAddress)) },
            accept: { upgrade in
                guard let context = shards.first?.context, upgrade.subprotocol != nil else {
                    return .reject(
                        Self.protected(
                            HTTPResponse(
                                status: 404,
                                text: "no WebSocket endpoint here; connect clients to the server's own port")))
                }
                return WebSocketConnections.accept(upgrade, on: shards, context.limits)
            }, acceptsPost: acceptsPost, makesRoom: true)
    }

    @Sendable private func admit(_ upgrade: WebSocketUpgrade) async -> WebSocketUpgrade.Admission {
        if let refusal = refusal(of: upgrade.request, from: upgrade.remoteAddress) {
            return .rejected(Self.protected(refusal))
        }
        return .admitted(Caller(connection: CallerConnection(principal: nil, remoteAddress: upgrade.remoteAddress)))
    }

    /// Throws `addressInvalid` for an address that is not loopback without TLS and a token, and for a token that is too short.
    ///
    /// - Parameter what: the endpoint, for the error text.
    package static func check(
        _ what: String, at host: String, _ tls: TLSServerSettings?, _ token: String?
    ) throws(TransportError) {
        guard isOwn(host) || tls != nil && token != nil else {
            throw TransportError(
                .addressInvalid,
                "'\(host)' is reachable from other machines: \(what) requires TLS and a token, or a loopback address such as 127.0.0.1"
            )
        }
        guard token?.utf8.count ?? shortestToken >= shortestToken else {
            throw TransportError(.addressInvalid, "the token of \(what) must have at least \(shortestToken) bytes")
        }
    }

    static func isOwn(_ host: String) -> Bool {
        HostAndPort(host.contains(":") ? "[\(host)]" : host)?.isLoopback == true
    }

    /// Compares bytes, since browsers write both in the same form.
    private static func isOwn(_ origins: [String], host: String?, hasTLS: Bool) -> Bool {
        origins.allSatisfy { $0 == "\(hasTLS ? "https" : "http")://\(host ?? "")" }
    }

    static func isLoopback(_ address: SocketAddress) -> Bool { HostAndPort("\(address)")?.isLoopback == true }

    /// Returns a response that is computed asynchronously from the server.
    package func respond(_ question: @escaping @Sendable (TrebuchetServer) async -> StreamedResponse) -> PlainResponse {
        .asynchronous { [holder] in
            guard let server = holder.server else {
                return StreamedResponse(HTTPResponse(status: 503, text: "shut down"))
            }
            return await question(server)
        }
    }

    /// Returns the rejection of a request; nil if it has the token. The comparison takes constant time.
    package func refusal(of request: HTTPRequestHead, from address: SocketAddress?) -> HTTPResponse? {
        guard let digest else { return nil }
        if let token = request.bearerToken, Digest.areEqual(digest, Digest.sha256(Array(token.utf8))) { return nil }
        let hasNone = request.bearerToken == nil
        refusals.logLine(
            "\(name): \(address.map { "\($0)" } ?? "unknown address") was refused \(request.path): "
                + (hasNone ? "no token" : "invalid token"))
        return HTTPResponse(
            status: 401, headers: ["WWW-Authenticate": "Bearer", "Content-Type": "text/plain; charset=utf-8"],
            body: Array((hasNone ? "a bearer token is required\n" : "the token is not valid for this server\n").utf8))
    }

    // MARK: Security headers

    private static func protected(_ answer: PlainResponse) -> PlainResponse {
        switch answer {
        case .last(let response): .last(protected(response))
        case .page(let reply): .page(protected(reply))
        case .blocking(let respond): .blocking { protected(respond()) }
        case .asynchronous(let respond): .asynchronous { protected(await respond()) }
        case .handled: answer
        }
    }

    private static func protected(_ reply: StreamedResponse) -> StreamedResponse {
        var reply = reply
        reply.response = protected(reply.response)
        return reply
    }

    private static func protected(_ response: HTTPResponse) -> HTTPResponse {
        var response = response
        // A page may set its own policy.
        for (name, value) in protection where response.headers[name] == nil { response.headers.add(name, value) }
        return response
    }
}
