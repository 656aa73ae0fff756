internal import Bytes
internal import Networking
internal import Platform
internal import TrebuchetActors
internal import TrebuchetWire

/// Reports the connections, calls and streams of one reactor to event handlers and metrics. It selects the calls that start a trace.
///
/// Each function takes the peer that an event names; it is evaluated only if a handler receives the event. Isolated to the reactor.
final class ServerObserver {
    /// The maximum size of arguments that events show.
    private static let maximumArgumentsLength = 2_048

    private let events: EventBus
    private let counts: ShardMetrics
    private let directory: ActorDirectory
    /// The types whose arguments are not shown.
    private let hiddenTypes: ActorTypeSet
    /// Used in one step each time, so access to it needs no check.
    @exclusivity(unchecked) private var countdown = TraceSampling.Countdown()

    init(_ events: EventBus, _ counts: ShardMetrics, _ directory: ActorDirectory, hiding hiddenTypes: ActorTypeSet) {
        (self.events, self.counts, self.directory, self.hiddenTypes) = (events, counts, directory, hiddenTypes)
    }

    // MARK: Connections

    /// - Parameter caller: Its changes of the principal are reported, unless no handler exists at the start of the connection.
    func didOpen(_ peer: @autoclosure () -> ServerEvent.Peer, _ caller: CallerConnection?) {
        counts.count(.connectionsOpened)
        guard events.isEnabled(for: .connections) else { return }
        let peer = peer()
        events.emit(.connectionOpened(peer))
        let (events, number) = (events, peer.connection)
        caller?.onPrincipalChange { [weak caller] in
            guard let caller else { return }
            events.emit(
                .authenticated(
                    ServerEvent.Peer(
                        connection: number, address: caller.remoteAddress, principal: caller.principal?.id)))
        }
    }

    /// - Parameter opened: The start of the connection by the monotonic clock.
    func didClose(_ peer: @autoclosure () -> ServerEvent.Peer, opened: UInt64, _ closing: ServerEvent.Closing) {
        counts.count(.connectionsClosed)
        counts.count(closing.cause.metric)
        guard events.isEnabled(for: .connections) else { return }
        events.emit(
            .connectionClosed(
                peer(), duration: .nanoseconds(Int64(clamping: MonotonicClock.now &- opened)), closing: closing))
    }

    /// Records that a limit was reached.
    ///
    /// - Parameter setting: The name of the property in `ServerLimits`.
    func countRejection(limit setting: String, by peer: @autoclosure () -> ServerEvent.Peer) {
        counts.countRefusal(by: setting)
        if events.isEnabled(for: .limits) { events.emit(.limitReached(setting: setting, peer())) }
    }

    // MARK: Calls

    /// Creates the observed call of a message if a handler receives its events.
    @inline(__always)
    func beginCall(
        _ method: ActorMethod, of type: ActorType, _ message: borrowing Message,
        by peer: @autoclosure () -> ServerEvent.Peer
    ) -> ObservedCall? {
        guard events.isEnabled(for: .callsVersionsOrSpans) else { return nil }
        return beginCall(method, of: type, message, startsTrace: startsTrace(message), by: peer())
    }

    /// Creates the observed call. Returns nil for an untraced call of which only spans are wanted. An unsampled trace needs no
    /// event.
    ///
    /// - Parameter startsTrace: True if the call starts a trace when it belongs to none.
    func beginCall(
        _ method: ActorMethod, of type: ActorType, _ message: borrowing Message, startsTrace: Bool,
        by peer: @autoclosure () -> ServerEvent.Peer
    ) -> ObservedCall? {
        let (trace, parent) = trace(of: message, startsTrace: startsTrace)
        let isMarking = events.isEnabled(for: .callsOrVersions)
        if !isMarking {
            guard let trace else { return nil }
            guard trace.isSampled else { return ObservedCall(passing: trace) }
        }
        let isHidden = method.isRedacted || hiddenTypes.contains(type)
        let call = ServerEvent.Call(
            number: events.nextCallNumber(), peer: peer(), actor: message.actorName, type: type.name,
            method: method.name, trace: trace,
            arguments: events.isEnabled(for: .arguments) ? isHidden ? .redacted : Self.arguments(of: message) : nil)
        if events.isEnabled(for: .calls) { events.emit(.callStarted(call)) }
        return ObservedCall(call, parent: parent, isMarking: isMarking)
    }

    /// Returns whether this call starts a trace. Evaluate once for each call without a caller's trace.
    @inline(__always)
    func startsTrace(_ message: borrowing Message) -> Bool {
        events.isEnabled(for: .spans) && countdown.next(events.sampling) && message.trace == nil
    }

