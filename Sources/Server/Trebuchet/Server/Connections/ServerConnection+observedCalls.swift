internal import Bytes
internal import Networking
internal import Platform
internal import TrebuchetActors
internal import TrebuchetWire

/// The metrics and events of a connection.
extension ServerConnection {
    package var connectionNumber: UInt64 { name.number }

    private var events: EventBus { shard.events }

    var peer: ServerEvent.Peer {
        ServerEvent.Peer(connection: name.number, address: address, principal: callerConnection?.principal?.id)
    }

    // MARK: The connection

    // A connection of another server is counted there, and the server's connection to itself is not counted.

    func didOpen() {
        guard upstream == nil, !isServer else { return }
        shard.counts.count(.connectionsOpened)
        guard events.isEnabled(for: .connections) else { return }
        events.emit(.connectionOpened(peer))
        let (events, number) = (events, name.number)
        // Without an event handler at the start of the connection there are no sign-in events.
        callerConnection?.onPrincipalChange { [weak connection = callerConnection] in
            guard let connection else { return }
            events.emit(
                .authenticated(
                    ServerEvent.Peer(
                        connection: number, address: connection.remoteAddress, principal: connection.principal?.id)))
        }
    }

    func didClose(_ closing: ServerEvent.Closing) {
        guard upstream == nil, !isServer else { return }
        shard.counts.count(.connectionsClosed)
        shard.counts.count(closing.cause.metric)
        guard events.isEnabled(for: .connections) else { return }
        events.emit(
            .connectionClosed(
                peer, duration: .nanoseconds(Int64(clamping: MonotonicClock.now &- opened)), closing: closing))
    }

    /// Records that a limit was reached.
    ///
    /// - Parameter setting: The name of the property in `ServerLimits`.
    func countRejection(limit setting: String) {
        shard.counts.countRefusal(by: setting)
        if events.isEnabled(for: .limits) { events.emit(.limitReached(setting: setting, peer)) }
    }

    // MARK: Calls

    /// The maximum size of arguments that events show.
    private static let maximumArgumentsLength = 2_048

    /// Creates the observed call. Returns nil for an untraced call of which only spans are wanted. An unsampled trace needs no
    /// event.
    ///
    /// - Parameter startsTrace: True if the call starts a trace when it belongs to none.
    func makeObservedCall(
        _ method: String, isRedacted: Bool, _ type: ActorType, _ message: borrowing Message, startsTrace: Bool
    ) -> ObservedCall? {
        let (trace, parent) = trace(of: message, startsTrace: startsTrace)
        let isMarking = events.isEnabled(for: .callsOrVersions)
        if !isMarking {
            guard let trace else { return nil }
            guard trace.isSampled else { return ObservedCall(passing: trace) }
        }
        let call = ServerEvent.Call(
            number: events.nextCallNumber(), peer: peer, actor: message.actorName, type: type.name, method: method,
            trace: trace,
            arguments: events.isEnabled(for: .arguments)
                ? isRedacted || shard.context.hiddenTypes.contains(type) ? .redacted : Self.arguments(of: message) : nil
        )
        if events.isEnabled(for: .calls) { events.emit(.callStarted(call)) }
        return ObservedCall(call, parent: parent, isMarking: isMarking)
    }

    /// Returns the span of a call and its parent span. Without span handlers or sampling it is the caller's span, for the log.
    private func trace(of message: borrowing Message, startsTrace: Bool) -> (TraceContext?, parent: UInt64?) {
        let isTraced = events.isEnabled(for: .spans)
        if let caller = message.trace { return (isTraced && caller.isSampled ? caller.child : caller, caller.span) }
        return startsTrace ? (TraceContext(), nil) : (nil, nil)
    }

    /// Returns whether this call starts a trace. Evaluate once for each call without a caller's trace.
    @inline(__always)
    func beginsTrace(_ message: borrowing Message) -> Bool {
        events.isEnabled(for: .spans) && shard.traces.next(events.sampling) && message.trace == nil
    }

