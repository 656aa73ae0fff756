internal import Bytes
internal import Distributed
internal import Platform
internal import Transports
internal import Relays
internal import Synchronization
internal import TrebuchetWire

/// The calls and streams of a client over its connection.
///
/// `@unchecked Sendable`: `link`, `pending` and `streams` are touched on the reactor alone; the rest is constant or has
/// a lock.
final class ClientCore: @unchecked Sendable {
    let loop: any EventLoop
    let options: TrebuchetClient.Options
    let errors = ErrorTypes()
    /// For messages: `ws://localhost:8080`.
    let peerName: String
    /// Set once, before the client is handed out; the system holds no client either.
    nonisolated(unsafe) weak var system: TrebuchetActorSystem?
    /// Whether another client with the same `peerName` has the same server.
    private let isAddressed: Bool
    /// The server of now, by the number that names of its connections begin with; 0 until it is known.
    private let peerNumber = Atomic<UInt64>(0)
    let methods = RemoteMethods()
    let handed = HandedActors()
    /// How often the server has said that who is signed in is so no more.
    let revocations = StateRelay(0)
    private let lastNumber = Atomic<UInt64>(0)

    let connection: ClientConnection
    /// The connection of now.
    private(set) var link: (any ClientLink)?
    private(set) var linkNumber = 0
    /// Whether calls and streams wait for the next connection: the server of this one goes, and may not read them any more.
    private var isSentAway = false
    /// Of the connection over which the server was told who this client is.
    var introducedOver = 0
    private(set) lazy var hosted = HostedCalls(self)
    private var pending: [UInt64: PendingCall] = [:]
    private(set) var line = CallLine(terms: .usual)
    /// Bytes of the largest message that the server has said it takes.
    private var toldMessageSize = Int.max
    private var streams = StreamRegistry()
    private(set) var envelope = ScannedEnvelope()
    private var sweep: LoopTimer?
    private var sweepAt = UInt64.max

    /// - Parameter isAddressed: whether `peerName` says which server it is.
    init(loop: any EventLoop, options: TrebuchetClient.Options, peerName: String, isAddressed: Bool) {
        self.isAddressed = isAddressed
        self.loop = loop
        self.options = options
        self.peerName = peerName
        connection = ClientConnection(
            loop: loop, policy: options.reconnect, hasTokenProvider: options.token != nil)
        connection.delegate = self
    }

    /// What decoders need to make references of actors' names.
    var userInfo: [CodingUserInfoKey: any Sendable] { system?.userInfo ?? [:] }

    var serverNumber: UInt64 { peerNumber.load(ordering: .relaxed) }

    func reachesSameAddress(as other: ClientCore) -> Bool {
        isAddressed && other.isAddressed && peerName == other.peerName
    }

    // MARK: Calls