    /// Returns the span of a call and its parent span. Without span handlers or sampling it is the caller's span, for the log.
    private func trace(of message: borrowing Message, startsTrace: Bool) -> (TraceContext?, parent: UInt64?) {
        let isTraced = events.isEnabled(for: .spans)
        if let caller = message.trace { return (isTraced && caller.isSampled ? caller.child : caller, caller.span) }
        return startsTrace ? (TraceContext(), nil) : (nil, nil)
    }

    private static func arguments(of message: borrowing Message) -> ServerEvent.Call.Arguments {
        let ranges = message.envelope.pointee.arguments
        let bytes = ranges.reduce(2) { $0 + Int($1.count) + 1 }
        return bytes <= maximumArgumentsLength ? .json(message.argumentArray) : .tooLong(bytes: bytes)
    }

    /// Records where the time of an in-flight call is counted, and reports its start.
    ///
    /// - Parameter type: nil while the actor is not activated.
    func beginCall(
        _ call: InFlightCall, _ method: ActorMethod, of type: ActorType?, _ message: borrowing Message,
        by peer: @autoclosure () -> ServerEvent.Peer
    ) {
        call.row = method.row
        guard events.isEnabled(for: .callsVersionsOrSpans),
            let type = type ?? directory.type(of: ActorName(message.actorName))
        else { return }
        call.observedCall = beginCall(method, of: type, message, startsTrace: startsTrace(message), by: peer())
    }

    /// - Parameter code: The code of the error for the client; nil for none.
    func didEnd(_ call: InFlightCall, _ code: TrebuchetError.Code?) {
        if let row = call.row { counts.count(row: row, duration: MonotonicClock.now &- call.began) }
        call.observedCall?.reportEnd(to: events, code)
    }

    /// Reports that the caller of a call has disconnected.
    func didAbandon(_ call: InFlightCall) {
        if !call.isAnswered {
            call.observedCall?.reportEnd(to: events, .cancelled, isContinuing: call.sharedExecution != nil)
        }
    }

    /// Reports a refusal of any kind.
    @inline(never)
    func didReject(_ message: borrowing Message, _ error: any Error, by peer: @autoclosure () -> ServerEvent.Peer) {
        guard events.isEnabled(for: .calls) else { return }
        didReject(message.actorName, message.target, error, by: peer())
    }

    func didReject(
        _ actor: String, _ target: String, _ error: any Error, by peer: @autoclosure () -> ServerEvent.Peer
    ) {
        guard events.isEnabled(for: .calls) else { return }
        events.emit(
            .callRejected(
                peer(), actor: actor.prefix(bytes: 128), target: target.prefix(bytes: 128),
                error: TrebuchetError.Code(of: error),
                reason: (error as? TrebuchetError)?.message.prefix(bytes: 2_048) ?? ""))
    }

    /// Reports the error of a call with its text.
    @inline(never)
    func didFail(_ observed: ObservedCall?, _ failure: CallFailure) {
        guard let call = observed?.call, events.isEnabled(for: .calls) else { return }
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

    // MARK: Streams

    func didStart(
        _ stream: ServerEvent.Stream, _ start: ServerEvent.StreamStart, by peer: @autoclosure () -> ServerEvent.Peer
    ) {
        switch start {
        case .initial: break
        case .resumed: counts.count(.resumedInPlace)
        case .resynchronized: counts.count(.resumedWithSnapshot)
        case .eventsMissed: counts.count(.resumedTooLate)
        }
        if start != .eventsMissed { counts.count(.streamsBegun) }
        if events.isEnabled(for: .streams) { events.emit(.streamStarted(stream, peer(), start)) }
    }

    func didEnd(_ subscription: StreamSubscription, of connection: CallSessionID, _ reason: String) {
        guard events.isEnabled(for: .streams), let label = subscription.broadcaster.label else { return }
        events.emit(.streamEnded(label, connection: connection.number, reason: reason))
    }
}

extension Message {
    /// The arguments as a JSON array.
    var argumentArray: [UInt8] {
        var json = [UInt8(ascii: "[")]
        for (index, range) in envelope.pointee.arguments.enumerated() {
            if index > 0 { json.append(UInt8(ascii: ",")) }
            json += bytes(range)
        }
        json.append(UInt8(ascii: "]"))
        return json
    }
}

extension TrebuchetError.Code {
    /// The code that event handlers receive for an error.
    init(of error: any Error) {
        self = (error as? TrebuchetError)?.code ?? (error is CancellationError ? .cancelled : .application)
    }
}

extension ObservedCall? {
    @inline(__always)
    func during<Result>(_ body: () throws -> Result) rethrows -> Result {
        guard let observed = self else { return try body() }
        return try observed.during(body)
    }
}
