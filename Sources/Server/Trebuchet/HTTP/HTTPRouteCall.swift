internal import Networking
internal import Transports
internal import TrebuchetActors
internal import TrebuchetWire
internal import WebSockets

/// A request of a route: runs the handler of the program in a task, and responds. Only on the reactor of the request.
final class HTTPRouteCall: RequestHandler {
    private let received: ReceivedRequest
    private let shard: ServerShard
    private let admission: HTTPAdmission
    private let route: HTTPRoute
    private let handler: HTTPRoutes.Handler
    private let parameters: [String: String]
    private var caller: Caller?
    /// Its place among the requests of its host and principal, until the handler has ended.
    private var reservation: QuotaReservation?
    private var work: Task<Void, Never>?
    /// The body of the request, which counts as buffered memory until the handler has ended.
    private var heldBody: CountedBytes?
    private var timer: LoopTimer?
    private var isAnswered = false

    init(
        _ received: ReceivedRequest, to route: HTTPRoute, _ handler: @escaping HTTPRoutes.Handler,
        _ parameters: [String: String], at shard: ServerShard, _ admission: HTTPAdmission
    ) {
        (self.received, self.route, self.handler, self.parameters) = (received, route, handler, parameters)
        (self.shard, self.admission) = (shard, admission)
    }

    private var timeout: Duration { route.timeout ?? shard.limits.calls.timeout }

    // MARK: RequestHandler

    func begin() {
        guard !shard.isDraining else {
            return refuse(HTTPProblem(.unavailable, "the server is shutting down"))
        }
        admission.admit(received, identifies: route.isAuthenticated) { outcome in
            guard !self.isAnswered else { return }
            switch outcome {
            case .refused(let problem): self.refuse(problem)
            case .admitted(let caller, let reservation): self.admitted(caller, reservation)
            }
        }
    }

    private func admitted(_ caller: Caller?, _ reservation: QuotaReservation) {
        (self.caller, self.reservation) = (caller, reservation)
        guard !route.isAuthenticated || caller?.principal != nil else {
            return refuse(HTTPProblem(.unauthenticated, "the request requires credentials"))
        }
        received.readBody(
            HTTPBodyLimits(
                bytes: route.bodyBytes ?? shard.limits.messages.inboundBytes, time: shard.limits.messages.timeout,
                settings: (route.bodyBytes == nil ? "messages.inboundBytes" : "bodyBytes", "messages.timeout")))
    }

    func didReceive(_ body: [UInt8]) {
        guard !isAnswered else { return }
        heldBody = received.heldBody
        let head = received.request.head
        let request = RouteRequest(
            method: head.method, path: head.path,
            parameters: parameters,
            queryItems: RouteRequest.items(of: head.query), headers: head.headers, body: body,
            remoteAddress: received.request.remoteAddress, caller: caller, actorSystem: shard.system)
        let (handler, reactor) = (self.handler, shard.reactor)
        let pending = LoopBound(self, on: reactor)
        // Actors on this server are called directly and inherit it; others are called over a connection of the server.
        let server = Caller(connection: CallerConnection(ofServer: (), isShared: true))
        work = Task {
            await Caller.$current.withValue(server) {
                let outcome: Result<HTTPResponse, any Error>
                do {
                    outcome = .success(try await handler(request))
                } catch {
                    outcome = .failure(error)
                }
                guard case .success(let response) = outcome, let chunks = response.chunks else {
                    return reactor.execute { pending.value.didEnd(outcome) }
                }
                guard await reactor.perform({ pending.value.beginStreaming(response) }) else { return }
                do {
                    try await chunks { try await HTTPRouteCall.write($0, over: pending, on: reactor) }
                    reactor.execute { pending.value.didEndStreaming(nil) }
                } catch {
                    reactor.execute { pending.value.didEndStreaming(error) }
                }
            }
        }
        timer = reactor.schedule(after: timeout, for: self) { $0.timeOut() }
    }

    func didReject(_ rejection: HTTPRejection) { refuse(HTTPProblem(rejection)) }

    func didDisconnect() {
        isAnswered = true
        cancel()
        resumeWriter(CancellationError())
        caller?.connection.didClose()
    }

    // MARK: The end

    private func didEnd(_ outcome: Result<HTTPResponse, any Error>) {
        (reservation, work, heldBody) = (nil, nil, nil)
        timer?.cancel()
        guard !isAnswered else { return }
        switch outcome {
        case .success(let response): respond(reply(response))
        case .failure(let error):
            let failure = CallFailure(error, of: "the route", coder: shard.coder, shard.context.disclosure)
            respond(StreamedResponse(HTTPProblem(failure).response))
        }
    }

