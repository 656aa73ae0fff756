internal import Bytes
internal import Networking
internal import TrebuchetActors
internal import TrebuchetWire

/// Interceptors of calls and streams. A request around which interceptors run in a task is an in-flight call. When they continue it, the
/// call is withdrawn and its message handled again, without further interception. The next in-flight call of the message takes over the
/// `InterceptedCall`, which receives the outcome or the refusal.
extension ServerConnection {
    /// Returns whether interceptors refuse a request or run around it in a task; false if the request continues now.
    ///
    /// - Parameter method: nil for a stream.
    func isIntercepted(
        _ message: borrowing Message, _ target: String, _ method: ActorMethod?, of type: ActorType
    ) -> Bool {
        // A message that is handled again has been intercepted, except at another server.
        guard let interceptors = shard.interceptors, !isServer,
            !isCounted || isReturnedResumption || continuedCall?.wasForwarded == true
        else { return false }
        let isAsynchronous = !interceptors.others.isEmpty
        if isAsynchronous, !isCounted, shard.context.hasRates, let refusal = rateRefusal(of: target, message.actorName)
        {
            fail(message, refusal)
            return true
        }
        let request = request(message, target, method, of: type, readsArguments: interceptors.needsArguments)
        do {
            for interceptor in interceptors.admissions { try interceptor.admit(request) }
        } catch {
            fail(message, error)
            return true
        }
        guard isAsynchronous else { return false }
        if method == nil {
            intercept(stream: request, message, interceptors)
        } else {
            intercept(request, message, interceptors)
        }
        return true
    }

    /// Returns whether interceptors refuse a repeat of a call or run around it in a task.
    func isInterceptedRepeat(_ message: borrowing Message) -> Bool {
        guard shard.interceptors != nil else { return false }
        let type: ActorType
        switch location(of: message) {
        case .ready(let record): type = record.type
        case .inactive(let inactive): type = inactive
        case .elsewhere, .unknown: return false
        }
        guard case .method(let method) = type.target(message.target) else { return false }
        return method._withUnsafeGuaranteedRef { isIntercepted(message, $0.name, $0, of: type) }
    }

    private func request(
        _ message: borrowing Message, _ target: String, _ method: ActorMethod?, of type: ActorType, readsArguments: Bool
    ) -> ServerRequest {
        var arguments: ServerRequest.Arguments?
        if readsArguments, let method {
            arguments = shard.hidesErrors(of: method, type) ? .redacted : .json(message.argumentArray)
        }
        return ServerRequest(
            kind: method == nil ? .stream : .call, actor: message.actorName, type: type.name, target: target,
            caller: authorization.caller, connection: name.number, isRepeat: message.kind == .repeat,
            isResumed: message.kind == .streamResume, timeLimit: timeLimit(of: message), trace: message.trace,
            arguments: arguments, metadata: message.metadata)
    }

    /// Runs interceptors around a call.
    private func intercept(_ request: ServerRequest, _ message: borrowing Message, _ interceptors: ServerInterceptors) {
        guard let call = registerCall(message, isPermitted: false) else { return }
        let intercepted = InterceptedCall(call)
        call.intercepted = intercepted
        _ = call.beginInterception()
        let (reactor, owned) = (shard.reactor, OwnedMessage(message))
        // Starts on the reactor before this method returns, so calls whose interceptors do not suspend keep their order.
        intercepted.run(
            in: Task.immediate(executorPreference: reactor.taskExecutor) {
                let result: Result<InterceptedResult, any Error>
                do {
                    result = .success(
                        try await interceptors.run(request) { changed in
                            try await withCheckedThrowingContinuation { continuation in
                                reactor.execute {
                                    guard intercepted.proceed(continuation) else { return }
                                    self.proceed(intercepted, owned, changed.metadata)
                                }
                            }
                        })
                } catch {
                    result = .failure(error)
                }
                reactor.execute { self.interceptorsDidEnd(intercepted, request, result) }
            })
    }

    /// Continues a call that its interceptors have passed.
    private func proceed(_ intercepted: InterceptedCall, _ owned: OwnedMessage, _ metadata: CallMetadata) {
        guard let call = intercepted.call else { return }
        intercepted.metadata = metadata
        stopWork(of: intercepted)
        withdraw(call)
        continuing(call) { owned.withMessage { handleReturned($0) } }
        // Each path registers, refuses or forwards the call.
        guard intercepted.call === call else { return }
        let error = TrebuchetError(.internal, "the call has ended without an outcome")
        intercepted.detach(error)
        fail(call.callID, error)
    }