    private static func arguments(of message: borrowing Message) -> ServerEvent.Call.Arguments {
        let ranges = message.envelope.pointee.arguments
        let bytes = ranges.reduce(2) { $0 + Int($1.count) + 1 }
        guard bytes <= maximumArgumentsLength else { return .tooLong(bytes: bytes) }
        return .json(argumentArray(of: message))
    }

    /// Returns the arguments as a JSON array.
    static func argumentArray(of message: borrowing Message) -> [UInt8] {
        let ranges = message.envelope.pointee.arguments
        var json = [UInt8(ascii: "[")]
        for (index, range) in ranges.enumerated() {
            if index > 0 { json.append(UInt8(ascii: ",")) }
            json += message.bytes(range)
        }
        json.append(UInt8(ascii: "]"))
        return json
    }

    @inline(__always)
    func observedCallIfNeeded(_ method: ActorMethod, _ type: ActorType, _ message: borrowing Message) -> ObservedCall? {
        events.isEnabled(for: .callsVersionsOrSpans)
            ? makeObservedCall(
                method.name, isRedacted: method.isRedacted, type, message, startsTrace: beginsTrace(message))
            : nil
    }

    /// Records where the time of a call is counted, and notifies event handlers of its start.
    ///
    /// - Parameter type: nil while the actor is not activated.
    func recordCallStart(
        _ method: ActorMethod, of type: ActorType?, _ message: borrowing Message, in call: InFlightCall
    ) {
        call.row = method.row
        guard events.isEnabled(for: .callsVersionsOrSpans),
            let type = type ?? shard.directory.type(of: ActorName(message.actorName))
        else { return }
        call.observedCall = makeObservedCall(
            method.name, isRedacted: method.isRedacted, type, message, startsTrace: beginsTrace(message))
    }

    /// Notifies event handlers of a refusal of any kind.
    @inline(never)
    func reportRejection(of message: borrowing Message, _ error: any Error) {
        guard events.isEnabled(for: .calls) else { return }
        reportRejection(of: message.actorName, message.target, error)
    }

    func reportRejection(of actor: String, _ target: String, _ error: any Error) {
        guard events.isEnabled(for: .calls) else { return }
        events.emit(
            .callRejected(
                peer, actor: actor.prefix(bytes: 128), target: target.prefix(bytes: 128), error: code(of: error),
                reason: (error as? TrebuchetError)?.message.prefix(bytes: 2_048) ?? ""))
    }

    /// - Parameter code: The code of the error for the client; nil for none.
    func didEnd(_ call: InFlightCall, _ code: TrebuchetError.Code?) {
        if let row = call.row { shard.counts.count(row: row, duration: MonotonicClock.now &- call.began) }
        call.observedCall?.reportEnd(to: events, code)
    }

    /// Notifies event handlers that the caller has disconnected.
    func didAbandon(_ call: InFlightCall) {
        if !call.isAnswered {
            call.observedCall?.reportEnd(to: events, .cancelled, isContinuing: call.sharedExecution != nil)
        }
    }

    /// Sends a result with the span of the call, if its caller has sent a trace; otherwise as without `observed`.
    @inline(__always)
    func succeed(_ callID: UnsafeRawBufferPointer, _ result: UnsafeRawBufferPointer?, _ observed: ObservedCall?) {
        guard let observed, let traceparent = observed.traceparent else { return succeed(callID, result) }
        succeed(callID, result, traceparent)
    }

    @inline(never)
    private func succeed(
        _ callID: UnsafeRawBufferPointer, _ result: UnsafeRawBufferPointer?, _ traceparent: String
    ) {
        // An upper bound of the size of `traceparent`.
        let count = EnvelopeWriter.responseCount(callID: callID.count, result: result?.count ?? 0) + 80
        // Without `traceparent` it may be small enough.
        guard count <= largestMessage else { return succeed(callID, result) }
        if shard.states.isMarked, !catchUpStreams() {
            return deferResponse {
                EnvelopeWriter.response(callID: callID, result: result, traceparent: traceparent, into: &$0)
            }
        }
        link.send { EnvelopeWriter.response(callID: callID, result: result, traceparent: traceparent, into: &$0) }
    }

