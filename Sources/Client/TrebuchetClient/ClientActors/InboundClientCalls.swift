internal import Bytes
internal import Platform
internal import Transports
internal import TrebuchetActors
internal import TrebuchetWire

/// The client that runs calls from its server. Only on its event loop.
protocol InboundCallHost: AnyObject, Sendable {
    var hosted: InboundClientCalls { get }
    var loop: any EventLoop { get }
    var system: TrebuchetActorSystem? { get }
    /// The actors of the client.
    var locals: LocalActors { get }
    /// The exported actors, which the server may call.
    var exportedActors: ExportedActors { get }
    /// The maximum number of concurrent calls from the server, `TrebuchetClient.Options.callsFromServer`.
    var callsFromServer: Int { get }
    /// The maximum size of a response in bytes.
    var answerSize: Int { get }
    /// Sends a response over the connection of its call, if that still exists.
    func answer(over number: Int, _ message: () -> [UInt8])
    /// Handles the response of a call that came over a connection.
    func hostedCallEnded(over number: Int)
}

/// The calls of a server to the actors of a client. Only on the client's event loop.
final class InboundClientCalls {
    /// The identity of a call.
    private struct Key: Hashable {
        /// The number of the connection.
        let number: Int
        let callID: [UInt8]
    }

    /// The time after a call's deadline in which the server can cancel it.
    private static let patience = Duration.seconds(2)

    private unowned let core: any InboundCallHost
    private var running: [Key: InboundClientCall] = [:]
    /// The server of the current connection as a caller.
    private var caller: (number: Int, caller: Caller)?

    init(_ core: any InboundCallHost) { self.core = core }

    /// Returns the number of calls from a connection without a response.
    func count(over number: Int) -> Int { running.keys.count { $0.number == number } }

    func invoke(_ message: borrowing Message, over number: Int) {
        let key = Key(number: number, callID: Array(message.callID))
        // A callID in use belongs to a call whose response is pending.
        guard running[key] == nil else { return }
        guard running.count < core.callsFromServer else {
            let limit = core.callsFromServer
            let text =
                "limit reached: \(limit) calls from the server to this client are in flight (TrebuchetClient.Options.callsFromServer)"
            return answer(key, .failure(TrebuchetError(.rateLimited, text)))
        }
        let limit = Duration.milliseconds(message.envelope.pointee.timeoutMilliseconds ?? 60_000)
        let call = InboundClientCall(after: limit, on: core.loop)
        // Set before the start, because the call may end immediately. Normally the server ends a call; this timer handles calls
        // that it has forgotten.
        call.state.value.timer = core.loop.schedule(after: limit + Self.patience, for: self) { calls in
            calls.endCall(key, TrebuchetError(.timeout, "the call took longer than \(limit)"))
        }
        do {
            try start(call, key, message)
        } catch {
            call.state.value.timer?.cancel()
            answer(key, .failure(error))
        }
    }

    private func start(_ call: InboundClientCall, _ key: Key, _ message: borrowing Message) throws {
        let name = message.actorName
        guard let system = core.system, let states = system.shard(of: core.loop),
            core.exportedActors.contains(ActorName(name)), let record = core.locals.referredRecord(name, in: system)
        else {
            throw TrebuchetError(
                .actorNotFound,
                "the client has no actor '\(name.prefix(bytes: ActorName.longest))' that this server may call")
        }
        guard message.kind == .invocation else { throw notForClients("repeated calls", message) }
        let operation: CallOperation
        switch record.type.target(message.target) {
        case .method(let method):
            let method = method.takeUnretainedValue()
            guard !method.isIdempotent else { throw notForClients("calls of @Idempotent methods", message) }
            let envelope = message.envelope
            guard envelope.pointee.arguments.count == method.arguments,
                envelope.pointee.genericSubstitutions.count == method.generics
            else {
                throw TrebuchetError(
                    .invalidArguments,
                    "\(method.name) takes \(method.arguments.counted("argument")) and "
                        + method.generics.counted("generic substitution")
                )
            }
            operation = try states.operation(record, method, message)
        case .stream: throw notForClients("streams", message)
        case .unknown(let method):
            throw TrebuchetError(
                .methodNotFound,
                "actor '\(name.prefix(bytes: ActorName.longest))' has no method '\(method.prefix(bytes: 128))'; it has "
                    + record.type.names.joined(separator: ", "))
        }
        running[key] = call
        let finish: CallCompletion = { [core] outcome in core.loop.run { core.hosted.finish(key, outcome) } }
        let server = server(over: key.number)
        guard let trace = message.trace else {
            return Caller.$current.withValue(server) { CallTask.start(record, operation, call, finish) }
        }
        let observed = ObservedCall(passing: trace)
        call.state.value.observedCall = observed
        observed.during { Caller.$current.withValue(server) { CallTask.start(record, operation, call, finish) } }
    }

