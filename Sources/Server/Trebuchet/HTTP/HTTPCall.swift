internal import Bytes
internal import Networking
internal import Transports
internal import TrebuchetActors
internal import TrebuchetWire
internal import WebSockets

/// A call over HTTP: the handler of its request, and the link of a connection that exists for this call alone. So the call has the same
/// checks, limits and events as the calls of other clients. Only on the reactor of the request.
final class HTTPCall: RequestHandler, MessageLink {
    private let received: ReceivedRequest
    private let shard: ServerShard
    private let admission: HTTPAdmission
    private var call: HTTPCallRequest?
    private var caller: Caller?
    /// Its place among the requests of its host and principal, until the response.
    private var reservation: QuotaReservation?
    private var connection: ServerConnection?
    private var isAnswered = false
    /// True while the connection handles the message.
    private var isReceiving = false

    init(_ received: ReceivedRequest, at shard: ServerShard, _ admission: HTTPAdmission) {
        (self.received, self.shard, self.admission) = (received, shard, admission)
    }

    private var limits: ServerLimits { shard.limits }

    // MARK: RequestHandler

    func begin() {
        do throws(HTTPRejection) {
            call = try HTTPCallRequest(received.request.head)
        } catch {
            return refuse(HTTPProblem(error))
        }
        guard !shard.isDraining else { return refuse(Self.shuttingDown) }
        admission.admit(received, identifies: !admission.access.isOpen) { outcome in
            guard !self.isAnswered else { return }
            switch outcome {
            case .refused(let problem): self.refuse(problem)
            case .admitted(let caller, let reservation): self.admitted(caller, reservation)
            }
        }
    }

    private func admitted(_ caller: Caller?, _ reservation: QuotaReservation) {
        (self.caller, self.reservation) = (caller, reservation)
        guard call?.idempotencyKey == nil || caller?.principal != nil else {
            let text =
                "\(IdempotencyKey.field) requires an authenticated caller, whose keys are distinguished from those of others"
            return refuse(HTTPProblem(.invalidArguments, text))
        }
        received.readBody(
            HTTPBodyLimits(
                bytes: limits.messages.inboundBytes, time: limits.messages.timeout,
                settings: ("messages.inboundBytes", "messages.timeout")))
    }

    func didReceive(_ body: [UInt8]) {
        guard !isAnswered, let call else { return }
        guard !shard.isDraining else { return refuse(Self.shuttingDown) }
        let message: [UInt8]
        do throws(EnvelopeError) {
            let principal = caller?.principal?.id
            let session = call.idempotencyKey.flatMap { key in principal.map { IdempotencyKey.session(key, of: $0) } }
            message = try call.message(body, session: session)
        } catch {
            return refuse(HTTPProblem(.invalidArguments, error.message))
        }
        // Other servers have the same limit for the whole message.
        guard message.count <= limits.messages.inboundBytes else {
            let text = "the call is over \(limits.messages.inboundBytes) bytes (messages.inboundBytes)"
            return refuse(HTTPProblem(status: 413, text, code: .invalidArguments))
        }
        let connection = ServerConnection(self, name: shard.newConnectionName(), shard: shard, caller: caller)
        if shard.context.hasRates { connection.authorization.shareBuckets(sharedBuckets) }
        self.connection = connection
        isReceiving = true
        message.withUnsafeBytes { connection.receive($0) }
        isReceiving = false
        if isAnswered { endConnection(.client) }
    }

    /// The rates of the connection count for all of its requests.
    private var sharedBuckets: ConnectionBuckets {
        if let buckets = received.attachment as? ConnectionBuckets { return buckets }
        let buckets = ConnectionBuckets()
        received.attachment = buckets
        return buckets
    }

    func didReject(_ rejection: HTTPRejection) { refuse(HTTPProblem(rejection)) }

    func didDisconnect() {
        isAnswered = true
        reservation = nil
        endConnection(.connectionLost)
    }

    // MARK: Responses

    private static var shuttingDown: HTTPProblem { HTTPProblem(.unavailable, "the server is shutting down") }

    /// Responds to a request that made no call.
    private func refuse(_ problem: HTTPProblem) { respond(StreamedResponse(problem.response), isRefusal: true) }

