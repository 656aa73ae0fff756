internal import Bytes
internal import Distributed
internal import Platform
internal import Relays
internal import Synchronization
internal import Transports
internal import TrebuchetWire

/// The calls and streams of a client over its connection.
///
/// `@unchecked Sendable`: `link`, `pending` and `streams` are accessed only on the event loop; the rest is constant or has a
/// lock.
final class ClientCore: @unchecked Sendable {
    let loop: any EventLoop
    let options: TrebuchetClient.Options
    let errors = ErrorTypes()
    /// The server's address for messages: `ws://localhost:8080`.
    let peerName: String
    /// The actor system. It is set once, before the client is returned to the user, and is weak to avoid a reference cycle.
    nonisolated(unsafe) weak var system: TrebuchetActorSystem?
    /// True when each client with the same `peerName` has the same server.
    private let addressIdentifiesServer: Bool
    /// The number of the current server, with which its connection names start; 0 until it is known.
    let peerNumber = Atomic<UInt64>(0)
    let methods = RemoteMethods()
    let exportedActors = ExportedActors()
    /// The actors that live in this client.
    let locals = LocalActors()
    /// A relay whose version increases each time the server revokes the connection's authentication.
    let revocations = StateRelay(())
    private let lastNumber = Atomic<UInt64>(0)
    /// The sampling of new traces; nil if calls start none.
    private let sampling: TraceSampling?

    let connection: ClientConnection
    /// The current connection.
    var link: (any ClientLink)?
    var linkNumber = 0
    /// True after `goAway`: calls and streams wait for the next connection, because the server may not read them any more.
    var isServerDraining = false
    /// The number of the connection over which the client's identity was sent.
    var introducedOver = 0
    private(set) lazy var hosted = InboundClientCalls(self)
    var pending: [UInt64: PendingCall] = [:]
    var outboundCalls = OutboundCallQueue(terms: .usual)
    /// The maximum message size that the server has advertised, in bytes.
    var advertisedMessageSize = Int.max
    var streams = StreamRegistry()
    var envelope = ScannedEnvelope()
    private var deadlineTimer: LoopTimer?
    private var deadlineTimerTime = UInt64.max

    /// Creates a core.
    ///
    /// - Parameter addressIdentifiesServer: whether `peerName` identifies the server.
    init(
        loop: any EventLoop, options: TrebuchetClient.Options, peerName: String, addressIdentifiesServer: Bool,
        addresses: Int = 1
    ) {
        self.addressIdentifiesServer = addressIdentifiesServer
        sampling = options.traceSampling > 0 ? TraceSampling(ratio: options.traceSampling) : nil
        self.loop = loop
        self.options = options
        self.peerName = peerName
        connection = ClientConnection(
            loop: loop, policy: options.reconnect, addresses: addresses, hasTokenProvider: options.token != nil)
        connection.setDelegate(self)
    }

    /// The values that decoders need to turn actor names into references.
    var userInfo: [CodingUserInfoKey: any Sendable] { system?.userInfo ?? [:] }

    var serverNumber: UInt64 { peerNumber.load(ordering: .relaxed) }

    func reachesSameAddress(as other: ClientCore) -> Bool {
        addressIdentifiesServer && other.addressIdentifiesServer && peerName == other.peerName
    }

    // MARK: Calls

