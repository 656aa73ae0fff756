internal import Bytes
internal import Networking
internal import Transports
internal import TrebuchetActors
internal import TrebuchetWire
internal import WebSockets

/// A request over HTTP that reaches an actor: the handler of the request, and the link of a connection that exists for this request
/// alone. So it has the same checks, limits and events as the messages of other clients. Only on the reactor of the request.
///
/// A subclass reads the request, makes the message of its connection, and responds with the messages that come back.
class HTTPActorRequest: RequestHandler, MessageLink {
    final let received: ReceivedRequest
    final let shard: ServerShard
    private let admission: HTTPAdmission
    final private(set) var caller: Caller?
    /// Its place among the requests of its host and principal, until the end of the response.
    private var reservation: QuotaReservation?
    final private(set) var connection: ServerConnection?
    /// True at the end of the response.
    final private(set) var isAnswered = false
    /// True while the connection handles the message.
    private var isReceiving = false

    init(_ received: ReceivedRequest, at shard: ServerShard, _ admission: HTTPAdmission) {
        (self.received, self.shard, self.admission) = (received, shard, admission)
    }

    final var limits: ServerLimits { shard.limits }

    // MARK: For subclasses

    /// Reads the head of the request. Throws the refusal of a request.
    func readHead() throws(HTTPRejection) {}

    /// Returns the refusal of a caller; nil for a permitted one.
    func refusal(of caller: Caller?) -> HTTPProblem? { nil }

    /// The maximum size of the body.
    var bodyBytes: (limit: Int, setting: String) { (limits.messages.inboundBytes, "messages.inboundBytes") }

    /// Returns the message of the client, given the body.
    func message(_ body: [UInt8]) throws(EnvelopeError) -> [UInt8] { [] }

    /// Handles a message to the client.
    func receive(_ message: borrowing Message) {}

    /// Responds after the server has ended the connection.
    func didEnd(_ reason: String) {}

    // MARK: RequestHandler

    final func begin() {
        do throws(HTTPRejection) {
            try readHead()
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
        if let problem = refusal(of: caller) { return refuse(problem) }
        received.readBody(
            HTTPBodyLimits(
                bytes: bodyBytes.limit, time: limits.messages.timeout,
                settings: (bodyBytes.setting, "messages.timeout")))
    }

    final func didReceive(_ body: [UInt8]) {
        guard !isAnswered else { return }
        guard !shard.isDraining else { return refuse(Self.shuttingDown) }
        let message: [UInt8]
        do throws(EnvelopeError) {
            message = try self.message(body)
        } catch {
            return refuse(HTTPProblem(.invalidArguments, error.message))
        }
        // Other servers have the same limit for the whole message.
        guard message.count <= limits.messages.inboundBytes else {
            let text = "the request is over \(limits.messages.inboundBytes) bytes (messages.inboundBytes)"
            return refuse(HTTPProblem(status: 413, text, code: .invalidArguments))
        }
        let connection = ServerConnection(self, name: shard.newConnectionName(), shard: shard, caller: caller)
        if shard.context.hasRates { connection.authorization.shareBuckets(sharedBuckets) }
        self.connection = connection
        // The message counts as a call.
        received.releaseBody()
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

    final func didReject(_ rejection: HTTPRejection) { refuse(HTTPProblem(rejection)) }

    final func didBecomeWritable() { connection?.linkDidBecomeWritable() }

    final func didDisconnect() {
        isAnswered = true
        reservation = nil
        if connection == nil { caller?.connection.didClose() }
        endConnection(.connectionLost)
    }

    // MARK: Responses

    private static var shuttingDown: HTTPProblem { HTTPProblem(.unavailable, "the server is shutting down") }

    /// Responds to a request that made no connection.
    private func refuse(_ problem: HTTPProblem) { respond(StreamedResponse(problem.response), isRefusal: true) }

    final func respond(_ problem: HTTPProblem) { respond(StreamedResponse(problem.response)) }

    final func respond(_ reply: StreamedResponse, isRefusal: Bool = false) {
        guard !isAnswered else { return }
        shard.events.countHTTPRequest(status: reply.response.status)
        finish { received.respond(reply, isRefusal: isRefusal) }
    }

    /// Ends the response by `end`, and the connection.
    final func finish(_ end: () -> Void) {
        guard !isAnswered else { return }
        isAnswered = true
        reservation = nil
        end()
        // A request that made no connection has none that would do this.
        if connection == nil { caller?.connection.didClose() }
        guard connection != nil, !isReceiving else { return }
        // Later: this may be called by the connection.
        let request = LoopBound(self, on: shard.reactor)
        shard.reactor.execute { request.value.endConnection(.client) }
    }

    /// Resets the connection of the client.
    final func disconnect(_ cause: ServerEvent.Closing.Cause) {
        abort()
        endConnection(cause)
    }

    private func endConnection(_ cause: ServerEvent.Closing.Cause) {
        connection?.linkDidClose(ServerEvent.Closing(cause))
        connection = nil
    }

    /// Returns the problem of a response with an error.
    final func failure(_ message: borrowing Message) -> HTTPProblem {
        let envelope = message.envelope
        return HTTPProblem(
            ErrorCode(rawValue: message.text(envelope.pointee.errorCode)), message.text(envelope.pointee.errorMessage),
            type: envelope.pointee.errorType.isAbsent ? nil : message.text(envelope.pointee.errorType),
            data: envelope.pointee.errorData.isAbsent ? nil : Array(message.bytes(envelope.pointee.errorData)),
            retryAfterMilliseconds: envelope.pointee.retryAfterMilliseconds)
    }

    // MARK: MessageLink

    var isWritable: Bool { true }
    final var countsAsConnection: Bool { false }
    final var memory: MemoryAccount? { received.memory }
    final var pendingBytes: Int { received.pendingBytes }
    final var host: AddressKey? { received.host }
    final var remoteAddress: SocketAddress? { received.request.remoteAddress }

    final func send(_ body: (inout ByteBuffer) -> Void) {
        guard !isAnswered else { return }
        var buffer = ByteBuffer()
        // This use keeps the memory alive until then.
        defer { buffer.removeAll() }
        body(&buffer)
        let wasRead: Void? = shard.withMessage(buffer.bytes) { receive($0) }
        if wasRead == nil { didEnd("the message to the client cannot be read by the server itself") }
    }

    func send(shared: SharedBytes, headCount: Int, head: (inout ByteBuffer) -> Void) {}
    func inOneWrite(_ body: () -> Void) { body() }

    final func sendDrainPing() {
        let request = LoopBound(self, on: shard.reactor)
        shard.reactor.execute { request.value.connection?.didReceiveDrainPong() }
    }

    final func close(_ code: WebSocketCloseCode, reason: String) { didEnd(reason) }

    /// One message never has to wait.
    final func pauseReading() {}
    final func resumeReading() {}

    final func abort() {
        isAnswered = true
        reservation = nil
        received.abort()
    }
}
