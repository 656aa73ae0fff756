internal import Networking
internal import Synchronization
public import Transports
internal import TrebuchetActors
internal import WebSockets

/// The address for operators: numbers and health, apart from where clients come in.
extension TrebuchetServer {
    /// Listens for operators, until the server has ended; returns the address. Before or after `start`, once.
    ///
    /// - `/metrics`: what `metrics` says, for Prometheus
    /// - `/livez`: 200 while all reactors get on (`liveness`), else 503
    /// - `/readyz`: 200 while the server is to be sent clients (`readiness`), else 503; with `?verbose` each check in a line
    /// - `/healthz`: 200 from when it serves until its end, else 503
    ///
    /// It is for programs: requests of web pages (with `Origin`) are refused, and at a loopback address so are names that are not this
    /// machine's own. It takes 64 connections at a time, apart from those of clients.
    ///
    /// - Parameters:
    ///   - host: an address of this machine alone, unless `tls` and `token` are given.
    ///   - port: 0 takes a free one.
    ///   - tls: makes it `https:`.
    ///   - token: what `/metrics` and `?verbose` are shown for, as `Authorization: Bearer …`: 16 bytes or more. Nil, the default, shows them to
    ///     all programs of this machine.
    /// - Throws: `TransportError`: `addressInvalid` for an address that others reach without `tls` and `token`, for a token that is too short,
    ///   and for a second address; else as `start`.
    @discardableResult
    public func openAdmin(
        host: String = "127.0.0.1", port: Int, tls: TLSServerSettings? = nil, token: String? = nil
    ) throws(TransportError) -> SocketAddress {
        let isLoopback = HostAndPort(host.contains(":") ? "[\(host)]" : host)?.isLoopback == true
        guard isLoopback || tls != nil && token != nil else {
            throw TransportError(
                .addressInvalid,
                "others reach '\(host)': the operators' address is one of this machine alone, as 127.0.0.1, unless it has TLS and a token"
            )
        }
        guard token?.utf8.count ?? AdminAddress.shortestToken >= AdminAddress.shortestToken else {
            throw TransportError(
                .addressInvalid, "the operators' token has less than \(AdminAddress.shortestToken) bytes")
        }
        let address = AdminAddress(self, token: token)
        let listener = try address.listen(host: host, port: port, tls: tls, on: ReactorGroup(shards.map(\.reactor)))
        // A name may lead elsewhere than it says.
        guard tls != nil && token != nil || AdminAddress.isLoopback(listener.address) else {
            Task { await listener.shutdown() }
            throw TransportError(.addressInvalid, "others reach '\(host)', which is \(listener.address)")
        }
        let isFirst = adminListener.withLock { admin in
            guard admin == nil, !isStopping else { return false }
            admin = listener
            return true
        }
        guard isFirst else {
            Task { await listener.shutdown() }
            throw TransportError(.addressInvalid, "the server has an address for operators already, or has ended")
        }
        return listener.address
    }

    func closeAdmin() async {
        let listener = adminListener.withLock { admin in
            defer { admin = nil }
            return admin
        }
        guard let listener else { return }
        await listener.stopAccepting()
        await listener.refuseUpgrades()
        await listener.endPages(within: .seconds(1))
    }
}

/// Answers operators.
struct AdminAddress: Sendable {
    static let shortestToken = 16
    private static let connections = 64
    private static let heldBytes = 64 << 20

    /// `@unchecked Sendable`: never changed.
    private final class Server: @unchecked Sendable {
        weak let server: TrebuchetServer?
        init(_ server: TrebuchetServer) { self.server = server }
    }

    private let holder: Server
    /// Of the token; all have the same length.
    private let digest: [UInt8]?
    private let refusals: RefusalLog

    init(_ server: TrebuchetServer, token: String?) {
        holder = Server(server)
        digest = token.map { Digest.sha256(Array($0.utf8)) }
        refusals = RefusalLog(server.parts.log)
    }