    /// Sends a call and waits for its response: the result in JSON, or nil for a method without a result.
    ///
    /// - Parameter metadata: the metadata of the call; nil for that of the current task.
    func call(
        actorID: String, target: String, _ request: CallRequest, isIdempotent: Bool = false,
        metadata: CallMetadata? = nil
    ) async throws -> [UInt8]? {
        let number = lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
        let now = loop.now
        let asked = Deadline.current.map { $0 &+ loop.timeAhead }
        if let asked, asked <= now {
            throw TrebuchetError(.timeout, "the deadline had passed before \(target) was called")
        }
        let own = options.callTimeout.map { now &+ $0.nanoseconds } ?? .max
        let metadata = try (metadata ?? CallMetadata.sent).encoded()
        let traced = beginTracing()
        let message: PendingCall.Message
        let limit = options.serverMessageSize
        if isIdempotent {
            let count = request.arguments.reduce(0) { $0 + $1.count }
            if count > limit { throw MessageSizeErrors.tooLarge(target, count, own: limit, advertised: nil) }
            message = .repeatable(
                RetryableCall(
                    number: number, actorID: actorID, target: target, request: request, deadline: asked,
                    traceparent: traced?.context.traceparent, metadata: metadata))
        } else {
            let bytes = InvocationMessage(
                number: number, actorID: actorID, target: target, request: request,
                timeoutMilliseconds: asked.map { Int(($0 - now + 999_999) / 1_000_000) },
                traceparent: traced?.context.traceparent, metadata: metadata
            ).bytes
            if bytes.count > limit {
                throw MessageSizeErrors.tooLarge(target, bytes.count, own: limit, advertised: nil)
            }
            message = .encoded(bytes)
        }
        let call = PendingCall(number: number, name: target, message: message, deadline: min(own, asked ?? .max))
        do {
            let result: [UInt8]? = try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    call.continuation = continuation
                    loop.run { self.start(call) }
                }
            } onCancel: {
                call.isCancelled.store(true, ordering: .relaxed)
                loop.execute { self.cancel(number) }
            }
            if let traced { reportCallEnd(traced, target, of: actorID, nil) }
            return result
        } catch {
            if let traced { reportCallEnd(traced, target, of: actorID, error) }
            throw error
        }
    }

    // MARK: Traces

    /// Starts the span of a call; nil for a call without a trace.
    private func beginTracing() -> TracedCall? {
        let current = TraceContext.current
        guard current != nil || sampling?.next() == true else { return nil }
        return TracedCall(of: current, isReported: options.onSpanEnd != nil)
    }

    private func reportCallEnd(_ traced: TracedCall, _ target: String, of actor: String, _ error: (any Error)?) {
        guard let listener = options.onSpanEnd, let span = traced.span(target, of: actor, error) else { return }
        listener(span)
    }

    // MARK: Sending

    private func start(_ call: PendingCall) {
        if call.isCancelled.load(ordering: .relaxed) { return call.finish(.failure(CancellationError())) }
        guard link != nil || options.whileDisconnected == .wait && connection.isExpected else {
            return call.finish(.failure(notConnected))
        }
        guard pending.count < options.callsInFlight else {
            let text =
                "\(options.callsInFlight) calls of this client are in flight, which is the limit "
                + "(TrebuchetClient.Options.callsInFlight)"
            return call.finish(.failure(TrebuchetError(.rateLimited, text)))
        }
        pending[call.number] = call
        if call.deadline < deadlineTimerTime { scheduleDeadlineCheck(call.deadline) }
        guard let link, !isServerDraining else { return }
        guard outboundCalls.isEmpty, outboundCalls.hasRoom(for: call, startingStreams: streams.startingCount) else {
            return outboundCalls.enqueue(call)
        }
        send(call, over: link)
    }

    /// Sends waiting calls, as far as the limits allow.
    func sendNext() {
        guard !outboundCalls.isEmpty, let link, !isServerDraining else { return }
        while let call = outboundCalls.next(startingStreams: streams.startingCount) { send(call, over: link) }
    }

    /// The maximum size of a sent message, in bytes.
    private var messageLimit: Int { min(options.serverMessageSize, advertisedMessageSize) }

    private func send(_ call: PendingCall, over link: any ClientLink) {
        // The call may be the first that contains a reference to a client actor.
        if introducedOver != linkNumber { sendHello(over: link) }
        switch call.message {
        case .encoded(let bytes):
            guard bytes.count <= messageLimit else { return endTooLarge(call, bytes.count) }
            call.message = .encoded([])
            sendCall(call, bytes, over: link)
        case .repeatable(var repeatable):
            guard let bytes = repeatable.next(over: link.callSession, at: loop.now) else {
                pending[call.number] = nil
                let text =
                    "\(call.name) was sent, but the connection was lost before the response; the current server has no idempotency cache, "
                    + "so the call cannot be repeated. It may have been executed: check its effects"
                return call.finish(.failure(TrebuchetError(.unknownOutcome, text)))
            }
            // Adding the session name may have made it too large.
            guard bytes.count <= messageLimit else { return endTooLarge(call, bytes.count) }
            call.message = .repeatable(repeatable)
            sendCall(call, bytes, over: link)
        }
    }

    /// Sends a call. The state is updated before, because a link may deliver a response, or report its end, during the call of
    /// `send`.
    private func sendCall(_ call: PendingCall, _ bytes: [UInt8], over link: any ClientLink) {
        call.sentByteCount = bytes.count
        call.connection = linkNumber
        outboundCalls.didSend(call)
        link.send(bytes)
    }

    private func endTooLarge(_ call: PendingCall, _ count: Int) {
        pending[call.number] = nil
        call.finish(.failure(tooLarge(call.name, count)))
    }

    private func tooLarge(_ what: String, _ count: Int) -> TrebuchetError {
        MessageSizeErrors.tooLarge(
            what, count, own: options.serverMessageSize,
            advertised: advertisedMessageSize == .max ? nil : advertisedMessageSize)
    }

    private var notConnected: TrebuchetError {
        let advice =
            connection.isExpected
            ? "connecting" : connection.isClosed ? "the client was closed" : "call connect() first"
        return TrebuchetError(.unavailable, "there is no connection to \(peerName); \(advice)")
    }

    /// Removes a call from the pending ones. Its connection may have been kept only for it.
    func removePendingCall(_ number: UInt64) -> PendingCall? {
        guard let call = pending.removeValue(forKey: number) else { return nil }
        if call.connection != linkNumber {
            connection.callEnded(number: call.connection)
        } else if link != nil {
            outboundCalls.didEnd(call)
        }
        return call
    }

    private func cancel(_ number: UInt64) {
        guard let call = removePendingCall(number) else { return }
        sendCancellation(of: call)
        finish(call, .failure(CancellationError()))
        sendNext()
    }

    private func finish(_ call: PendingCall, _ outcome: Result<[UInt8]?, any Error>) {
        call.finish(outcome)
        if call.connection == 0 { outboundCalls.didLeave() }
    }

    private func sendCancellation(of call: PendingCall) {
        if call.connection == linkNumber { link?.send(OutgoingMessage.cancel(call.number)) }
    }

    /// Sets the timer that serves all calls: it is due at the earliest deadline and then checks all of them.
    private func scheduleDeadlineCheck(_ deadline: UInt64) {
        deadlineTimer?.cancel()
        deadlineTimerTime = deadline
        let now = loop.now
        deadlineTimer = loop.schedule(after: .nanoseconds(Int64(clamping: deadline > now ? deadline - now : 0))) {
            [weak self] in
            self?.expire()
        }
    }

    private func expire() {
        let now = loop.now
        var next = UInt64.max
        for (number, call) in pending {
            guard call.deadline <= now else {
                next = min(next, call.deadline)
                continue
            }
            _ = removePendingCall(number)
            sendCancellation(of: call)
            finish(call, .failure(TrebuchetError(.timeout, timeoutMessage(of: call))))
        }
        sendNext()
        deadlineTimerTime = .max
        if next != .max { scheduleDeadlineCheck(next) }
    }

    private func timeoutMessage(of call: PendingCall) -> String {
        guard call.isUnsent else { return "\(call.name) had no response before its deadline" }
        return "\(call.name) was not sent before its deadline: \(waitingReason(of: call))"
    }

    private func waitingReason(of call: PendingCall) -> String {
        if isServerDraining {
            return "\(peerName) is draining and accepts no more calls, and no other connection exists yet"
        }
        guard link == nil else { return outboundCalls.reason(for: call) }
        let detail =
            switch connection.states.currentValue {
            case .connecting(let attempt, let error?):
                ": connection attempt \(attempt) is in progress after \(error.message)"
            case .connecting(let attempt, nil): ": connection attempt \(attempt) is in progress"
            default: ""
            }
        return "there was no connection to \(peerName)\(detail)"
    }

    // MARK: Streams

    /// Observes a state. The stream fails if there is no connection and none is being made.
    ///
    /// - Parameter incremental: The storage of the value, if its type supports incremental changes.
    func observe(
        _ target: StreamTarget, reading: StreamReading = .latest, incremental: (any IncrementalState)? = nil,
        holding hold: ClientConnectionLease? = nil
    ) -> EncodedStream {
        let number = lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
        let stream = EncodedStream(
            of: target, reading: reading, incrementalState: incremental, userInfo: userInfo,
            report: options.reportUndecodable
        ) {
            self.restart(number)
        } release: {
            withExtendedLifetime(hold) { self.stopObserving(number) }
        }
        let sink = StreamSink(of: stream)
        var request = target
        request.metadata = CallMetadata.sent
        let since: EventBookmark? = if case .events(_, let since, _) = reading { since } else { nil }
        loop.run { [request] in
            guard self.link != nil || self.connection.isExpected else { return sink.finish(.failed(self.notConnected)) }
            self.startStream(
                number, self.streams.subscribe(callNumber: number, target: request, sink: sink, since: since))
        }
        return stream
    }

    func startStream(_ number: UInt64, _ mode: StreamRegistry.StartMode) {
        guard let link, !isServerDraining else { return }
        let message: [UInt8]
        do throws(TrebuchetError) {
            message = OutgoingMessage.start(number, mode, try metadata(of: mode))
        } catch {
            return streams.fail(callNumber: number, error: error)
        }
        guard message.count <= messageLimit else {
            return streams.fail(callNumber: number, error: tooLarge("to observe", message.count))
        }
        link.send(message)
    }

    func resubscribe(_ resubscription: StreamRegistry.Resubscription) {
        link?.send(OutgoingMessage.streamEnd(resubscription.streamID))
        startStream(resubscription.callNumber, .invocation(resubscription.target))
    }

    /// Restarts a stream whose changes do not fit the stored value.
    func restart(_ number: UInt64) {
        loop.run { if let resubscription = self.streams.stopKeeping(number) { self.resubscribe(resubscription) } }
    }

    func stopObserving(_ number: UInt64) {
        loop.run {
            switch self.streams.remove(callNumber: number) {
            case .end(let streamID)?: self.link?.send(OutgoingMessage.streamEnd(streamID))
            // Otherwise requests would fill the server's limits while the actor cannot be activated.
            case .cancel(let callNumber)?: self.link?.send(OutgoingMessage.cancel(callNumber))
            case nil: break
            }
        }
    }
}