    private func notForClients(_ what: String, _ message: borrowing Message) -> TrebuchetError {
        TrebuchetError(
            .methodNotFound,
            "actor '\(message.actorName.prefix(bytes: ActorName.longest))' lives in a client, which does not support \(what): "
                + "\(message.target.prefix(bytes: 128))")
    }

    /// Returns the server at the other end of a connection.
    private func server(over number: Int) -> Caller {
        if let caller, caller.number == number { return caller.caller }
        let created = Caller(connection: CallerConnection(ofServer: ()))
        caller = (number, created)
        return created
    }

    /// Cancels a call on request of the server.
    func cancel(_ message: borrowing Message, over number: Int) {
        let key = Key(number: number, callID: Array(message.callID))
        endCall(key, TrebuchetError(.cancelled, "the call was cancelled by its caller"))
    }

    private func endCall(_ key: Key, _ error: TrebuchetError) {
        running[key]?.cancel()
        finish(key, .failure(error))
    }

    /// Cancels the calls of a lost connection.
    func lost(_ number: Int) {
        for (key, call) in running where key.number == number {
            running[key] = nil
            call.state.value.observedCall?.markEnded()
            call.cancel()
        }
        guard let caller, caller.number == number else { return }
        self.caller = nil
        caller.caller.connection.didClose()
    }

    private func finish(_ key: Key, _ outcome: CallOutcome) {
        guard let call = running.removeValue(forKey: key) else { return }
        call.state.value.timer?.cancel()
        call.state.value.observedCall?.markEnded()
        answer(key, outcome)
        core.hostedCallEnded(over: key.number)
    }

    // MARK: Responses

    private func answer(_ key: Key, _ outcome: CallOutcome) {
        core.answer(over: key.number) { message(key.callID, outcome) }
    }

    private func message(_ callID: [UInt8], _ outcome: CallOutcome) -> [UInt8] {
        let coder = core.system?.acquireCoder() ?? ValueCoder()
        defer { core.system?.releaseCoder(coder) }
        let limit = core.answerSize
        var buffer = ByteBuffer()
        do {
            let result = try outcome.get()
            var value = ByteBuffer()
            try result.write(with: coder, into: &value)
            let bytes = value.bytes
            let count = EnvelopeWriter.responseCount(callID: callID.count, result: bytes.count)
            guard count <= limit else {
                throw TrebuchetError(
                    .internal,
                    "the message with the result has \(count) bytes; the server's limit is \(limit) (ServerLimits.clientCalls.responseBytes "
                        + "at the server)")
            }
            callID.withUnsafeBytes {
                EnvelopeWriter.response(
                    callID: $0, result: result.isVoid ? nil : bytes, into: &buffer)
            }
        } catch {
            // The server is the trusted receiver of the client's errors.
            let disclosure = ErrorDisclosure(showsText: true, log: { _ in })
            let failure = CallFailure(error, of: "the method", coder: coder, disclosure).truncated(limit)
            callID.withUnsafeBytes {
                EnvelopeWriter.failure(
                    callID: $0, code: failure.code, message: failure.message, type: failure.type, data: failure.data,
                    into: &buffer)
            }
        }
        return Array(buffer.bytes)
    }
}
