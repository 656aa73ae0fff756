internal import Networking
internal import Transports
internal import TrebuchetActors
internal import WebSockets

/// The routes of the admin endpoint.
struct AdminEndpoint: Sendable {
    private let requestGuard: AdminRequestGuard

    init(_ server: TrebuchetServer, token: String?) {
        requestGuard = AdminRequestGuard(server, name: "admin", token: token)
    }

    func listen(
        host: String, port: Int, tls: TLSServerSettings?, on reactors: ReactorGroup
    ) throws(TransportError) -> WebSocketServer {
        try requestGuard.listen(host: host, port: port, tls: tls, on: reactors) { answer($0, from: $1) }
    }

    private func answer(_ request: HTTPRequestHead, from address: SocketAddress?) -> PlainResponse {
        switch (request.path, request.query) {
        case ("/metrics", _):
            if let refusal = requestGuard.refusal(of: request, from: address) { return .last(refusal) }
            return respond { server in
                do throws(TrebuchetError) {
                    return Self.page(try await server.prometheusMetrics(), "text/plain; version=0.0.4; charset=utf-8")
                } catch {
                    return HTTPResponse(status: 503, text: error.message)
                }
            }
        case ("/livez", _):
            return respond { server in
                let check = await server.liveness()
                return HTTPResponse(status: check.failureReason == nil ? 200 : 503, text: check.failureReason ?? "ok")
            }
        case ("/readyz", "verbose"), ("/readyz", "verbose="):
            if let refusal = requestGuard.refusal(of: request, from: address) { return .last(refusal) }
            return respond { server in
                let checks = await server.readiness()
                let lines = checks.map {
                    "[\($0.failureReason == nil ? "+" : "-")] \($0.name): \($0.failureReason ?? "ok")"
                }
                return Self.answer(checks, lines.map { LogLine.of($0) }.joined(separator: "\n"))
            }
        case ("/readyz", _):
            return respond { server in
                let checks = await server.readiness()
                let failed = checks.filter { $0.failureReason != nil }.map(\.name)
                return Self.answer(checks, failed.isEmpty ? "ok" : "not ready: \(failed.joined(separator: ", "))")
            }
        case ("/healthz", _):
            let isServing = requestGuard.server?.status == .serving
            return .last(HTTPResponse(status: isServing ? 200 : 503, text: isServing ? "ok" : "not serving"))
        default:
            return .last(
                HTTPResponse(
                    status: 404, text: "available paths: /metrics, /livez, /readyz, /readyz?verbose and /healthz"))
        }
    }

    private func respond(_ question: @escaping @Sendable (TrebuchetServer) async -> HTTPResponse) -> PlainResponse {
        requestGuard.respond { StreamedResponse(await question($0)) }
    }

    private static func answer(_ checks: [TrebuchetServer.Check], _ text: String) -> HTTPResponse {
        HTTPResponse(status: checks.allSatisfy { $0.failureReason == nil } ? 200 : 503, text: text)
    }

    private static func page(_ text: String, _ type: String) -> HTTPResponse {
        HTTPResponse(status: 200, headers: ["Content-Type": type], body: Array(text.utf8))
    }
}
