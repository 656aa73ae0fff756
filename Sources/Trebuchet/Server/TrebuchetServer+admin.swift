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
    /// machine's own. It takes 512 connections at a time, apart from those of clients.
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
        try OperatorDoor.check("the operators' address", at: host, tls, token)
        let address = AdminAddress(self, token: token)
        // Apart from those of the server, so that it answers also while they are held up; those of a test have its time.
        let reactors = owner == nil ? try ReactorGroup.clients() : ReactorGroup(shards.map(\.reactor))
        let listener = try address.listen(host: host, port: port, tls: tls, on: reactors)
        // A name may lead elsewhere than it says.
        guard tls != nil && token != nil || OperatorDoor.isLoopback(listener.address) else {
            Task { await listener.shutdown() }
            throw TransportError(.addressInvalid, "others reach '\(host)', which is \(listener.address)")
        }
        let isFirst = operatorListeners.withLock { listeners in
            guard listeners.admin == nil, !isStopping else { return false }
            listeners.admin = listener
            return true
        }
        guard isFirst else {
            Task { await listener.shutdown() }
            throw TransportError(.addressInvalid, "the server has an address for operators already, or has ended")
        }
        return listener.address
    }

    /// The addresses that are not for clients.
    struct OperatorListeners {
        var admin: WebSocketServer?
        var inspector: WebSocketServer?
        /// Lets go of what was noted for who looked, and of who looks.
        var endInspection: @Sendable () async -> Void = {}
    }

    func closeOperatorListeners() async {
        let closed = operatorListeners.withLock { listeners in
            defer { listeners = OperatorListeners() }
            return listeners
        }
        for listener in [closed.admin, closed.inspector].compactMap({ $0 }) {
            await listener.stopAccepting()
            await listener.refuseUpgrades()
            await listener.endPages(within: .seconds(1))
        }
        await closed.endInspection()
    }
}

/// Answers operators.
struct AdminAddress: Sendable {
    private let door: OperatorDoor

    init(_ server: TrebuchetServer, token: String?) { door = OperatorDoor(server, name: "admin", token: token) }

    func listen(
        host: String, port: Int, tls: TLSServerSettings?, on reactors: ReactorGroup
    ) throws(TransportError) -> WebSocketServer {
        try door.listen(host: host, port: port, tls: tls, on: reactors) { answer($0, from: $1) }
    }

    private func answer(_ request: HTTPRequestHead, from address: SocketAddress?) -> PlainAnswer {
        switch (request.path, request.query) {
        case ("/metrics", _):
            if let refusal = door.refusal(of: request, from: address) { return .last(refusal) }
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
            if let refusal = door.refusal(of: request, from: address) { return .last(refusal) }
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
            let isServing = door.server?.status == .serving
            return .last(HTTPResponse(status: isServing ? 200 : 503, text: isServing ? "ok" : "it does not serve"))
        default:
            return .last(
                HTTPResponse(status: 404, text: "there are /metrics, /livez, /readyz, /readyz?verbose and /healthz"))
        }
    }

    private func ask(_ question: @escaping @Sendable (TrebuchetServer) async -> HTTPResponse) -> PlainAnswer {
        door.ask { PageReply(await question($0)) }
    }

    private static func answer(_ checks: [TrebuchetServer.Check], _ text: String) -> HTTPResponse {
        HTTPResponse(status: checks.allSatisfy { $0.problem == nil } ? 200 : 503, text: text)
    }

    private static func page(_ text: String, _ type: String) -> HTTPResponse {
        HTTPResponse(status: 200, headers: ["Content-Type": type], body: Array(text.utf8))
    }
}
