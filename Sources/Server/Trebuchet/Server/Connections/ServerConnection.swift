package import Bytes
internal import Networking
internal import Platform
package import TrebuchetActors
internal import TrebuchetWire
internal import WebSockets

/// The server's side of one client connection: calls arrive, responses and streams leave.
///
/// `@unchecked Sendable`: isolated to the shard's reactor.
package final class ServerConnection: StreamSubscriber, @unchecked Sendable {
    package let shard: ServerShard
    package let name: CallSessionID
    /// The transport of its messages; one without effect after the connection is closed. It is read and written in one step, so
    /// access needs no check.
    @exclusivity(unchecked) private(set) var link: any MessageLink
    /// Read and written in one step, so access needs no check.
    @exclusivity(unchecked) package private(set) var isOpen = true
    private var drainState = DrainState.none
    private var wasIntroduced = false
    /// Indicates whether responses of its calls are recorded.
    var recordsResponses = false
    private var recordedCalls: IdempotentCalls?
    private var malformedInRow: UInt16 = 0
    /// The maximum size in bytes of a message to its client.
    package let largestMessage: UInt32
    /// The number of its streams for quotas.
    var streamUsage = StreamQuotaUsage()
    /// Its in-flight calls.
    var calls = InFlightCalls()
    /// Its calls to actors of other reactors, from the first one on.
    private(set) var crossReactorCalls: CrossReactorCalls?
    /// Its streams, and those that are starting.
    var streams = ConnectionStreams()
    /// The connection as actors see it, at a server that authenticates callers.
    package let callerConnection: CallerConnection?
    package let authorization: ConnectionAuthorization
    /// The start of the connection by the monotonic clock.
    let opened = MonotonicClock.now
    /// The address of the other end, read from the system once.
    private(set) lazy var address = callerConnection?.remoteAddress ?? link.remoteAddress
    /// Indicates whether all its calls need checks before they run.
    private(set) var isGuarded: Bool
    /// Indicates whether the server itself is at the other end, on behalf of its actors or those of another server.
    let isServer: Bool
    /// True while the message in hand was not sent by the client, or was counted before. Read and written in one step, so access
    /// needs no check.
    @exclusivity(unchecked) package internal(set) var isCounted = false
    /// True while a resumption is handled that was passed to another server and returns.
    var isReturnedResumption = false
    /// Its reservation in the number of its principal's connections.
    private let reservation: QuotaReservation?
    /// The row of the principal that it began with. Keeps the budget of its memory account alive.
    let principalRow: QuotaRow?
    /// The client's hosting state, set when the client has identified itself in order to export actors. Each call reads it, so
    /// access is not checked: no code calls out while it changes the property.
    @exclusivity(unchecked) var clientActorHost: ClientActorHostConnection?
    // Last, so that the properties that every call reads lie together.
    /// The client's server, if the client is connected to another server.
    let upstream: (any UpstreamServer)?
    /// Responses that wait for streams of the connection; nil if there are none.
    var deferredResponses: DeferredResponses?
    /// Its calls and streams at other servers, from the first one on.
    package internal(set) var forwarder: (any ConnectionForwarder)? { didSet { updateGuard() } }

    private enum DrainState: UInt8 {
        case none
        /// `goAway` was sent, and the client may not know yet.
        case notified
        /// The pong has arrived. The client's program may see `goAway` later than its network: a browser answers pings by itself.
        case acknowledged
        /// All calls are refused: a client that keeps calling must not delay the shutdown.
        case dismissed
    }

    package var isDraining: Bool { drainState != .none }
    /// Indicates whether messages may arrive that the client sent before it received `goAway`.
    var mayReceiveLateMessages: Bool { drainState == .notified || drainState == .acknowledged && !hasNoCalls }

    init(
        _ link: any MessageLink, name: CallSessionID, shard: ServerShard, caller: Caller? = nil,
        reservation: QuotaReservation? = nil,
        largestMessage: Int = .max, upstream: (any UpstreamServer)? = nil
    ) {
        self.upstream = upstream
        self.name = name
        self.largestMessage = UInt32(clamping: min(largestMessage, shard.limits.messages.outboundBytes))
        callerConnection = caller?.connection
        isServer = caller?.isServer == true
        authorization = ConnectionAuthorization(of: callerConnection, isServer: isServer, at: shard)
        self.link = link
        self.shard = shard
        isGuarded = shard.isGuarded
        self.reservation = reservation
        principalRow = caller?.principal.map { shard.context.quotas.row(of: .principal($0.name)) }
        if let memory = principalRow?.memory { link.memory?.join(memory) }
        shard.addConnection(self)
        if isObserved { shard.observer.didOpen(peer, callerConnection) }
        guard let callerConnection else { return }
        // Retained until the connection closes.
        callerConnection.endsStreams { self.endStreams(of: $0, $1) }
        let reactor = shard.reactor
        callerConnection.onAuthorizationChange {
            reactor.run { self.authorizationDidChange() }
        } applied: {
            if !reactor.isCurrent { await reactor.perform {} }
        }
        if authorization.isUnderRules {
            // Executed later: a call of this connection may be the one that changes the principal.
            callerConnection.onPrincipalChange { self.shard.reactor.execute { self.endRefusedStreams() } }
        }
        // The server of a forwarded connection has greeted its client.
        if upstream == nil, !isServer { shard.onConnect?(callerConnection) }
    }

    package var connectionNumber: UInt64 { name.number }

    /// The connection as event handlers see it.
    var peer: ServerEvent.Peer {
        ServerEvent.Peer(connection: name.number, address: address, principal: callerConnection?.principal?.id)
    }

    /// Indicates whether events and metrics count the connection. A connection of another server is counted there; the server's
    /// connection to itself and that of a call over HTTP are not counted.
    private var isObserved: Bool { upstream == nil && !isServer && link.countsAsConnection }

    /// Its calls of `@Idempotent` methods.
    var idempotentCalls: IdempotentCalls {
        if let recordedCalls { return recordedCalls }
        let created = IdempotentCalls(self)
        // A closed connection has released it.
        if isOpen { recordedCalls = created }
        return created
    }

    /// Returns the calls to actors of other reactors, for the first one.
    func requireCrossReactorCalls() -> CrossReactorCalls {
        if let crossReactorCalls { return crossReactorCalls }
        let created = CrossReactorCalls(of: self)
        crossReactorCalls = created
        return created
    }

    // MARK: Quotas

    /// The limits of the connection.
    var limits: ConnectionLimits { isServer ? shard.context.limitsOfServer : shard.context.limitsOfClient }

    /// The quota scopes of the connection.
    var scopes: QuotaScopes {
        if isServer { return .server }
        return QuotaScopes(connection: name.number, principal: callerConnection?.principal?.id, host: link.host)
    }

    // MARK: Messages in

    /// Handles one message. The bytes are valid during the call.
    package func receive(_ bytes: UnsafeRawBufferPointer) {
        // Only in-process clients handle a message inside another one, and only a few levels deep.
        guard let scratch = shard.scans.reserve() else { return refuse(EnvelopeError("too many messages at once")) }
        defer { shard.scans.release() }
        do {
            try scratch.pointee.scan(bytes)
        } catch {
            return refuse(error)
        }
        handle(Message(bytes: bytes, envelope: UnsafePointer(scratch)))
    }

    @inline(__always)
    private func handle(_ message: borrowing Message) {
        let kind = message.kind
        if kind == .invocation {
            malformedInRow = 0
            return isDraining ? receiveLate(message) : invoke(message)
        }
        switch kind {
        case .repeat: if isDraining { receiveLate(message) } else { idempotentCalls.receiveRepeat(message) }
        case .cancel: cancel(message)
        case .streamEnd: unsubscribe(message)
        case .streamResume: if isDraining { resumeElsewhere(message) } else { resume(message) }
        default:
            do throws(EnvelopeError) {
                try handleRare(message)
            } catch {
                return refuse(error)
            }
        }
        malformedInRow = 0
    }

    private func handleRare(_ message: borrowing Message) throws(EnvelopeError) {
        switch message.kind {
        case .hello: try sendHello(message)
        case .response: try receiveResponse(message)
        case .goAway: clientDidLeave()
        default: throw EnvelopeError("a client does not send \(message.kind) messages")
        }
    }

    /// Answers a malformed message.
    func refuse(_ error: EnvelopeError) {
        malformedInRow += 1
        // Its subject is unknown.
        shard.observer.didReject("", "", TrebuchetError(.init(error.code), error.message), by: peer)
        if let callID = error.callID {
            fail(Array(callID.utf8), TrebuchetError(.invalidArguments, error.message))
        } else {
            sendError(error.code, error.message)
        }
        if malformedInRow >= min(shard.limits.messages.malformedInARow, Int(UInt16.max)) {
            link.close(.policyViolation, reason: "\(malformedInRow) malformed messages in a row")
        }
    }

    /// Reports an error that belongs to no known call or stream.
    func sendError(_ code: ErrorCode, _ message: String) {
        shard.counts.count(.error(code.rawValue))
        link.send { EnvelopeWriter.error(code: code, message: message, into: &$0) }
    }

    /// Sends the client the name and the limits of its connection. The first request is not counted.
    private func sendHello(_ message: borrowing Message) throws(EnvelopeError) {
        let client = message.envelope.pointee.client
        let isNewHost = clientActorHost == nil && !client.isAbsent
        if wasIntroduced, !isNewHost, shard.context.hasRates, let refusal = rateRefusal(of: "hello") {
            return link.send {
                EnvelopeWriter.error(
                    code: .rateLimited, message: refusal.message,
                    retryAfterMilliseconds: refusal.retryAfter?.milliseconds, into: &$0)
            }
        }
        if !client.isAbsent { try host(message.text(client)) }
        wasIntroduced = true
        let ping = shard.limits.connections.pingInterval.map { Int($0.nanoseconds / 1_000_000) }
        link.send {
            EnvelopeWriter.hello(
                session: shard.idempotencyCache.names.text(name), terms: shard.limits.terms(for: limits),
                pingIntervalMilliseconds: ping,
                into: &$0)
        }
    }

    private func updateGuard() { isGuarded = shard.isGuarded || authorization.isRevoked || forwarder != nil }

    // MARK: Authorization

    /// Returns whether calls of a method, or starts of a stream, need checks before they run.
    func isGuarded(_ target: String) -> Bool { isGuarded || shard.context.hasMethodRate(target) }

    /// Returns the reason why a call or stream may not start; nil when it may.
    ///
    /// - Parameter call: Its running call; nil for a message that is not recorded, or is handled again.
    func refusal(of target: String, _ actorID: String, for call: InFlightCall? = nil) -> TrebuchetError? {
        if let refusal = authorization.refusal(of: target, actorID, for: call, continuing: continuedCall) {
            return refusal
        }
        return shard.context.hasRates && !isCounted && !isServer ? rateRefusal(of: target, actorID) : nil
    }

    /// Returns the rate limit error for a message; nil when the message is within the rates and has been counted.
    ///
    /// - Parameter actorID: The called actor; nil for messages to none, to which no rate of a method applies.
    func rateRefusal(of target: String, _ actorID: String? = nil) -> TrebuchetError? {
        guard let refusal = authorization.rateRefusal(of: target, actorID) else { return nil }
        countRejection(limit: refusal.setting)
        return refusal.error
    }

    /// Records that a limit was reached.
    ///
    /// - Parameter setting: The name of the property in `ServerLimits`.
    func countRejection(limit setting: String) { shard.observer.countRejection(limit: setting, by: peer) }

    /// Applies a change of the connection's authorization: a revocation, or its end.
    private func authorizationDidChange() {
        guard isOpen else { return }
        let revocation = callerConnection?.revocation()
        defer {
            authorization.isRevoked = revocation != nil
            updateGuard()
            forwarder?.callerDidChange()
        }
        guard let revocation, !authorization.isRevoked else { return }
        // The server of a forwarded client has notified it.
        if upstream == nil { sendError(revocation.code.wire, revocation.message) }
        for subscription in Array(streams.values) { endStream(subscription, reason: .error, error: revocation) }
        forwarder?.endStreams { _, _ in revocation }
    }

    /// Ends the streams that the current rules refuse to the current principal, including streams that have not started.
    func endRefusedStreams() {
        guard isOpen, authorization.isUnderRules else { return }
        for (streamID, name) in streams.authorized {
            guard let refusal = authorization.refusalByRules(name.target, name.actor.text),
                let subscription = streams[streamID]
            else { continue }
            endStream(subscription, reason: .error, error: refusal)
        }
        for request in streams.starting.values {
            if let refusal = authorization.refusalByRules(request.name.target, request.name.actor.text) {
                request.reservation.withdraw(refusal)
            }
        }
        for call in Array(running.values) {
            guard let stream = call.stream,
                let refusal = authorization.refusalByRules(stream.target, stream.actor.text)
            else { continue }
            call.cancel()
            finish(call, .failure(refusal))
        }
        forwarder?.endStreams { authorization.refusalByRules($0, $1) }
    }

    // MARK: Messages out

    package var isWritable: Bool { link.isWritable }

    package func inOneWrite(_ body: () -> Void) { link.inOneWrite(body) }

    package func inOneWrite(_ body: () -> Void, observing observer: (UnsafeRawBufferPointer) -> Void) {
        link.inOneWrite(body, observing: observer)
    }

    package var framing: UInt8 { largestMessage >= SharedFrameCache.maximumBytes ? link.framing : 0 }

    package func sendSharedFrames(_ frames: UnsafeRawBufferPointer) -> Bool {
        guard link.isWritable else { return false }
        link.sendSharedFrames(frames)
        return true
    }

    /// Sends the result of a call; nil for a method without one.
    @inline(__always)
    func succeed(_ callID: UnsafeRawBufferPointer, _ result: UnsafeRawBufferPointer?) {
        if let result {
            let count = EnvelopeWriter.responseCount(callID: callID.count, result: result.count)
            guard count <= largestMessage else { return fail(callID, tooLarge("the result", count)) }
        }
        if shard.states.isMarked, !catchUpStreams() {
            return deferResponse { EnvelopeWriter.response(callID: callID, result: result, into: &$0) }
        }
        link.send { EnvelopeWriter.response(callID: callID, result: result, into: &$0) }
    }

    /// Returns the error that replaces a message for which the client would end the connection.
    @inline(never)
    func tooLarge(_ what: String, _ count: Int) -> TrebuchetError {
        let limit =
            largestMessage < shard.limits.messages.outboundBytes
            ? "the client's limit is \(largestMessage) (its TrebuchetClient.Options.messageSize)"
            : "the limit is \(largestMessage) (ServerLimits.messages.outboundBytes at the server, "
                + "TrebuchetClient.Options.messageSize at the client)"
        return TrebuchetError(.internal, "the message with \(what) has \(count) bytes; \(limit)")
    }

    /// Reports that a requested call or stream does not start, under the stream's name where the message has one.
    package func fail(_ message: borrowing Message, _ error: any Error) {
        let error = refusal(error, of: message)
        shard.observer.didReject(message, error, by: peer)
        if continuedCall?.intercepted?.refuse(error) == true { return }
        if message.kind == .streamResume, let name = ownName(in: message) { return failStream(name, error) }
        fail(message.callID, error)
    }

    /// Returns the error for the refusal of a message: a repeat was sent before.
    func refusal(_ error: any Error, of message: borrowing Message) -> any Error {
        message.wasSentBefore ? (error as? TrebuchetError)?.ofSentCall ?? error : error
    }

    func fail(_ callID: [UInt8], _ error: any Error) {
        callID.withUnsafeBytes { fail($0, error) }
    }

    func fail(_ callID: UnsafeRawBufferPointer, _ error: any Error) { fail(callID, error, nil) }

    func fail(_ callID: UnsafeRawBufferPointer, _ error: any Error, _ observed: ObservedCall?) {
        guard isOpen else { return }
        let isHeld = shard.states.isMarked && !catchUpStreams()
        let failure = failure(error, of: "the method")
        shard.observer.didFail(observed, failure)
        let traceparent = observed?.traceparent
        let write = { (buffer: inout ByteBuffer) in
            EnvelopeWriter.failure(
                callID: callID, code: failure.code, message: failure.message, type: failure.type, data: failure.data,
                retryAfterMilliseconds: failure.retryAfterMilliseconds,
                traceparent: traceparent, into: &buffer)
        }
        if isHeld { deferResponse(write) } else { link.send(write) }
    }

    /// Returns what the client receives of an error of a call or stream.
    func failure(_ error: any Error, of what: String) -> CallFailure {
        let failure = CallFailure(error, of: what, coder: shard.coder, shard.context.disclosure)
            .truncated(Int(largestMessage))
        if !isServer { shard.counts.count(.error(failure.code.rawValue)) }
        return failure
    }

    /// Sends a result with the span of the call, if its caller has sent a trace; otherwise as without `observed`.
    @inline(__always)
    func succeed(_ callID: UnsafeRawBufferPointer, _ result: UnsafeRawBufferPointer?, _ observed: ObservedCall?) {
        guard let observed, let traceparent = observed.traceparent else { return succeed(callID, result) }
        succeed(callID, result, traceparent)
    }

    @inline(never)
    private func succeed(_ callID: UnsafeRawBufferPointer, _ result: UnsafeRawBufferPointer?, _ traceparent: String) {
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

    /// Returns the code that a call with this encoded result ends with: `.internal` if the result exceeds the client's message
    /// limit, else nil.
    func code(_ callID: UnsafeRawBufferPointer, _ result: UnsafeRawBufferPointer?) -> TrebuchetError.Code? {
        let count = EnvelopeWriter.responseCount(callID: callID.count, result: result?.count ?? 0)
        return count > largestMessage ? .internal : nil
    }

    /// Sends the states that a call changed before its response: a caller reads its own writes.
    ///
    /// - Returns: False if more than a time slice is needed. The response then waits (`deferResponse`).
    @discardableResult
    func catchUpStreams() -> Bool {
        shard.states.callDidEnd()
        if upstream != nil { shard.router?.catchUpFeeds() }
        let rest: [StreamSubscription]
        switch streams.changed(in: &shard.states.changes) {
        case .none: rest = []
        case .possiblyAll: rest = catchUp(streams.values)
        case .these(let changed): rest = catchUp(changed)
        }
        guard !rest.isEmpty || deferredResponses != nil || shard.states.hasEvaluations else { return true }
        return !mustDeferResponse(until: rest)
    }

    /// Sends the newest versions of streams within a time slice. Returns the others.
    private func catchUp(_ changed: some Collection<StreamSubscription>) -> [StreamSubscription] {
        guard changed.count > 1 else {
            for subscription in changed { catchUp(subscription) }
            return []
        }
        var slice = TimeSlice(budget: shard.catchUpTime, from: MonotonicClock.now)
        for subscription in changed {
            catchUp(subscription)
            if slice.isCheckDue(), slice.isUsedUp(lastClockReading: &shard.reactor.lastClockReading) {
                return Array(changed.dropFirst(slice.count))
            }
        }
        return []
    }

    /// Returns whether a response waits, for these streams, for evaluations or for earlier responses.
    private func mustDeferResponse(until changed: [StreamSubscription]) -> Bool {
        var awaited = DeferredResponses.Streams(changed: changed)
        if shard.states.hasEvaluations, streamUsage.filtered > 0 || streams.hasWholeValues {
            for subscription in streams.values {
                guard let version = subscription.broadcaster.versionInEvaluation else { continue }
                awaited.evaluations.append((subscription, version))
            }
        }
        guard isOpen, !awaited.isEmpty || deferredResponses != nil else { return false }
        let held = deferredResponses ?? DeferredResponses(self)
        deferredResponses = held
        if !awaited.isEmpty { held.addStreams(awaited) }
        return true
    }

    /// Keeps a response that `catchUpStreams` did not allow to be sent. It is sent now if there is no memory for it.
    @inline(never)
    func deferResponse(_ body: (inout ByteBuffer) -> Void) {
        var buffer = ByteBuffer()
        body(&buffer)
        if let deferredResponses, deferredResponses.addResponse(Array(buffer.bytes)) { return }
        link.send { $0.append(buffer.bytes) }
    }

    func catchUp(_ subscription: StreamSubscription) {
        // An earlier subscription may have ended it.
        guard subscription.index >= 0 else { return }
        if shard.states.isHome(of: subscription.broadcaster.producer) { subscription.broadcaster.producer.publish() }
        subscription.broadcaster.catchUp(subscription)
    }

    /// Sends stream data, or ends the stream if the message is too large for its client.
    package func sendStreamData(_ subscription: StreamSubscription, suffix: SharedBytes) {
        // An earlier message may have ended it.
        guard subscription.index >= 0 else { return }
        let streamID = subscription.streamID
        let count = StreamDataEncoding.prefixCount + streamID.count + suffix.count
        guard count <= largestMessage else {
            return endStream(subscription, reason: .error, error: tooLarge("a value of the stream", count))
        }
        link.send(shared: suffix, headCount: StreamDataEncoding.prefixCount + streamID.count) {
            StreamDataEncoding.appendPrefix(into: &$0)
            $0.append(streamID)
        }
    }

    package var isLocal: Bool { false }
    package var isAwaited: Bool { shard.isAwaited }

    package func streamDidCatchUp() { sendReadyResponses() }

    /// Notes that a state could not be sent because the client reads too slowly.
    package func didBlock(_ subscription: StreamSubscription) { streams.hasBlocked = true }

    package func linkDidBecomeWritable() {
        clientActorHost?.linkDidBecomeWritable()
        forwarder?.linkDidBecomeWritable()
        crossReactorCalls?.linkDidBecomeWritable()
        guard streams.hasBlocked else { return }
        streams.hasBlocked = false
        for subscription in streams.values { subscription.broadcaster.catchUp(subscription) }
    }

    // MARK: The end

    /// Sends `goAway` to the client, and ends the streams.
    func drain(reconnectAfterMilliseconds: Int) {
        guard !isDraining else { return }
        drainState = .notified
        link.send {
            EnvelopeWriter.goAway(
                reason: "draining", reconnectAfterMilliseconds: reconnectAfterMilliseconds, into: &$0)
        }
        link.sendDrainPing()
        endStreamsForReconnect()
    }

    /// Notes that the pong after `goAway` has arrived, and with it all earlier messages of the client.
    package func didReceiveDrainPong() {
        guard drainState == .notified else { return }
        // The client's server sends refused calls to the next owner.
        guard upstream == nil else { return drainState = .dismissed }
        drainState = .acknowledged
        shard.lastLateMessage = shard.reactor.now
    }

    /// Refuses all calls from now on.
    func dismiss() { drainState = .dismissed }

    /// Handles a call on a draining connection: makes it until the connection is dismissed.
    @inline(never)
    private func receiveLate(_ message: borrowing Message) {
        guard drainState == .dismissed else {
            shard.lastLateMessage = shard.reactor.now
            return message.kind == .invocation ? invoke(message) : idempotentCalls.receiveRepeat(message)
        }
        if let upstream { return upstream.refuse(Array(message.callID)) }
        fail(message, TrebuchetError(.unavailable, "the server is shutting down"))
    }

    func close(_ code: WebSocketCloseCode, reason: String) { link.close(code, reason: reason) }

    package func linkDidClose() { linkDidClose(.lost) }

    /// Releases everything the closed connection has at actors.
    func linkDidClose(_ closing: ServerEvent.Closing) {
        guard isOpen else { return }
        recordQueuedCalls()
        isOpen = false
        if isObserved { shard.observer.didClose(peer, opened: opened, closing) }
        for call in calls.removeAll() {
            shard.observer.didAbandon(call)
            abandon(call)
        }
        // Recorded calls continue with this object and must not reach the former transport.
        link = ClosedLink(host: link.host)
        clientActorHost?.linkDidClose()
        forwarder?.close()
        forwarder = nil
        recordedCalls = nil
        crossReactorCalls?.endAll(nil)
        deferredResponses?.drop()
        if recordsResponses { shard.idempotencyCache.close(name) }
        let subscriptions = streams.values
        streams.removeStarted()
        for subscription in subscriptions {
            shard.counts.count(.streamsEnded)
            shard.observer.didEnd(subscription, of: name, "connectionClosed")
            subscription.broadcaster.remove(subscription, isLost: true)
            releaseStream(isFiltered: subscription.isFiltered)
        }
        reservation?.release()
        shard.remove(self)
        callerConnection?.didClose()
    }
}

/// Calls and streams that still wait when a stopping server closes its connections.
extension ServerConnection {
    private static var notMade: TrebuchetError {
        TrebuchetError(.unavailable, "the server is shutting down and did not execute the call; retry")
    }
    private static var unknown: TrebuchetError {
        TrebuchetError(
            .unknownOutcome, "the server is shutting down during the call, which may have taken effect")
    }

    /// Answers the calls that still wait: with `unknownOutcome`, or with `unavailable` when they have not begun. A call that its
    /// client repeats is not answered: it gets its response from the next owner of its actor, or from the next process.
    func endWaitingCalls() {
        guard isOpen else { return }
        recordQueuedCalls()
        crossReactorCalls?.endAll(Self.unknown)
        for call in calls.all { endWaiting(call) }
        for request in Array(streams.starting.values) {
            // A refusal may have ended the connection.
            guard isOpen else { return }
            request.reservation.withdraw(nil)
            streams.removeRequest(request)
            refuseOrMove(request.name, request.callID)
        }
    }

    private func endWaiting(_ call: InFlightCall) {
        // The answer of an earlier call may have ended the connection.
        guard isOpen, !call.isAnswered else { return }
        if case .awaitingStreams(let barrier) = call.phase { return barrier.sendResponse() }
        if let stream = call.stream {
            withdraw(call)
            return refuseOrMove(stream, call.callID)
        }
        let response = call.shutdownResponse
        if response == .none { return }
        if let upstream, response == .unavailable {
            call.intercepted?.leave()
            withdraw(call)
            return upstream.refuse(call.callID)
        }
        call.cancel()
        finish(call, .failure(response == .unavailable ? Self.notMade : Self.unknown))
    }

    /// Refuses a stream that does not start here, or moves it to the client's next connection if the client has it already.
    private func refuseOrMove(_ stream: RequestedStream, _ callID: [UInt8]) {
        if !beginsElsewhere(stream, callID) { refuse(stream, callID, Self.notMade) }
    }
}

/// Messages about client actors.
extension ServerConnection: ClientCallingConnection {
    /// Handles a client's identity. From now on the client may export actors.
    func host(_ identity: String) throws(EnvelopeError) {
        guard
            (ClientActorHosts.shortestIdentity...ScannedEnvelope.maximumIdentifierLength).contains(identity.utf8.count)
        else {
            throw EnvelopeError(
                "hello: client must be an unpredictable text of \(ClientActorHosts.shortestIdentity) to "
                    + "\(ScannedEnvelope.maximumIdentifierLength) characters")
        }
        let clients = shard.context.hosting
        let key = clients.key(of: identity, principal: principalRow?.principal)
        if let clientActorHost {
            guard clientActorHost.client.key == key else {
                throw EnvelopeError("hello: this connection already has another client identity")
            }
            return
        }
        let hosting = ClientActorHostConnection(
            self, on: shard.reactor, clients.client(key, scopes, reactor: shard.reactor))
        self.clientActorHost = hosting
        hosting.client.reactor.run { hosting.client.attach(hosting) }
    }

    /// Receives the response to a call of a client actor.
    func receiveResponse(_ message: borrowing Message) throws(EnvelopeError) {
        guard let clientActorHost else { throw EnvelopeError("unexpected response: the client received no call") }
        try clientActorHost.answer(message)
    }

    /// Handles the final close of the client, which will not reconnect.
    func clientDidLeave() {
        clientActorHost?.client.close("was closed")
    }
}