    func listen(
        host: String, port: Int, tls: TLSServerSettings?, on reactors: ReactorGroup
    ) throws(TransportError) -> WebSocketServer {
        var limits = WebSocketLimits()
        limits.connections = Self.connections
        limits.connectionsPerAddress = Self.connections
        limits.heldBytes = Self.heldBytes
        limits.heldBytesPerAddress = Self.heldBytes
        limits.pages.patience = .seconds(10)
        let origins = try OriginRule(nil)
        return try WebSocketServer(
            host: host, port: port, reactors: reactors, limits: limits, tls: tls, memory: nil,
            check: { request, address in
                guard request.headers.values("Origin").isEmpty else {
                    return HTTPResponse(status: 403, text: "web pages have no business here")
                }
                return address.map { Self.isLoopback($0) } == true ? origins.refusal(of: request, at: address) : nil
            },
            plain: { answer($0.head, from: $0.remoteAddress) },
            accept: { _ in .reject(HTTPResponse(status: 404, text: "there are no WebSockets here")) })
    }

    static func isLoopback(_ address: SocketAddress) -> Bool { HostAndPort("\(address)")?.isLoopback == true }

    private func answer(_ request: HTTPRequestHead, from address: SocketAddress?) -> PlainAnswer {
        switch (request.path, request.query) {
        case ("/metrics", _):
            if let refusal = refusal(of: request, from: address) { return .last(refusal) }
            return ask { server in
                do throws(TrebuchetError) {
                    return Self.page(try await server.metrics(), "text/plain; version=0.0.4; charset=utf-8")
                } catch {
                    return HTTPResponse(status: 503, text: error.message)
                }
            }
        case ("/livez", _):
            return ask { server in
                let check = await server.liveness()
                return HTTPResponse(status: check.problem == nil ? 200 : 503, text: check.problem ?? "ok")
            }
        case ("/readyz", "verbose"), ("/readyz", "verbose="):
            if let refusal = refusal(of: request, from: address) { return .last(refusal) }
            return ask { server in
                let checks = await server.readiness()
                let lines = checks.map { "[\($0.problem == nil ? "+" : "-")] \($0.name): \($0.problem ?? "ok")" }
                return Self.answer(checks, lines.map { LogLine.of($0) }.joined(separator: "\n"))
            }
        case ("/readyz", _):
            return ask { server in
                let checks = await server.readiness()
                let failed = checks.filter { $0.problem != nil }.map(\.name)
                return Self.answer(checks, failed.isEmpty ? "ok" : "not ready: \(failed.joined(separator: ", "))")
            }
        case ("/healthz", _):
            let isServing = holder.server?.status == .serving
            return .last(HTTPResponse(status: isServing ? 200 : 503, text: isServing ? "ok" : "it does not serve"))
        default:
            return .last(
                HTTPResponse(status: 404, text: "there are /metrics, /livez, /readyz, /readyz?verbose and /healthz"))
        }
    }

    private func ask(_ question: @escaping @Sendable (TrebuchetServer) async -> HTTPResponse) -> PlainAnswer {
        .ask { [holder] in
            guard let server = holder.server else { return PageReply(HTTPResponse(status: 503, text: "it has ended")) }
            return PageReply(await question(server))
        }
    }

    private static func answer(_ checks: [TrebuchetServer.Check], _ text: String) -> HTTPResponse {
        HTTPResponse(status: checks.allSatisfy { $0.problem == nil } ? 200 : 503, text: text)
    }

    private static func page(_ text: String, _ type: String) -> HTTPResponse {
        HTTPResponse(status: 200, headers: ["Content-Type": type], body: Array(text.utf8))
    }

    /// Nil for who has shown the token, in whatever time that takes.
    private func refusal(of request: HTTPRequestHead, from address: SocketAddress?) -> HTTPResponse? {
        guard let digest else { return nil }
        if let token = request.bearerToken, Digest.areEqual(digest, Digest.sha256(Array(token.utf8))) { return nil }
        refusals.note(
            "admin: \(address.map { "\($0)" } ?? "somebody") was refused \(request.path): "
                + (request.bearerToken == nil ? "no token" : "a wrong token"))
        return HTTPResponse(
            status: 401, headers: ["WWW-Authenticate": "Bearer", "Content-Type": "text/plain; charset=utf-8"],
            body: Array("the operators' token is needed\n".utf8))
    }
}