    /// Answers a call whose interceptors have ended.
    private func interceptorsDidEnd(
        _ intercepted: InterceptedCall, _ request: ServerRequest, _ result: Result<InterceptedResult, any Error>
    ) {
        if intercepted.isCountedAlone { calls.releaseFurtherWork() }
        guard let call = intercepted.call else { return }
        if !intercepted.hasProceeded, !call.isAnswered, case .failure(let error) = result {
            shard.observer.didReject(request.actor, request.target, error, by: peer)
        }
        let outcome = intercepted.end(result)
        stopWork(of: intercepted)
        intercepted.detach(CancellationError())
        if !call.isAnswered { finish(call, outcome) }
    }

    /// Counts a withdrawn call again whose refusal its interceptors have received.
    func holdIfRefused(_ call: InFlightCall) {
        if let intercepted = call.intercepted, intercepted.isRefused { hold(intercepted, call) }
    }

    /// Counts interceptors that have received a refusal as a call, with the deadline of the refused one.
    private func hold(_ intercepted: InterceptedCall, _ refused: InFlightCall) {
        guard isOpen else { return intercepted.abandon() }
        let limit = Duration.nanoseconds(Int64(clamping: refused.machineDeadline &- refused.began))
        let call = InFlightCall(
            callID: refused.callID, after: limit, on: shard.reactor, byteCount: refused.byteCount, continuing: refused)
        call.caller = refused.caller
        call.inherit(intercepted, of: refused)
        intercepted.isAtWork = true
        _ = call.beginInterception()
        _ = account.adjustUsage(by: call.byteCount)
        time(call, within: limit)
        calls.list(call)
        if calls.count(call) { link.pauseReading() }
        shard.counts.count(.callsBegun)
    }

    /// Counts interceptors that work on after their call, until they end.
    private func countAlone(_ intercepted: InterceptedCall) {
        guard !intercepted.isAtWork, !intercepted.isCountedAlone else { return }
        intercepted.isCountedAlone = true
        calls.countFurtherWork()
    }

    private func stopWork(of intercepted: InterceptedCall) {
        guard intercepted.isAtWork, let call = intercepted.call else { return }
        intercepted.isAtWork = false
        didWork(call)
    }

    /// Runs interceptors before a stream, which waits as a running call. Then its message is handled again.
    private func intercept(
        stream request: ServerRequest, _ message: borrowing Message, _ interceptors: ServerInterceptors
    ) {
        let resumed = message.kind == .streamResume ? ownName(in: message) : nil
        guard let call = registerCall(message, resumed ?? Array(message.callID), isPermitted: false) else { return }
        call.stream = RequestedStream(actor: ActorName(request.actor), target: request.target, resumed: resumed)
        _ = call.beginInterception()
        let (reactor, owned) = (shard.reactor, OwnedMessage(message))
        call.run(
            in: Task.immediate(executorPreference: reactor.taskExecutor) {
                let result: Result<Void, any Error>
                do {
                    result = .success(try await interceptors.runStart(request))
                } catch {
                    result = .failure(error)
                }
                reactor.execute {
                    self.didWork(call)
                    guard self.isOpen, !call.isAnswered else { return }
                    defer { self.sendReadyResponses() }
                    if case .failure(let error) = result { return self.finish(call, .failure(error)) }
                    self.withdraw(call)
                    self.continuing(call) { owned.withMessage { self.handleReturned($0) } }
                }
            })
    }

    // MARK: Outcomes

    /// Indicates whether the message in hand is that of a call around which interceptors run.
    var isContinuingIntercepted: Bool { continuedCall?.intercepted != nil }

    /// Passes a refusal of the message in hand to its interceptors. Returns false if there are none.
    func passesRefusal(_ error: any Error) -> Bool { continuedCall?.intercepted?.refuse(error) == true }

    /// Ends the interception of the message in hand, which another server executes.
    func endInterception() { if let continuedCall { endInterception(of: continuedCall) } }

    /// Ends the interception of a call that another server executes.
    func endInterception(of call: InFlightCall) {
        guard let intercepted = call.intercepted else { return }
        stopWork(of: intercepted)
        countAlone(intercepted)
        intercepted.detach(
            TrebuchetError(.unavailable, "the actor has moved to another server, which intercepts the call"))
    }

    var continuedCall: InFlightCall? {
        guard let continued = shard.continued, continued.connection === self else { return nil }
        return continued.call
    }

    /// Passes the outcome of a call to its interceptors. Returns the outcome for the client; nil if it depends on them.
    func outcome(of call: InFlightCall, _ outcome: CallOutcome) -> CallOutcome? {
        guard let intercepted = call.intercepted, !call.isAnswered else { return outcome }
        if let final = intercepted.receive(outcome) {
            countAlone(intercepted)
            return final
        }
        intercepted.isAtWork = true
        if case .awaitingStreams(let barrier)? = call.beginInterception() { release(barrier) }
        return nil
    }
}
