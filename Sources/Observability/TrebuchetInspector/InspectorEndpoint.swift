internal import Networking
internal import Transports
internal import Trebuchet
internal import TrebuchetActors
internal import WebSockets

/// The HTTP endpoint of the inspector: serves JSON to programs, and pages that are clients of an actor.
struct InspectorEndpoint: Sendable {
    private let requestGuard: AdminRequestGuard
    private let views: InspectorViews
    private let files = InspectorFiles()
    private let pages: InspectorPages

    init(_ server: TrebuchetServer, token: String, writes: Bool, on reactors: ReactorGroup) {
        requestGuard = AdminRequestGuard(server, name: "inspector", token: token, acceptsSameOriginPages: true)
        views = InspectorViews(recorder: InspectorRecorder(server.view), writes: writes)
        pages = InspectorPages(of: requestGuard, views, on: reactors, log: server.view.log)
    }

    func listen(
        host: String, port: Int, tls: TLSServerSettings?, on reactors: ReactorGroup
    ) throws(TransportError) -> WebSocketServer {
        try requestGuard.listen(
            host: host, port: port, tls: tls, on: reactors, acceptsPost: views.writes, clients: pages.server
        ) { request, address in
            // These files contain no server data: the page requests its data with the token.
            if let file = files[request.path], request.method != "POST" { return .page(file) }
            if let refusal = requestGuard.refusal(of: request, from: address) { return .last(refusal) }
            guard let path = request.path.suffix(after: "/inspect/").map({ String($0) }) else {
                return .last(Self.nothing)
            }
            do throws(InspectorQuery.InvalidQuery) {
                let query = try InspectorQuery(request.query)
                if request.method == "POST" { return try change(path, query, address) }
                guard let render = try views.view(at: path, query) else { return .last(Self.nothing) }
                return respond { server async throws(TrebuchetError) in try await render(server.view) }
            } catch {
                return .last(Self.page(400, InspectorViews.failed(error.text)).response)
            }
        }
    }

    /// Discards all recordings and shuts down the page server.
    func shutDown() async {
        views.recorder.stop()
        await pages.shutDown()
    }

    /// Handles a POST request, if writes are permitted.
    private func change(
        _ path: String, _ query: InspectorQuery, _ address: SocketAddress?
    ) throws(InspectorQuery.InvalidQuery) -> PlainResponse {
        let peer = address.map { "\($0)" } ?? "unknown path"
        if let name = path.suffix(after: InspectorViews.actors).flatMap({ $0.hasSuffix("/call") ? $0.dropLast(5) : nil }
        ) {
            let call = try InspectorCall(try InspectorQuery.decode(Array(name.utf8)), query)
            return respond { server async throws(TrebuchetError) in try await server.call(call, for: peer) }
        }
        if let number = path.suffix(after: "connections/").flatMap({ $0.hasSuffix("/close") ? $0.dropLast(6) : nil }) {
            guard let number = UInt64(number) else {
                throw InspectorQuery.InvalidQuery(text: "the connection must be a number")
            }
            return respond { server async throws(TrebuchetError) in try await server.closeConnection(number, for: peer)
            }
        }
        return .last(Self.nothing)
    }

    private static var nothing: HTTPResponse { page(404, InspectorViews.nothing).response }

    private func respond(
        _ answer: @escaping @Sendable (TrebuchetServer) async throws(TrebuchetError) -> InspectorJSON?
    ) -> PlainResponse {
        requestGuard.respond { server in
            let (status, json) = await InspectorViews.json { () async throws(TrebuchetError) in
                try await answer(server)
            }
            return Self.page(status, json)
        }
    }

    private static func page(_ status: Int, _ json: InspectorJSON) -> StreamedResponse {
        StreamedResponse(
            HTTPResponse(status: status, headers: ["Content-Type": "application/json; charset=utf-8"]),
            body: json.bytes)
    }
}
