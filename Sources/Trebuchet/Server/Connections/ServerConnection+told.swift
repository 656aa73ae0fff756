internal import Bytes
internal import Networking
internal import Platform
internal import TrebuchetActors
internal import TrebuchetWire

/// What a connection counts, and tells those who listen.
extension ServerConnection {
    var connectionNumber: UInt64 { name.number }

    private var events: ServerEvents { shard.events }

    var peer: ServerEvent.Peer {
        ServerEvent.Peer(connection: name.number, address: address, principal: caller?.principal?.id)
    }

    // MARK: The connection

    // One of another node's is counted there, and one of the server's to itself is none that anybody asks for.

    func didOpen() {
        guard upstream == nil, !isServer else { return }
        shard.counts.count(.connectionsOpened)
        guard events.wants(.connections) else { return }
        events.tell(.connectionOpened(peer))
        let (events, number) = (events, name.number)
        // Where nobody listened when it came, nobody is told who signs in over it.
        caller?.connection.onPrincipalChange { [weak connection = caller?.connection] in
            guard let connection else { return }
            events.tell(
                .authenticated(
                    ServerEvent.Peer(
                        connection: number, address: connection.remoteAddress, principal: connection.principal?.id)))
        }
    }

    func didClose(_ why: ServerEvent.Closing) {
        guard upstream == nil, !isServer else { return }
        shard.counts.count(.connectionsClosed)
        shard.counts.count(why.cause.figure)
        guard events.wants(.connections) else { return }
        events.tell(
            .connectionClosed(
                peer, lasted: .nanoseconds(Int64(clamping: MonotonicClock.now &- opened)), why: why))
    }

    /// Something of its was refused because of a limit.
    ///
    /// - Parameter setting: in `ServerLimits`.
    func didReach(_ setting: String) {
        shard.counts.countRefusal(by: setting)
        if events.wants(.limits) { events.tell(.limitReached(setting: setting, peer)) }
    }

    // MARK: Calls

    /// Of arguments that are longer nobody is shown anything.
    private static let longestArguments = 2_048

    /// Nil for a call that only those might want to hear of who trace, and that is not traced. Nothing is made of one whose trace is not kept.
    ///
    /// - Parameter begins: whether it begins a trace, where it is part of none.
    func told(
        _ method: String, isRedacted: Bool, _ type: ActorType, _ message: borrowing Message, begins: Bool
    ) -> ToldCall? {
        let (trace, parent) = trace(of: message, begins: begins)
        let isMarking = events.wants(.callsOrVersions)
        if !isMarking {
            guard let trace else { return nil }
            guard trace.isSampled else { return ToldCall(passing: trace) }
        }
        let call = ServerEvent.Call(
            number: events.nextCall(), peer: peer, actor: message.actorName, type: type.name, method: method,
            trace: trace,
            arguments: events.wants(.arguments)
                ? isRedacted || !type.isInspectable ? .redacted : Self.arguments(of: message) : nil)
        if events.wants(.calls) { events.tell(.callBegan(call)) }
        return ToldCall(call, parent: parent, isMarking: isMarking)
    }

    /// The span of a call and the one that it is a child of. Where nobody hears of spans, or the trace is not kept, that of the caller, for the log.
    private func trace(of message: borrowing Message, begins: Bool) -> (TraceContext?, parent: UInt64?) {
        let isTraced = events.wants(.spans)
        if let caller = message.trace { return (isTraced && caller.isSampled ? caller.child : caller, caller.span) }
        return begins ? (TraceContext(), nil) : (nil, nil)
    }

    /// Whether this call begins a trace: asked once for each, unless it says what it is part of.
    @inline(__always)
    func beginsTrace(_ message: borrowing Message) -> Bool {
        events.wants(.spans) && shard.traces.next(events.sampling) && message.trace == nil
    }

    private static func arguments(of message: borrowing Message) -> ServerEvent.Call.Arguments {
        let ranges = message.envelope.pointee.arguments
        let bytes = ranges.reduce(2) { $0 + Int($1.count) + 1 }
        guard bytes <= longestArguments else { return .tooLong(bytes: bytes) }
        var json = [UInt8(ascii: "[")]
        for (place, range) in ranges.enumerated() {
            if place > 0 { json.append(UInt8(ascii: ",")) }
            json += message.bytes(range)
        }
        json.append(UInt8(ascii: "]"))
        return .json(json)
    }

    @inline(__always)
    func toldIfWanted(_ method: ActorMethod, _ type: ActorType, _ message: borrowing Message) -> ToldCall? {
        events.wants(.callsVersionsOrSpans)
            ? told(method.name, isRedacted: method.isRedacted, type, message, begins: beginsTrace(message)) : nil
    }

    /// Notes where the time of a call is counted, and tells that it begins.
    ///
    /// - Parameter type: nil while the actor is not made.
    func note(_ method: CalledMethod, of type: ActorType?, _ message: borrowing Message, in call: RunningCall) {
        call.row = method.row
        guard events.wants(.callsVersionsOrSpans),
            let type = type ?? shard.directory.type(of: ActorName(message.actorName))
        else { return }
        call.told = told(
            method.shownName, isRedacted: method.isRedacted, type, message, begins: beginsTrace(message))
    }

    /// Whatever a client is refused, and whyever, who listens is told.
    @inline(never)
    func tellRefusal(of message: borrowing Message, _ error: any Error) {
        guard events.wants(.calls) else { return }
        tellRefusal(of: message.actorName, message.target, error)
    }