    /// Sends a call and waits for its answer: the result in JSON, nil for a method without one.
    func call(
        actorID: String, target: String, _ request: CallRequest, isIdempotent: Bool = false
    ) async throws -> [UInt8]? {
        let number = lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
        let now = loop.now
        let asked = Deadline.current.map { $0 &+ loop.timeAhead }
        if let asked, asked <= now {
            throw TrebuchetError(.timeout, "the deadline had passed before \(target) was called")
        }
        let own = options.callTimeout.map { now &+ $0.nanoseconds } ?? .max
        let message: PendingCall.Message
        let limit = options.serverMessageSize
        if isIdempotent {
            let count = request.arguments.reduce(0) { $0 + $1.count }
            if count > limit { throw MessageSizes.tooLarge(target, count, own: limit, told: nil) }
            message = .repeatable(
                RepeatableCall(number: number, actorID: actorID, target: target, request: request, deadline: asked))
        } else {
            let bytes = InvocationMessage(
                number: number, actorID: actorID, target: target, request: request,
                timeoutMilliseconds: asked.map { Int(($0 - now + 999_999) / 1_000_000) }
            ).bytes
            if bytes.count > limit { throw MessageSizes.tooLarge(target, bytes.count, own: limit, told: nil) }
            message = .encoded(bytes)
        }
        let call = PendingCall(number: number, name: target, message: message, deadline: min(own, asked ?? .max))
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                call.continuation = continuation
                loop.run { self.start(call) }
            }
        } onCancel: {
            call.isCancelled.store(true, ordering: .relaxed)
            loop.execute { self.cancel(number) }
        }
    }

    private func start(_ call: PendingCall) {
        if call.isCancelled.load(ordering: .relaxed) { return call.finish(.failure(CancellationError())) }
        guard link != nil || options.whileDisconnected == .wait && connection.isExpected else {
            return call.finish(.failure(notConnected))
        }
        guard pending.count < options.callsInFlight else {
            let text =
                "\(options.callsInFlight) calls of this client wait for their answers already "
                + "(TrebuchetClient.Options.callsInFlight)"
            return call.finish(.failure(TrebuchetError(.rateLimited, text)))
        }
        pending[call.number] = call
        if call.deadline < sweepAt { armSweep(call.deadline) }
        guard let link, !isSentAway else { return }
        guard line.isEmpty, line.hasRoom(for: call, beside: streams.beginningCount) else { return line.add(call) }
        send(call, over: link)
    }

    /// Sends calls that waited, as far as there is room for them.
    private func sendNext() {
        guard !line.isEmpty, let link, !isSentAway else { return }
        while let call = line.next(beside: streams.beginningCount) { send(call, over: link) }
    }

    /// Bytes of the largest message that is sent.
    private var messageLimit: Int { min(options.serverMessageSize, toldMessageSize) }

    private func send(_ call: PendingCall, over link: any ClientLink) {
        // A call may be the first that brings along a reference.
        if introducedOver != linkNumber { introduce(over: link) }
        switch call.message {
        case .encoded(let bytes):
            guard bytes.count <= messageLimit else { return endTooLarge(call, bytes.count) }
            call.sentByteCount = bytes.count
            link.send(bytes)
            call.message = .encoded([])
        case .repeatable(var repeatable):
            guard let bytes = repeatable.next(over: link.session, at: loop.now) else {
                pending[call.number] = nil
                let text =
                    "\(call.name) was sent, and its connection broke before the answer came; the server of now keeps no answers, "
                    + "so it cannot be asked again. It may have run: look at what it would have changed"
                return call.finish(.failure(TrebuchetError(.unknownOutcome, text)))
            }
            // With the session's name it may have become too large.
            guard bytes.count <= messageLimit else { return endTooLarge(call, bytes.count) }
            call.message = .repeatable(repeatable)
            call.sentByteCount = bytes.count
            link.send(bytes)
        }
        call.connection = linkNumber
        line.didSend(call)
    }

    private func endTooLarge(_ call: PendingCall, _ count: Int) {
        pending[call.number] = nil
        call.finish(.failure(tooLarge(call.name, count)))
    }

    private func tooLarge(_ what: String, _ count: Int) -> TrebuchetError {
        MessageSizes.tooLarge(
            what, count, own: options.serverMessageSize, told: toldMessageSize == .max ? nil : toldMessageSize)
    }

    private var notConnected: TrebuchetError {
        let advice =
            connection.isExpected
            ? "it is being made" : connection.isClosed ? "the client was closed" : "call connect() first"
        return TrebuchetError(.unavailable, "there is no connection to \(peerName); \(advice)")
    }

    /// Takes a call out of those that wait; the connection may have been kept for it alone.
    private func take(_ number: UInt64) -> PendingCall? {
        guard let call = pending.removeValue(forKey: number) else { return nil }
        if call.connection != linkNumber {
            connection.callEnded(number: call.connection)
        } else if link != nil {
            line.didEnd(call)
        }
        return call
    }

    private func cancel(_ number: UInt64) {
        guard let call = take(number) else { return }
        tellCancelled(call)
        finish(call, .failure(CancellationError()))
        sendNext()
    }

    private func finish(_ call: PendingCall, _ outcome: Result<[UInt8]?, any Error>) {
        call.finish(outcome)
        if call.connection == 0 { line.didLeave() }
    }

    private func tellCancelled(_ call: PendingCall) {
        if call.connection == linkNumber { link?.send(OutgoingMessage.cancel(call.number)) }
    }

    /// One timer serves all calls: it is set to the earliest deadline and looks through them when it fires.
    private func armSweep(_ deadline: UInt64) {
        sweep?.cancel()
        sweepAt = deadline
        let now = loop.now
        sweep = loop.schedule(after: .nanoseconds(Int64(clamping: deadline > now ? deadline - now : 0))) {
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
            _ = take(number)
            tellCancelled(call)
            finish(call, .failure(TrebuchetError(.timeout, lateness(of: call))))
        }
        sendNext()
        sweepAt = .max
        if next != .max { armSweep(next) }
    }

    private func lateness(of call: PendingCall) -> String {
        guard call.isUnsent else { return "\(call.name) was not answered before its deadline" }
        return "\(call.name) was not sent before its deadline: \(waitingReason(of: call))"
    }

    private func waitingReason(of call: PendingCall) -> String {
        if isSentAway { return "\(peerName) ends and takes no more calls, and there was no other connection yet" }
        guard link == nil else { return line.reason(for: call) }
        let why =
            switch connection.states.currentValue {
            case .connecting(let attempt, let error?):
                ": attempt \(attempt) to connect is under way after \(error.message)"
            case .connecting(let attempt, nil): ": attempt \(attempt) to connect is under way"
            default: ""
            }
        return "there was no connection to \(peerName)\(why)"
    }

    // MARK: Streams

    /// Begins to observe a state. The stream fails when there is no connection and none is being made.
    ///
    /// - Parameter kept: Where the value is kept, when its type knows its changes.
    func observe(
        _ target: StreamTarget, reading: StreamReading = .latest, kept: (any KeptState)? = nil,
        holding hold: ClientHold? = nil
    ) -> RemoteStream {
        let number = lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
        let stream = RemoteStream(reading: reading, filter: target.filter, kept: kept, userInfo: userInfo) {
            self.restart(number)
        } release: {
            withExtendedLifetime(hold) { self.stopObserving(number) }
        }
        let sink = StreamSink(of: stream)
        loop.run {
            guard self.link != nil || self.connection.isExpected else { return sink.end(.failed(self.notConnected)) }
            self.streams.createRemoteStream(callNumber: number, target: target, sink: sink)
            self.begin(number, .invocation(target))
        }
        return stream
    }

    private func begin(_ number: UInt64, _ beginning: StreamRegistry.Beginning) {
        guard let link, !isSentAway else { return }
        let message = OutgoingMessage.beginning(number, beginning)
        guard message.count <= messageLimit else {
            return streams.fail(callNumber: number, error: tooLarge("to observe", message.count))
        }
        link.send(message)
    }

    private func begin(_ anew: StreamRegistry.Anew) {
        link?.send(OutgoingMessage.streamEnd(anew.streamID))
        begin(anew.callNumber, .invocation(anew.target))
    }

    /// Changes that the server has sent do not fit the value that is here.
    func restart(_ number: UInt64) {
        loop.run { if let anew = self.streams.stopKeeping(number) { self.begin(anew) } }
    }

    func stopObserving(_ number: UInt64) {
        loop.run {
            guard let streamID = self.streams.remove(callNumber: number) else { return }
            self.link?.send(OutgoingMessage.streamEnd(streamID))
        }
    }

    // MARK: Messages in

    /// Handles one message from the server, on the reactor. `source` is the number of the connection.
    func receive(_ message: UnsafeRawBufferPointer, over source: Int) {
        do {
            try envelope.scan(message)
        } catch {
            // A server that sends what no one can read is not to be trusted with the rest.
            return connection.abandon(
                number: source, TransportError(.closed, "the server sent a malformed message: \(error.message)"))
        }
        switch envelope.kind {
        case .response: return receiveResponse(message, over: source)
        case .invocation, .repeat, .cancel: return receiveCall(message, over: source)
        case .goAway:
            let delay = Duration.milliseconds(envelope.reconnectAfterMilliseconds ?? 0)
            connection.goAway(number: source, reconnectAfter: delay)
            if source == linkNumber {
                isSentAway = connection.isBeingReplaced && options.whileDisconnected == .wait
            }
            return
        default: break
        }
        // A connection that has been replaced answers its calls; the streams go on elsewhere.
        guard source == linkNumber else { return }
        switch envelope.kind {
        case .streamStart:
            let stale = streams.handleStreamStart(
                callNumber: number(envelope.callID, message), streamID: text(envelope.streamID, message),
                epoch: text(envelope.epoch, message), position: envelope.sequenceNumber)
            if let stale { link?.send(OutgoingMessage.streamEnd(stale)) }
            sendNext()
        case .streamData:
            receiveStreamData(message)
        case .streamEnd:
            streams.handleStreamEnd(
                streamID: text(envelope.streamID, message),
                reason: StreamEndReason(rawValue: text(envelope.reason, message)))
        case .streamError:
            let code = envelope.code.isAbsent ? ErrorCode.internal : ErrorCode(rawValue: text(envelope.code, message))
            if code == .unavailable, connection.isBeingReplaced {
                // It was taken up too late for this connection, and is again with the next one.
                return streams.handleStreamEnd(streamID: text(envelope.streamID, message), reason: .serverDraining)
            }
            streams.handleStreamError(
                streamID: text(envelope.streamID, message),
                error: TrebuchetError(.init(code), text(envelope.errorMessage, message), retryAfter: retryAfter))
            sendNext()
        case .hello:
            let limits = envelope.limits.bytes(in: message)
            guard !envelope.limits.isAbsent,
                let terms = try? ValueCoder().decode(ServerTerms.self, from: limits)
            else { return }
            line.terms = terms
            toldMessageSize = terms.messageSize
            handed.heard(terms)
            sendNext()
        case .error where text(envelope.code, message) == ErrorCode.unauthenticated.rawValue:
            revocations.update { $0 += 1 }
        default: break  // Another `error` ends with the connection; unknown kinds are for newer clients.
        }
    }

    private func receiveStreamData(_ message: UnsafeRawBufferPointer) {
        guard let sequence = envelope.sequenceNumber else { return }
        let streamID = text(envelope.streamID, message)
        if !envelope.data.isAbsent {
            streams.handleStreamData(
                streamID: streamID, sequence: sequence, data: envelope.data.bytes(in: message))
        } else if let base = envelope.base, !envelope.patch.isAbsent {
            let again = streams.handleStreamPatch(
                streamID: streamID, sequence: sequence, base: base, patch: envelope.patch.bytes(in: message),
                maximumBytes: options.messageSize)
            if let again { begin(again) }
        }
    }

    private func receiveResponse(_ message: UnsafeRawBufferPointer, over source: Int) {
        let number = number(envelope.callID, message)
        let failure = envelope.hasError ? error(in: message) : nil
        guard let call = take(number) else {
            // A stream that came too late for this connection begins with the next one.
            let isLate = connection.isBeingReplaced && (isSentAway || streams.hadBegun(callNumber: number))
            if let failure, source == linkNumber, !(isLate && failure.code == .unavailable) {
                streams.fail(callNumber: number, error: failure)
            }
            return sendNext()
        }
        if let failure {
            call.finish(.failure(failure))
        } else {
            call.finish(.success(envelope.result.isAbsent ? nil : Array(envelope.result.bytes(in: message))))
        }
        sendNext()
    }

    private func error(in message: UnsafeRawBufferPointer) -> TrebuchetError {
        TrebuchetError(
            .init(ErrorCode(rawValue: text(envelope.errorCode, message))), text(envelope.errorMessage, message),
            type: envelope.errorType.isAbsent ? nil : text(envelope.errorType, message),
            data: envelope.errorData.isAbsent ? nil : Array(envelope.errorData.bytes(in: message)),
            retryAfter: retryAfter)
    }

    private var retryAfter: Duration? { envelope.retryAfterMilliseconds.map { .milliseconds($0) } }

    private func text(_ range: ByteRange, _ message: UnsafeRawBufferPointer) -> String {
        range.isAbsent ? "" : envelope.string(range, in: message)
    }

    /// Our callIDs are numbers; anything else answers no call of ours.
    private func number(_ range: ByteRange, _ message: UnsafeRawBufferPointer) -> UInt64 {
        UInt64(text(range, message)) ?? 0
    }
}