/// The effect of connection changes on calls and streams.
extension ClientCore: ClientConnectionDelegate {
    func connection(uses link: any ClientLink, number: Int) {
        self.link = link
        linkNumber = number
        isServerDraining = false
        outboundCalls.removeAll()
        // The new connection may lead to another server.
        advertisedMessageSize = .max
        peerNumber.store(HandshakeField.server(ofSession: link.callSession), ordering: .relaxed)
        introduceClient(over: link)
        // Streams first, so that a client that calls and observes receives the changes made by its calls.
        for (number, mode) in streams.restartAll() { startStream(number, mode) }
        for call in pending.values.filter({ $0.connection == 0 }).sorted(by: { $0.number < $1.number }) {
            outboundCalls.enqueue(call)
        }
        sendNext()
    }

    func connectionLost(number: Int, _ error: TransportError) {
        hosted.lost(number)
        if error.cause is MessageTooLarge { endRefused(number) }
        if number == linkNumber {
            link = nil
            isServerDraining = false
            outboundCalls.removeAll()
        }
        let lost = pending.values.filter { $0.connection == number }
        for call in lost.sorted(by: { $0.number < $1.number }) {
            if call.isRepeatable, connection.isExpected {
                call.connection = 0
                // A connection that was kept for its calls has broken while another one exists.
                if link != nil { outboundCalls.enqueue(call) }
            } else {
                endUnknown(call, error)
            }
        }
        sendNext()
    }

