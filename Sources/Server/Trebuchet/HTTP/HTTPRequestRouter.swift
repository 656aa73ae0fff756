internal import Synchronization
internal import Transports
internal import TrebuchetActors
internal import TrebuchetWire
internal import WebSockets

/// Selects the handler of HTTP requests that reach actors or have a route. Pages answer all others.
final class HTTPRequestRouter: Sendable {
    private let shards: [ServerShard]
    private let admission: HTTPAdmission
    private let routes: RouteTree
    /// The rule for pages of other origins; nil if none may read responses.
    private let cors: CORSRule?

    init(
        _ shards: [ServerShard], _ routes: RouteTree, _ access: AccessPolicy, _ cors: CORSRule?,
        _ context: ServerContext
    ) {
        (self.shards, self.routes, self.cors) = (shards, routes, cors)
        admission = HTTPAdmission(access: access, context: context)
    }

    /// Returns the response to a request, or its handler; nil for a request of a page. Called on the reactor of the request.
    func answer(_ request: PlainRequest) -> PlainResponse? {
        let found = find(request)
        guard let cors, let found else { return found }
        if let response = cors.preflight(request.head) {
            // The connection ends if a body follows, which would be read as the next request.
            return request.head.body == .empty ? .page(StreamedResponse(response)) : .last(response)
        }
        guard case .last(var response) = found else { return found }
        response.headers.replace(with: cors.fields(for: request.head))
        return .last(response)
    }

    private func find(_ request: PlainRequest) -> PlainResponse? {
        if request.head.path.hasPrefix(HTTPCallRequest.prefix) { return answerCall(request) }
        if admission.access.acceptsHTTPCalls, request.head.path.hasPrefix(HTTPStreamRequest.prefix) {
            return handled { HTTPStream($0, at: $1, $2) }
        }
        guard !routes.isEmpty, let components = RouteTree.components(of: request.head.path),
            components.first.map({ !HTTPRoute.reserved.contains($0) }) ?? true
        else { return nil }
        guard let match = routes.match(components) else { return missing(request) }
        guard let route = match.route(of: request.head.method) else {
            let problem = HTTPProblem(
                status: 405, "the path has routes of \(match.allowedMethods)", headers: ["Allow": match.allowedMethods])
            return .last(problem.response)
        }
        let parameters = Dictionary(zip(route.parameterNames, match.values)) { first, _ in first }
        switch route.action {
        case .program(let handler): return handled { HTTPRouteCall($0, to: route, handler, parameters, at: $1, $2) }
        case .method(let method): return handled { HTTPMethodCall($0, to: method, parameters, at: $1, $2) }
        }
    }

    /// The response to a GET that neither a route nor a page answers; nil at a server without routes.
    var notFound: PlainResponse? {
        routes.isEmpty ? nil : .last(HTTPProblem(status: 404, "no route and no page has this path").response)
    }

    private func missing(_ request: PlainRequest) -> PlainResponse? {
        ["GET", "HEAD"].contains(request.head.method) ? nil : notFound
    }

    private func answerCall(_ request: PlainRequest) -> PlainResponse? {
        guard admission.access.acceptsHTTPCalls else {
            // Other methods are requests of a page.
            guard request.head.method == "POST" else { return nil }
            let text = "calls over HTTP are not enabled (AccessPolicy.acceptsHTTPCalls, serve --http-calls)"
            return .last(HTTPProblem(status: 404, text).response)
        }
        return handled { HTTPCall($0, at: $1, $2) }
    }

    private func handled(
        _ make: @escaping @Sendable (ReceivedRequest, ServerShard, HTTPAdmission) -> any RequestHandler
    ) -> PlainResponse {
        .handled { [shards, admission, cors] received in
            if let cors { received.fields = cors.fields(for: received.request.head) }
            guard let shard = shards.first(where: { $0.reactor === received.reactor }) else {
                return RefusedRequest(received, HTTPProblem(.unavailable, "no reactor"))
            }
            return make(received, shard, admission)
        }
    }
}

/// The handler of a request that is refused by its head. Only on the reactor of the request.
private final class RefusedRequest: RequestHandler {
    private let received: ReceivedRequest
    private let problem: HTTPProblem

    init(_ received: ReceivedRequest, _ problem: HTTPProblem) { (self.received, self.problem) = (received, problem) }

    func begin() { received.respond(StreamedResponse(problem.response), isRefusal: true) }
    func didReceive(_ body: [UInt8]) {}
    func didReject(_ rejection: HTTPRejection) {}
    func didDisconnect() {}
}