    func fail(_ callID: UnsafeRawBufferPointer, _ error: any Error, _ observed: ObservedCall?) {
        guard isOpen else { return }
        let isHeld = shard.states.isMarked && !catchUpStreams()
        let failure = failure(error, of: "the method")
        if let call = observed?.call, events.isEnabled(for: .calls) { reportFailure(failure, of: call) }
        let traceparent = observed?.traceparent
        let write = { (buffer: inout ByteBuffer) in
            EnvelopeWriter.failure(
                callID: callID, code: failure.code, message: failure.message, type: failure.type, data: failure.data,
                retryAfterMilliseconds: failure.retryAfterMilliseconds,
                traceparent: traceparent, into: &buffer)
        }
        if isHeld { deferResponse(write) } else { link.send(write) }
    }

    @inline(never)
    private func reportFailure(_ failure: CallFailure, of call: ServerEvent.Call) {
        // The message may contain arguments.
        let isShown = failure.code == .invalidArguments && call.arguments.map { $0 != .redacted } == true
        let thrown = failure.thrown
        guard thrown != nil || isShown else { return }
        events.emit(
            .callFailed(
                ServerEvent.Failure(
                    call: call.number, errorDescription: thrown, errorCode: failure.number,
                    reason: isShown ? failure.message : nil)))
    }

    /// Returns what the client receives of an error of a call or stream.
    func failure(_ error: any Error, of what: String) -> CallFailure {
        let failure = CallFailure(error, of: what, coder: shard.coder, shard.context.disclosure)
            .truncated(Int(largestMessage))
        if !isServer { shard.counts.count(.error(failure.code.rawValue)) }
        return failure
    }

    /// Returns the code that a call with this encoded result ends with: `.internal` if the result exceeds the client's message
    /// limit, else nil.
    func code(_ callID: UnsafeRawBufferPointer, _ result: UnsafeRawBufferPointer) -> TrebuchetError.Code? {
        EnvelopeWriter.responseCount(callID: callID.count, result: result.count) > largestMessage ? .internal : nil
    }

    func code<Success>(of outcome: Result<Success, any Error>) -> TrebuchetError.Code? {
        if case .failure(let error) = outcome { code(of: error) } else { nil }
    }

    func code(of error: any Error) -> TrebuchetError.Code {
        (error as? TrebuchetError)?.code ?? (error is CancellationError ? .cancelled : .application)
    }

    // MARK: Streams

    func didBegin(_ stream: ServerEvent.Stream, _ start: ServerEvent.StreamStart) {
        switch start {
        case .initial: break
        case .resumed: shard.counts.count(.resumedInPlace)
        case .resynchronized: shard.counts.count(.resumedWithSnapshot)
        case .eventsMissed: shard.counts.count(.resumedTooLate)
        }
        if start != .eventsMissed { shard.counts.count(.streamsBegun) }
        if events.isEnabled(for: .streams) { events.emit(.streamStarted(stream, peer, start)) }
    }

    func didEnd(_ subscription: StreamSubscription, _ reason: String) {
        guard events.isEnabled(for: .streams), let label = subscription.broadcaster.label else { return }
        events.emit(.streamEnded(label, connection: name.number, reason: reason))
    }

    /// Returns the type of an actor by the name that event handlers receive.
    func typeName(of actor: ActorName) -> String { shard.directory.type(of: actor)?.name ?? "other" }
}

extension ObservedCall? {
    @inline(__always)
    func during<Result>(_ body: () throws -> Result) rethrows -> Result {
        guard let observed = self else { return try body() }
        return try observed.during(body)
    }
}
