internal import Networking
internal import TrebuchetActors
internal import Transports
internal import TrebuchetWire
internal import WebSockets

/// What stands in front of all that operators are shown, at an address apart from that of clients: which pages and names of the machine may
/// ask, the token, and what no answer goes without.
struct OperatorDoor: Sendable {
    static let shortestToken = 16
    private static let connections = 512
    private static let heldBytes = 64 << 20
    /// Nothing of it is kept, taken for what it is not, or shown inside of another page.
    private static let protection: [(name: String, value: String)] = [
        ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
        ("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
        ("Cross-Origin-Resource-Policy", "same-origin"), ("Referrer-Policy", "no-referrer"),
    ]

    /// `@unchecked Sendable`: never changed.
    private final class Server: @unchecked Sendable {
        weak let server: TrebuchetServer?
        init(_ server: TrebuchetServer) { self.server = server }
    }

    private let holder: Server
    /// What it is called in the log.
    private let name: String
    /// Of the token; all have the same length.
    private let digest: [UInt8]?
    /// Whether pages of the address itself may ask; else none may.
    private let takesOwnPages: Bool
    private let refusals: RefusalLog

    init(_ server: TrebuchetServer, name: String, token: String?, takesOwnPages: Bool = false) {
        holder = Server(server)
        self.name = name
        digest = token.map { Digest.sha256(Array($0.utf8)) }
        self.takesOwnPages = takesOwnPages
        refusals = RefusalLog(server.parts.log)
    }

    var server: TrebuchetServer? { holder.server }

    /// - Parameters:
    ///   - takesPost: whether also what changes something may be asked for; without a body.
    ///   - clients: where clients come in by a WebSocket, with the token; none do by default.
    ///   - answer: what is asked for by whom, for those who were let in by where they come from.
    func listen(
        host: String, port: Int, tls: TLSServerSettings?, on reactors: ReactorGroup, takesPost: Bool = false,
        clients: [ServerShard] = [], answer: @escaping @Sendable (HTTPRequestHead, SocketAddress?) -> PlainAnswer
    ) throws(TransportError) -> WebSocketServer {
        var limits = WebSocketLimits()
        limits.connections = Self.connections
        // Operators may all come from one, and those that give way count until they have gone.
        limits.connectionsPerAddress = 2 * Self.connections
        limits.heldBytes = Self.heldBytes
        limits.heldBytesPerAddress = Self.heldBytes
        limits.pages.patience = .seconds(10)
        let origins = try OriginRule(nil)
        let (takesOwnPages, name, refusals) = (takesOwnPages, name, refusals)
        @Sendable func refuse(_ response: HTTPResponse, _ address: SocketAddress?, _ why: String) -> HTTPResponse {
            refusals.note("\(name): \(address.map { "\($0)" } ?? "somebody") was refused: \(why)")
            return Self.protected(response)
        }
        return try WebSocketServer(
            host: host, port: port, reactors: reactors,
            subprotocols: clients.isEmpty ? [] : [ProtocolVersion.subprotocol], limits: limits, tls: tls, memory: nil,
            check: { request, address in
                // Parts of other pages, scripts and pictures for instance, come without an Origin.
                if request.headers["Sec-Fetch-Site"] == "cross-site", request.headers["Sec-Fetch-Mode"] != "navigate" {
                    let response = HTTPResponse(status: 403, text: "only the page of this address itself may ask")
                    return refuse(response, address, "a part of a web page of another origin")
                }
                guard takesOwnPages || request.headers.values("Origin").isEmpty else {
                    let response = HTTPResponse(status: 403, text: "web pages have no business here")
                    return refuse(response, address, "a web page, by its Origin")
                }
                guard Self.isOwn(request.headers.values("Origin"), host: request.headers["Host"], hasTLS: tls != nil)
                else {
                    let response = HTTPResponse(status: 403, text: "only the page of this address itself may ask")
                    return refuse(response, address, "a web page of another origin")
                }
                guard address.map({ Self.isLoopback($0) }) == true else { return nil }
                // Those of clients are let in by programs that know them by whatever name; here nobody has another one.
                if request.wantsWebSocket, HostAndPort(request.headers["Host"] ?? "")?.isLoopback != true {
                    let response = HTTPResponse(status: 403, text: "the host is no name of this machine")
                    return refuse(response, address, "a name that is none of this machine's")
                }
                return origins.refusal(of: request, at: address).map { _ in
                    let response = HTTPResponse(
                        status: 403, text: "the host is no name of this machine, as localhost or 127.0.0.1 are")
                    return refuse(
                        response, address, "a name that is none of this machine's, or a page of another origin")
                }
            },
            admit: clients.isEmpty ? nil : letIn, plain: { Self.protected(answer($0.head, $0.remoteAddress)) },
            accept: { upgrade in
                guard let parts = clients.first?.parts, upgrade.subprotocol != nil else {
                    return .reject(Self.protected(HTTPResponse(status: 404, text: "there are no such WebSockets here")))
                }
                return WebSocketConnections.accept(upgrade, on: clients, parts.limits)
            }, takesPost: takesPost, makesRoom: true)
    }

    @Sendable private func letIn(_ upgrade: WebSocketUpgrade) async -> WebSocketUpgrade.Admission {
        if let refusal = refusal(of: upgrade.request, from: upgrade.remoteAddress) {
            return .rejected(Self.protected(refusal))
        }
        return .admitted(Caller(connection: CallerConnection(principal: nil, remoteAddress: upgrade.remoteAddress)))
    }

    /// Throws `addressInvalid` for an address that others reach without TLS and a token, and for a token that is too short.
    ///
    /// - Parameter what: what listens there, in the words of the error.
    static func check(
        _ what: String, at host: String, _ tls: TLSServerSettings?, _ token: String?
    ) throws(TransportError) {
        guard isOwn(host) || tls != nil && token != nil else {
            throw TransportError(
                .addressInvalid,
                "others reach '\(host)': \(what) is at an address of this machine alone, as 127.0.0.1, unless it has TLS and a token"
            )
        }
        guard token?.utf8.count ?? shortestToken >= shortestToken else {
            throw TransportError(.addressInvalid, "the token of \(what) has less than \(shortestToken) bytes")
        }
    }

    static func isOwn(_ host: String) -> Bool {
        HostAndPort(host.contains(":") ? "[\(host)]" : host)?.isLoopback == true
    }

    /// Byte for byte: browsers write both alike.
    private static func isOwn(_ origins: [String], host: String?, hasTLS: Bool) -> Bool {
        origins.allSatisfy { $0 == "\(hasTLS ? "https" : "http")://\(host ?? "")" }
    }

    static func isLoopback(_ address: SocketAddress) -> Bool { HostAndPort("\(address)")?.isLoopback == true }

    /// Answers when the server has been asked.
    func ask(_ question: @escaping @Sendable (TrebuchetServer) async -> PageReply) -> PlainAnswer {
        .ask { [holder] in
            guard let server = holder.server else { return PageReply(HTTPResponse(status: 503, text: "it has ended")) }
            return await question(server)
        }
    }

    /// Nil for who has shown the token, in whatever time that takes.
    func refusal(of request: HTTPRequestHead, from address: SocketAddress?) -> HTTPResponse? {
        guard let digest else { return nil }
        if let token = request.bearerToken, Digest.areEqual(digest, Digest.sha256(Array(token.utf8))) { return nil }
        let hasNone = request.bearerToken == nil
        refusals.note(
            "\(name): \(address.map { "\($0)" } ?? "somebody") was refused \(request.path): "
                + (hasNone ? "no token" : "a wrong token"))
        return HTTPResponse(
            status: 401, headers: ["WWW-Authenticate": "Bearer", "Content-Type": "text/plain; charset=utf-8"],
            body: Array((hasNone ? "the token is needed\n" : "the token is not the one of this server\n").utf8))
    }

    // MARK: What no answer goes without

    private static func protected(_ answer: PlainAnswer) -> PlainAnswer {
        switch answer {
        case .last(let response): .last(protected(response))
        case .page(let reply): .page(protected(reply))
        case .lookUp(let look): .lookUp { protected(look()) }
        case .ask(let ask): .ask { protected(await ask()) }
        }
    }

    private static func protected(_ reply: PageReply) -> PageReply {
        var reply = reply
        reply.response = protected(reply.response)
        return reply
    }

    private static func protected(_ response: HTTPResponse) -> HTTPResponse {
        var response = response
        // A page has a policy of its own.
        for (name, value) in protection where response.headers[name] == nil { response.headers.add(name, value) }
        return response
    }
}