    func tellRefusal(of actor: String, _ target: String, _ error: any Error) {
        guard events.wants(.calls) else { return }
        events.tell(
            .callRefused(
                peer, actor: actor.prefix(bytes: 128), target: target.prefix(bytes: 128), error: code(of: error),
                reason: (error as? TrebuchetError)?.message.prefix(bytes: 2_048) ?? ""))
    }

    /// - Parameter code: of the error that its client is told; nil for none.
    func didEnd(_ call: RunningCall, _ code: TrebuchetError.Code?) {
        if let row = call.row { shard.counts.count(row: row, took: MonotonicClock.now &- call.began) }
        call.told?.tell(endAt: events, code)
    }

    /// Nobody is there any more to be answered.
    func didAbandon(_ call: RunningCall) {
        if !call.isAnswered { call.told?.tell(endAt: events, .cancelled, goesOn: call.run != nil) }
    }

    /// The same as without `told`; who has sent a trace along is told the span of its call.
    @inline(__always)
    func succeed(_ callID: UnsafeRawBufferPointer, _ result: UnsafeRawBufferPointer?, _ told: ToldCall?) {
        guard let told, let traceparent = told.traceparent else { return succeed(callID, result) }
        succeed(callID, result, traceparent)
    }

    @inline(never)
    private func succeed(
        _ callID: UnsafeRawBufferPointer, _ result: UnsafeRawBufferPointer?, _ traceparent: String
    ) {
        // More than the member takes.
        let count = EnvelopeWriter.responseCount(callID: callID.count, result: result?.count ?? 0) + 80
        // Without it, it may be small enough.
        guard count <= largestMessage else { return succeed(callID, result) }
        if shard.states.isMarked { catchUpStreams() }
        link.send { EnvelopeWriter.response(callID: callID, result: result, traceparent: traceparent, into: &$0) }
    }

    func fail(_ callID: UnsafeRawBufferPointer, _ error: any Error, _ told: ToldCall?) {
        guard isOpen else { return }
        if shard.states.isMarked { catchUpStreams() }
        let failure = failure(error, of: "the method")
        if let call = told?.call, events.wants(.calls) { tell(failure, of: call) }
        let traceparent = told?.traceparent
        link.send {
            EnvelopeWriter.failure(
                callID: callID, code: failure.code, message: failure.message, type: failure.type, data: failure.data,
                retryAfterMilliseconds: failure.retryAfterMilliseconds,
                traceparent: traceparent, into: &$0)
        }
    }

    @inline(never)
    private func tell(_ failure: CallFailure, of call: ServerEvent.Call) {
        // It may have of the arguments in it.
        let isShown = failure.code == .invalidArguments && call.arguments.map { $0 != .redacted } == true
        let thrown = failure.thrown
        guard thrown != nil || isShown else { return }
        events.tell(
            .callFailed(
                ServerEvent.Failure(
                    call: call.number, thrown: thrown, number: failure.number,
                    reason: isShown ? failure.message : nil)))
    }

    /// What a client is told of an error that a call or stream has ended with.
    func failure(_ error: any Error, of what: String) -> CallFailure {
        let failure = CallFailure(error, of: what, coder: shard.coder(writing: dates), shard.parts.disclosure)
            .fitting(Int(largestMessage))
        if !isServer { shard.counts.count(.error(failure.code.rawValue)) }
        return failure
    }

    /// What a call ends with whose result lies there: with an error where its client does not take so much.
    func code(_ callID: UnsafeRawBufferPointer, _ result: UnsafeRawBufferPointer) -> TrebuchetError.Code? {
        EnvelopeWriter.responseCount(callID: callID.count, result: result.count) > largestMessage ? .internal : nil
    }

    func code<Success>(of outcome: Result<Success, any Error>) -> TrebuchetError.Code? {
        if case .failure(let error) = outcome { code(of: error) } else { nil }
    }

    func code(of error: any Error) -> TrebuchetError.Code {
        (error as? TrebuchetError)?.code ?? (error is CancellationError ? .cancelled : .application)
    }

    func count(_ outcome: RememberedAnswers.Memory.Outcome) {
        let figure: Figure =
            switch outcome {
            case .waits: .repeatsJoined
            case .answered: .repeatsAnswered
            case .refused: .repeatsRefused
            case .forgotten: .repeatsForgotten
            }
        shard.counts.count(figure)
    }

    // MARK: Streams

    func didBegin(_ stream: ServerEvent.Stream, _ beginning: ServerEvent.StreamBeginning) {
        switch beginning {
        case .first: break
        case .inPlace: shard.counts.count(.resumedInPlace)
        case .anew: shard.counts.count(.resumedAnew)
        case .tooLate: shard.counts.count(.resumedTooLate)
        }
        if beginning != .tooLate { shard.counts.count(.streamsBegun) }
        if events.wants(.streams) { events.tell(.streamBegan(stream, peer, beginning)) }
    }

    func didEnd(_ subscription: StreamSubscription, _ reason: String) {
        guard events.wants(.streams), let label = subscription.broadcaster.label else { return }
        events.tell(.streamEnded(label, connection: name.number, reason: reason))
    }

    /// The type of an actor, as those who listen know it.
    func typeName(of actor: ActorName) -> String { shard.directory.type(of: actor)?.name ?? "other" }
}

extension ToldCall? {
    @inline(__always)
    func during<Result>(_ body: () throws -> Result) rethrows -> Result {
        guard let told = self else { return try body() }
        return try told.during(body)
    }
}