    private func respond(_ reply: StreamedResponse, isRefusal: Bool = false) {
        guard !isAnswered else { return }
        isAnswered = true
        reservation = nil
        shard.events.countHTTPRequest(status: reply.response.status)
        received.respond(reply, isRefusal: isRefusal)
        guard connection != nil, !isReceiving else { return }
        // Later: this may be called by the connection.
        let call = LoopBound(self, on: shard.reactor)
        shard.reactor.execute { call.value.endConnection(.client) }
    }

    private func endConnection(_ cause: ServerEvent.Closing.Cause) {
        connection?.linkDidClose(ServerEvent.Closing(cause))
        connection = nil
    }

    /// Returns the response for a message to the client; nil for a message that does not concern the call.
    private func response(to message: borrowing Message) -> StreamedResponse? {
        let envelope = message.envelope
        switch message.kind {
        case .response:
            guard !envelope.pointee.hasError else { return StreamedResponse(failure(message).response) }
            guard !envelope.pointee.result.isAbsent else {
                return StreamedResponse(HTTPResponse(status: 204, headers: HTTPProblem.fields(type: nil)))
            }
            let result = Array(message.bytes(envelope.pointee.result))
            var reply = StreamedResponse(
                HTTPResponse(status: 200, headers: HTTPProblem.fields(type: "application/json")), body: result)
            reply.ownBytes = result.count
            return reply
        case .streamStart:
            let target = message.target.prefix(bytes: 128)
            let text = "'\(target)' is a stream; HTTP calls reach methods only, and a WebSocket also streams"
            return StreamedResponse(HTTPProblem(.methodNotFound, text).response)
        case .error:
            // A message that the connection refuses as a whole.
            guard message.text(envelope.pointee.code) == ErrorCode.malformedEnvelope.rawValue else { return nil }
            let text = message.text(envelope.pointee.errorMessage)
            return StreamedResponse(HTTPProblem(.malformedEnvelope, text).response)
        default: return nil
        }
    }

    private func failure(_ message: borrowing Message) -> HTTPProblem {
        let envelope = message.envelope
        return HTTPProblem(
            ErrorCode(rawValue: message.text(envelope.pointee.errorCode)), message.text(envelope.pointee.errorMessage),
            type: envelope.pointee.errorType.isAbsent ? nil : message.text(envelope.pointee.errorType),
            data: envelope.pointee.errorData.isAbsent ? nil : Array(message.bytes(envelope.pointee.errorData)),
            retryAfterMilliseconds: envelope.pointee.retryAfterMilliseconds)
    }

    // MARK: MessageLink

    var isWritable: Bool { true }
    var countsAsConnection: Bool { false }
    var memory: MemoryAccount? { received.memory }
    var host: AddressKey? { received.host }
    var remoteAddress: SocketAddress? { received.request.remoteAddress }

    func send(_ body: (inout ByteBuffer) -> Void) {
        guard !isAnswered else { return }
        var buffer = ByteBuffer()
        // This use keeps the memory alive until then.
        defer { buffer.removeAll() }
        body(&buffer)
        let reply: StreamedResponse?? = shard.withMessage(buffer.bytes) { self.response(to: $0) }
        guard let reply else {
            let text = "the response cannot be read by the server itself"
            return respond(StreamedResponse(HTTPProblem(.internal, text).response))
        }
        if let reply { respond(reply) }
    }

    /// Streams do not continue.
    func send(shared: SharedBytes, headCount: Int, head: (inout ByteBuffer) -> Void) {}
    func inOneWrite(_ body: () -> Void) { body() }

    func sendDrainPing() {
        let call = LoopBound(self, on: shard.reactor)
        shard.reactor.execute { call.value.connection?.didReceiveDrainPong() }
    }

    func close(_ code: WebSocketCloseCode, reason: String) {
        let text = "the server ended the request during the call: \(reason)"
        respond(StreamedResponse(HTTPProblem(.unknownOutcome, text).response))
    }

    /// One call never has to wait.
    func pauseReading() {}
    func resumeReading() {}

    func abort() {
        isAnswered = true
        reservation = nil
        received.abort()
    }
}
