internal import Networking
internal import Synchronization
internal import TrebuchetActors
internal import TrebuchetWire

/// A call around which interceptors run in a task. When they continue it, the in-flight call is withdrawn and its message handled again,
/// without further interception. The next in-flight call of the message takes over this object, which receives the outcome or the refusal.
///
/// `@unchecked Sendable`: isolated to the connection's reactor.
final class InterceptedCall: @unchecked Sendable {
    private enum Phase {
        /// No interceptor has continued the call, or one is about to.
        case before
        /// The call is executed or refused; its outcome goes to the interceptors.
        case inside(CheckedContinuation<InterceptedResult, any Error>)
        /// The interceptors have the outcome.
        case after(CallOutcome)
        /// The call has ended, or is handled elsewhere.
        case ended
    }

    private let connection: ServerConnection
    private var phase = Phase.before
    private var isCancelled = false
    private let task = Mutex(CancellableTaskSlot())
    /// The in-flight call; nil when it no longer belongs to the interceptors.
    var call: InFlightCall?
    /// True if the interceptors have continued the call.
    private var hasProceeded = false
    /// The metadata from the innermost interceptor.
    private(set) var metadata: CallMetadata?
    /// True if the call was refused after it was withdrawn.
    private var isRefused = false
    /// Set while the call is in the phase `intercepted`, or has ended in it.
    private var isAtWork = true
    /// True if the interceptors count besides their call, which has ended before them.
    private var isCountedAlone = false

    /// True if the call was executed or refused.
    var hasOutcome: Bool { if case .after = phase { true } else { false } }

    init(_ call: InFlightCall, of connection: ServerConnection) {
        (self.call, self.connection) = (call, connection)
        call.intercepted = self
        _ = call.beginInterception()
    }

    // MARK: The interceptors

    /// Runs interceptors around the call.
    func run(_ interceptors: ServerInterceptors, _ request: ServerRequest, _ message: borrowing Message) {
        let (reactor, owned) = (connection.shard.reactor, OwnedMessage(message))
        // Starts on the reactor before this method returns, so calls whose interceptors do not suspend keep their order.
        let task = Task.immediate(executorPreference: reactor.taskExecutor) {
            let result: Result<InterceptedResult, any Error>
            do {
                result = .success(
                    try await interceptors.run(request) { changed in
                        try await withCheckedThrowingContinuation { continuation in
                            reactor.execute { self.proceed(continuation, owned, changed.metadata) }
                        }
                    })
            } catch {
                result = .failure(error)
            }
            reactor.execute { self.didEnd(result, request) }
        }
        self.task.fill(task)
    }

    /// Continues the call for the innermost interceptor. If it may not continue, the interceptor gets the error.
    private func proceed(
        _ continuation: CheckedContinuation<InterceptedResult, any Error>, _ owned: OwnedMessage,
        _ metadata: CallMetadata
    ) {
        guard case .before = phase, !isCancelled, let call, !call.isAnswered else {
            switch phase {
            case .inside, .after:
                continuation.resume(throwing: TrebuchetError(.internal, "an interceptor has called next twice"))
            case .before, .ended: continuation.resume(throwing: CancellationError())
            }
            return
        }
        phase = .inside(continuation)
        hasProceeded = true
        self.metadata = metadata
        stopWork()
        connection.continueAgain(call, owned)
        // Each path registers, refuses or forwards the call.
        guard self.call === call else { return }
        let error = TrebuchetError(.internal, "the call has ended without an outcome")
        detach(error)
        connection.fail(call.callID, error)
    }

    /// Answers the call after the end of the interceptors.
    private func didEnd(_ result: Result<InterceptedResult, any Error>, _ request: ServerRequest) {
        if isCountedAlone { connection.calls.releaseFurtherWork() }
        guard let call else { return }
        if !hasProceeded, !call.isAnswered, case .failure(let error) = result {
            connection.shard.observer.didReject(request.actor, request.target, error, by: connection.peer)
        }
        let outcome = end(result)
        stopWork()
        detach(CancellationError())
        if !call.isAnswered { connection.finish(call, outcome) }
    }

    /// Returns the outcome of a call whose interceptors have ended.
    private func end(_ result: Result<InterceptedResult, any Error>) -> CallOutcome {
        let last = phase
        phase = .ended
        // An interceptor has left a task behind that waits for the outcome.
        if case .inside(let continuation) = last { continuation.resume(throwing: CancellationError()) }
        switch (result, last) {
        case (.failure(let error), _): return .failure(error)
        case (.success, .after(let outcome)): return outcome
        case (.success, _):
            return .failure(TrebuchetError(.internal, "an interceptor has returned before the call had ended"))
        }
    }

    // MARK: The call

    /// Passes an outcome of the call to the interceptors. Returns the outcome for the client; nil if it depends on the interceptors.
    func receive(_ outcome: CallOutcome) -> CallOutcome? {
        if let final = pass(outcome) {
            countAlone()
            return final
        }
        isAtWork = true
        if case .awaitingStreams(let barrier)? = call?.beginInterception() { connection.release(barrier) }
        return nil
    }

    private func pass(_ outcome: CallOutcome) -> CallOutcome? {
        switch phase {
        // After the first outcome, only the deadline, a cancellation or the shutdown: the client must not receive a result that the
        // interceptors may replace.
        case .before, .after, .ended: return outcome
        case .inside(let continuation):
            phase = isCancelled ? .ended : .after(outcome)
            continuation.resume(with: outcome.map { _ in InterceptedResult(json: nil) })
            return isCancelled ? outcome : nil
        }
    }

    /// Passes a refusal to the interceptors. Returns false if none waits for it.
    func refuse(_ error: any Error) -> Bool {
        guard case .inside = phase else { return false }
        isRefused = pass(.failure(error)) == nil
        return isRefused
    }

    /// Counts the interceptors of a withdrawn call that have received its refusal as a call, with the same deadline.
    func holdIfRefused(_ refused: InFlightCall) {
        guard isRefused else { return }
        guard connection.isOpen else { return abandon() }
        isAtWork = true
        connection.registerCall(self, of: refused)
    }

    /// Cancels the interceptors; the outcome of the call follows.
    func cancel() {
        isCancelled = true
        task.cancel()
    }

    /// Cancels the interceptors of a call whose connection has closed.
    func abandon() {
        cancel()
        if case .inside(let continuation) = phase { continuation.resume(throwing: CancellationError()) }
        phase = .ended
    }

    /// Ends the interception of a call that another server executes. The interceptors count until they end.
    func leave() {
        stopWork()
        countAlone()
        detach(TrebuchetError(.unavailable, "the actor has moved to another server, which intercepts the call"))
    }

    /// Ends the interceptors' part in the call, which fails for them.
    private func detach(_ error: any Error) {
        if case .inside(let continuation) = phase { continuation.resume(throwing: error) }
        phase = .ended
        call?.intercepted = nil
        call = nil
    }

    // MARK: The load

    private func stopWork() {
        guard isAtWork, let call else { return }
        isAtWork = false
        connection.didWork(call)
    }

    /// Counts interceptors that work on after their call, until they end.
    private func countAlone() {
        guard !isAtWork, !isCountedAlone else { return }
        isCountedAlone = true
        connection.calls.countFurtherWork()
    }
}