    private func timeOut() {
        guard !isAnswered else { return }
        cancel()
        // The body counts for the principal of this request, and another request of the connection may have another principal.
        if heldBody != nil { received.endConnectionAfterResponse() }
        respond(StreamedResponse(HTTPProblem(.timeout, "the route took longer than \(timeout)").response))
    }

    // MARK: Streamed bodies

    /// The task that waits until more may be written.
    private var writer: CheckedContinuation<Void, any Error>?

    /// Sends the head of a response with a streamed body. Returns false, and ends the request, if no body follows.
    private func beginStreaming(_ response: HTTPResponse) -> Bool {
        guard !isAnswered, (200...599).contains(response.status), ![204, 304].contains(response.status) else {
            didEnd(.success(response))
            return false
        }
        timer?.cancel()
        shard.events.countHTTPRequest(status: response.status)
        received.beginStreaming(prepared(response))
        guard received.request.head.method == "HEAD" else { return true }
        didEndStreaming(nil)
        return false
    }

    /// Writes a chunk of the body. Returns when the next one may follow.
    private static func write(
        _ chunk: [UInt8], over call: LoopBound<HTTPRouteCall>, on reactor: Reactor
    ) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            reactor.execute { call.value.write(chunk, continuation) }
        }
    }

    private func write(_ chunk: [UInt8], _ continuation: CheckedContinuation<Void, any Error>) {
        guard !isAnswered else { return continuation.resume(throwing: CancellationError()) }
        guard chunk.count <= shard.limits.messages.outboundBytes else {
            let text =
                "a chunk of the body has \(chunk.count) bytes; the limit is \(shard.limits.messages.outboundBytes)"
            return continuation.resume(
                throwing: TrebuchetError(.internal, "\(text) (ServerLimits.messages.outboundBytes)"))
        }
        // A sequence that writes concurrently would be unbounded.
        guard writer == nil else {
            return continuation.resume(throwing: TrebuchetError(.internal, "two chunks of the body at the same time"))
        }
        received.write(chunk.count) { $0.append(chunk) }
        if received.isWritable { continuation.resume() } else { writer = continuation }
    }

    private func resumeWriter(_ error: (any Error)? = nil) {
        guard let writer else { return }
        self.writer = nil
        if let error { writer.resume(throwing: error) } else { writer.resume() }
    }

    func didBecomeWritable() { resumeWriter() }

    private func didEndStreaming(_ error: (any Error)?) {
        (reservation, work, heldBody) = (nil, nil, nil)
        guard !isAnswered else { return }
        isAnswered = true
        caller?.connection.didClose()
        guard let error else { return received.endStreaming() }
        let failure = CallFailure(error, of: "the route", coder: shard.coder, shard.context.disclosure)
        shard.context.logAt(
            .error, "route \(route.method) \(route.path): the body ended with an error: \(failure.message)")
        received.abort()
    }

    /// Cancels the handler, which counts until it has ended.
    private func cancel() {
        timer?.cancel()
        if let work { work.cancel() } else { reservation = nil }
    }

    private func refuse(_ problem: HTTPProblem) { respond(StreamedResponse(problem.response), isRefusal: true) }

    private func respond(_ reply: StreamedResponse, isRefusal: Bool = false) {
        guard !isAnswered else { return }
        isAnswered = true
        caller?.connection.didClose()
        if work == nil { reservation = nil }
        shard.events.countHTTPRequest(status: reply.response.status)
        received.respond(reply, isRefusal: isRefusal)
    }

    /// Returns the response of the program as it is sent.
    private func reply(_ response: HTTPResponse) -> StreamedResponse {
        guard (200...599).contains(response.status) else {
            shard.context.logAt(
                .error,
                "route \(route.method) \(route.path) responded with the status \(response.status), which is none")
            return StreamedResponse(HTTPProblem(.internal, "the route has an invalid response").response)
        }
        let response = prepared(response)
        var reply = StreamedResponse(response, body: response.body)
        reply.ownBytes = response.body.count
        return reply
    }

    /// Returns the response of the program with the fields of all responses.
    private func prepared(_ response: HTTPResponse) -> HTTPResponse {
        var response = response
        // The connection sets these itself.
        for name in ["Content-Length", "Transfer-Encoding", "Connection"] { response.headers.remove(name) }
        for field in HTTPProblem.fields(type: nil).fields where response.headers[field.name] == nil {
            response.headers.add(field.name, field.value)
        }
        if [204, 304].contains(response.status) { response.body = [] }
        let hasBody = !response.body.isEmpty || response.chunks != nil
        if hasBody, response.headers[Self.sniffing] == nil { response.headers.add(Self.sniffing, "nosniff") }
        return response
    }

    private static let sniffing = "X-Content-Type-Options"
}