// MARK: The connection

extension ClientCore: ClientConnectionDelegate {
    func connection(uses link: any ClientLink, number: Int) {
        self.link = link
        linkNumber = number
        isSentAway = false
        line.removeAll()
        // It may be another server.
        toldMessageSize = .max
        peerNumber.store(HandshakeField.server(ofSession: link.session), ordering: .relaxed)
        greet(over: link)
        // Streams first: who calls and observes sees what the call has changed.
        for (number, beginning) in streams.beginAnew() { begin(number, beginning) }
        for call in pending.values.filter({ $0.connection == 0 }).sorted(by: { $0.number < $1.number }) {
            line.add(call)
        }
        sendNext()
    }

    func connectionLost(number: Int, _ error: TransportError) {
        hosted.lost(number)
        if error.cause is MessageRefusal { endRefused(number) }
        if number == linkNumber {
            link = nil
            isSentAway = false
            line.removeAll()
        }
        let lost = pending.values.filter { $0.connection == number }
        for call in lost.sorted(by: { $0.number < $1.number }) {
            if call.isRepeatable, connection.isExpected {
                call.connection = 0
                // A connection that was left to its calls has broken while there is another one.
                if link != nil { line.add(call) }
            } else {
                endUnknown(call, error)
            }
        }
        sendNext()
    }

    /// The server has closed the connection because of a message that is too large for it. It was the largest of those that were
    /// not answered, or others were too large as well; it is not sent again, over which connection ever.
    private func endRefused(_ connection: Int) {
        let sent = pending.values.filter { $0.connection == connection }
        guard let call = sent.max(by: { $0.sentByteCount < $1.sentByteCount }) else { return }
        pending[call.number] = nil
        let error = MessageSizes.refused(call.name, call.sentByteCount, limit: options.serverMessageSize)
        call.finish(.failure(error))
    }

    private func endUnknown(_ call: PendingCall, _ error: TransportError) {
        pending[call.number] = nil
        let text = "\(call.name) was sent and not answered, so it may have run: \(error.message)"
        call.finish(.failure(TrebuchetError(.unknownOutcome, text)))
    }

    func callsUnderWay(number: Int) -> Int {
        pending.values.count { $0.connection == number } + hosted.count(over: number)
    }

    func connectionGivenUp(_ error: TransportError) {
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
