internal import Bytes
internal import Networking
internal import TrebuchetWire

/// A connection over which a server calls actors of its client. On its reactor.
protocol CallingConnection: AnyObject {
    var link: any MessageLink { get }
    /// Bytes of the largest message that its client takes.
    var largestMessage: UInt32 { get }
    /// Whether its client was sent away.
    var isDraining: Bool { get }
    func tooLarge(_ what: String, _ count: Int) -> TrebuchetError
    /// Ends what came over it.
    func linkDidClose()
}

/// What a connection has to do with the actors that live in its client: made when the client says who it is.
///
/// `@unchecked Sendable`: touched on the connection's reactor alone, but for what is constant.
final class HostingConnection: @unchecked Sendable {
    let client: HostingClient
    let reactor: Reactor
    /// Nil once the connection is gone.
    private var connection: (any CallingConnection)?
    /// Calls that were sent and not answered.
    private var asked: Set<UInt64> = []
    private var lastAsked: UInt64 = 0
    private var isFull = false

    init(_ connection: any CallingConnection, on reactor: Reactor, _ client: HostingClient) {
        self.connection = connection
        self.client = client
        self.reactor = reactor
    }

    /// Sends a call, unless the connection has gone meanwhile: then it is found out as not sent.
    func send(_ call: ClientCall) {
        guard let connection else { return }
        let message = call.message(at: reactor.now)
        guard message.count <= connection.largestMessage else {
            let error = connection.tooLarge(call.target, message.count)
            let refusal = TrebuchetError(.invalidArguments, error.message)
            return client.reactor.run { self.client.finish(call.number, .failure(refusal)) }
        }
        call.wasSent = true
        asked.insert(call.number)
        lastAsked = max(lastAsked, call.number)
        connection.link.send { $0.append(message) }
        guard !isFull, !connection.link.isWritable else { return }
        isFull = true
        client.reactor.run { self.client.hold(self) }
    }

    /// Tells that nobody waits for the answer any more.
    func cancel(_ number: UInt64) {
        guard asked.remove(number) != nil else { return }
        connection?.link.send { EnvelopeWriter.cancel(callID: String(number), into: &$0) }
    }

    /// Takes a client's answer. Throws when it was never asked.
    func answer(_ message: borrowing Message) throws(EnvelopeError) {
        let envelope = message.envelope
        let callID = String(decoding: message.callID, as: UTF8.self)
        guard let number = UInt64(callID), number <= lastAsked else {
            throw EnvelopeError("call '\(callID)' was never made, and needs no answer")
        }
        // One that comes late, of which the client could not know.
        guard asked.remove(number) != nil else { return }
        let limit = client.limits.clientAnswerSize
        let outcome: Result<[UInt8]?, any Error>
        if message.bytes.count > limit {
            let text =
                "the answer has \(message.bytes.count) bytes, and \(limit) are taken of a client "
                + "(ServerLimits.clientAnswerSize)"
            outcome = .failure(TrebuchetError(.internal, text))
        } else if envelope.pointee.hasError {
            outcome = .failure(
                TrebuchetError(
                    Self.code(message.text(envelope.pointee.errorCode)),
                    message.text(envelope.pointee.errorMessage),
                    type: envelope.pointee.errorType.isAbsent ? nil : message.text(envelope.pointee.errorType),
                    data: envelope.pointee.errorData.isAbsent ? nil : Array(message.bytes(envelope.pointee.errorData))))
        } else {
            let result = envelope.pointee.result
            outcome = .success(result.isAbsent ? nil : Array(message.bytes(result)))
        }
        client.reactor.run { self.client.finish(number, outcome) }
    }

    /// What a client's actor may say has gone wrong. The rest are words of a server to its clients, to whom such an error may be
    /// handed on.
    private static func code(_ text: String) -> TrebuchetError.Code {
        let codes: [ErrorCode] = [
            .actorNotFound, .methodNotFound, .invalidArguments, .rateLimited, .timeout, .cancelled, .unavailable,
            .internal,
        ]
        return .init(codes.first { $0.rawValue == text } ?? .application)
    }

    func linkDidBecomeWritable() {
        guard isFull else { return }
        isFull = false
        client.reactor.run { self.client.resume(self) }
    }

    /// The client has another connection, and so has left this one, of which the server may not know; one that the server has sent
    /// away still answers.
    func end() {
        guard let connection, !connection.isDraining else { return }
        connection.link.abort()
        connection.linkDidClose()
    }

    func linkDidClose() {
        connection = nil
        asked = []
        client.reactor.run { self.client.lost(self) }
    }
}
