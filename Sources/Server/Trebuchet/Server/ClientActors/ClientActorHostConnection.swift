internal import Bytes
internal import Networking
internal import Synchronization
internal import Transports
internal import TrebuchetWire

/// A connection over which a server calls actors of its client. On its reactor.
protocol ClientCallingConnection: AnyObject {
    var link: any MessageLink { get }
    /// The maximum size in bytes of a message that its client accepts.
    var largestMessage: UInt32 { get }
    /// True if its client was drained.
    var isDraining: Bool { get }
    func tooLarge(_ what: String, _ count: Int) -> TrebuchetError
    /// Ends everything that belongs to the connection.
    func linkDidClose()
}

/// The part of a connection that calls actors of its client; created when the client sends its identity. Only on the connection's
/// reactor, except for constants.
final class ClientActorHostConnection: Sendable {
    let client: ClientActorHost
    let reactor: Reactor
    private let state: LoopVariable<State>

    private struct State {
        /// Nil after the connection has closed.
        var connection: (any ClientCallingConnection)?
        /// The numbers of calls that were sent and have no response.
        var pendingCallIDs: Set<UInt64> = []
        var lastAsked: UInt64 = 0
        var isFull = false
    }

    init(_ connection: sending any ClientCallingConnection, on reactor: Reactor, _ client: ClientActorHost) {
        state = LoopVariable(State(connection: connection), on: reactor)
        self.client = client
        self.reactor = reactor
    }

    /// Sends a call. If the connection has closed meanwhile, the call is later handled as unsent.
    func send(_ call: OutboundClientCall) {
        guard let connection = state.value.connection else { return }
        let message = call.message(at: reactor.now)
        guard message.count <= connection.largestMessage else {
            let error = connection.tooLarge(call.target, message.count)
            let refusal = TrebuchetError(.invalidArguments, error.message)
            return client.reactor.run { self.client.finish(call.number, .failure(refusal)) }
        }
        call.wasSent.store(true, ordering: .releasing)
        state.value.pendingCallIDs.insert(call.number)
        state.value.lastAsked = max(state.value.lastAsked, call.number)
        connection.link.send { $0.append(message) }
        guard !state.value.isFull, !connection.link.isWritable else { return }
        state.value.isFull = true
        client.reactor.run { self.client.pauseSending(self) }
    }

    /// Tells the client that a call was cancelled.
    func cancel(_ number: UInt64) {
        guard state.value.pendingCallIDs.remove(number) != nil else { return }
        state.value.connection?.link.send { EnvelopeWriter.cancel(callID: String(number), into: &$0) }
    }

    /// Handles a client's response. Throws if no such call was made.
    func answer(_ message: borrowing Message) throws(EnvelopeError) {
        let envelope = message.envelope
        let callID = String(decoding: message.callID, as: UTF8.self)
        guard let number = UInt64(callID), number <= state.value.lastAsked else {
            throw EnvelopeError("call '\(callID)' does not exist")
        }
        // A late response: the client may have sent it before it received the cancellation.
        guard state.value.pendingCallIDs.remove(number) != nil else { return }
        let limit = client.limits.clientCalls.responseBytes
        let outcome: Result<[UInt8]?, any Error>
        if message.bytes.count > limit {
            let text =
                "the response has \(message.bytes.count) bytes; the limit for a client is \(limit) "
                + "(ServerLimits.clientCalls.responseBytes)"
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

    /// Returns the error code of a client's response. Codes that a server uses towards clients are not accepted, since such an
    /// error may be passed on to other clients.
    private static func code(_ text: String) -> TrebuchetError.Code {
        let codes: [ErrorCode] = [
            .actorNotFound, .methodNotFound, .invalidArguments, .rateLimited, .timeout, .cancelled, .unavailable,
            .internal,
        ]
        return .init(codes.first { $0.rawValue == text } ?? .application)
    }

    func linkDidBecomeWritable() {
        guard state.value.isFull else { return }
        state.value.isFull = false
        client.reactor.run { self.client.resume(self) }
    }

    /// Ends the connection after the client has opened another one. The server may not have noticed the loss of this one.
    /// A drained connection stays open, since its client still responds.
    func close() {
        guard let connection = state.value.connection, !connection.isDraining else { return }
        connection.link.abort()
        connection.linkDidClose()
    }

    func linkDidClose() {
        state.value.connection = nil
        state.value.pendingCallIDs = []
        client.reactor.run { self.client.lost(self) }
    }
}
