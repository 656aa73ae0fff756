internal import Bytes
internal import TrebuchetActors
internal import TrebuchetWire
internal import WebSockets

/// A call over HTTP. Only on the reactor of the request.
class HTTPCall: HTTPActorRequest {
    private var call: HTTPCallRequest?

    /// Reads the call of a request. Throws the refusal of a request.
    func readCall(_ head: HTTPRequestHead) throws(HTTPRejection) -> HTTPCallRequest { try HTTPCallRequest(head) }

    /// Returns the arguments as JSON, separated by commas, given the body.
    func arguments(_ body: [UInt8]) throws(EnvelopeError) -> [UInt8] { try HTTPCallRequest.arguments(body) }

    final override func readHead() throws(HTTPRejection) { call = try readCall(received.request.head) }

    final override func refusal(of caller: Caller?) -> HTTPProblem? {
        guard call?.idempotencyKey != nil, caller?.principal == nil else { return nil }
        let text =
            "\(IdempotencyKey.field) requires an authenticated caller, whose keys are distinguished from those of others"
        return HTTPProblem(.invalidArguments, text)
    }

    final override func message(_ body: [UInt8]) throws(EnvelopeError) -> [UInt8] {
        guard let call else { throw EnvelopeError("no call") }
        let principal = caller?.principal?.id
        let session = call.idempotencyKey.flatMap { key in principal.map { IdempotencyKey.session(key, of: $0) } }
        return call.message(try arguments(body), session: session)
    }

    /// Responds with a message to the client; a message that does not concern the call has no effect.
    final override func receive(_ message: borrowing Message) {
        let envelope = message.envelope
        switch message.kind {
        case .response:
            guard !envelope.pointee.hasError else { return respond(failure(message)) }
            guard !envelope.pointee.result.isAbsent else {
                return respond(StreamedResponse(HTTPResponse(status: 204, headers: HTTPProblem.fields(type: nil))))
            }
            let result = Array(message.bytes(envelope.pointee.result))
            var reply = StreamedResponse(
                HTTPResponse(status: 200, headers: HTTPProblem.fields(type: "application/json")), body: result)
            reply.ownBytes = result.count
            respond(reply)
        case .streamStart:
            let target = message.target.prefix(bytes: 128)
            let text = "'\(target)' is a stream, which \(HTTPStreamRequest.prefix)ACTOR/STATE or a WebSocket observes"
            respond(HTTPProblem(.methodNotFound, text))
        case .error:
            // A message that the connection refuses as a whole.
            guard message.text(envelope.pointee.code) == ErrorCode.malformedEnvelope.rawValue else { return }
            respond(HTTPProblem(.malformedEnvelope, message.text(envelope.pointee.errorMessage)))
        default: break
        }
    }

    final override func didEnd(_ reason: String) {
        respond(HTTPProblem(.unknownOutcome, "the server ended the request during the call: \(reason)"))
    }
}