    /// Handles a connection that the server has closed because of a message that is too large. The largest unanswered call is
    /// assumed to be the cause, or others were too large as well. It is not sent again over any connection.
    private func endRefused(_ connection: Int) {
        let sent = pending.values.filter { $0.connection == connection }
        guard let call = sent.max(by: { $0.sentByteCount < $1.sentByteCount }) else { return }
        pending[call.number] = nil
        let error = MessageSizeErrors.refused(call.name, call.sentByteCount, limit: options.serverMessageSize)
        call.finish(.failure(error))
    }

    private func endUnknown(_ call: PendingCall, _ error: TransportError) {
        pending[call.number] = nil
        let text = "\(call.name) was sent but has no response; it may have been executed: \(error.message)"
        call.finish(.failure(TrebuchetError(.unknownOutcome, text)))
    }

    func callsUnderWay(number: Int) -> Int {
        pending.values.count { $0.connection == number } + hosted.count(over: number)
    }

    var needsConnection: Bool { !pending.isEmpty || streams.count > 0 }

    func connectionAbandoned(_ error: TransportError) {
        let failure = TrebuchetError(.unavailable, error.message)
        for call in pending.values where call.connection == 0 {
            guard call.isUnsent else {
                endUnknown(call, error)
                continue
            }
            pending[call.number] = nil
            call.finish(.failure(failure))
        }
        streams.removeAll(failure)
    }
}
