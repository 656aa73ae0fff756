internal import Synchronization
internal import TrebuchetActors

/// A call around which interceptors run in a task. It refers to the in-flight call that has it, which is another one when the message is
/// handled again.
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

    private var phase = Phase.before
    private var isCancelled = false
    private let task = Mutex(CancellableTaskSlot())
    /// The in-flight call; nil when it no longer belongs to the interceptors.
    var call: InFlightCall?
    /// True if the interceptors have continued the call.
    private(set) var hasProceeded = false
    /// The metadata from the innermost interceptor.
    var metadata: CallMetadata?
    /// True if the call was refused after it was withdrawn.
    private(set) var isRefused = false
    /// Set while the call is in the phase `intercepted`, or has ended in it.
    var isAtWork = true

    /// True if the interceptors count besides their call, which has ended before them.
    var isCountedAlone = false

    /// True if the call was executed or refused.
    var hasOutcome: Bool { if case .after = phase { true } else { false } }

    init(_ call: InFlightCall) { self.call = call }

    func run(in task: Task<Void, Never>) { self.task.fill(task) }

    /// Continues the call for the innermost interceptor. Returns false if it may not continue; the interceptor has the error then.
    func proceed(_ continuation: CheckedContinuation<InterceptedResult, any Error>) -> Bool {
        guard case .before = phase, !isCancelled, call?.isAnswered == false else {
            switch phase {
            case .inside, .after:
                continuation.resume(throwing: TrebuchetError(.internal, "an interceptor has called next twice"))
            case .before, .ended: continuation.resume(throwing: CancellationError())
            }
            return false
        }
        phase = .inside(continuation)
        hasProceeded = true
        return true
    }

    /// Passes an outcome to the interceptors. Returns the outcome for the client; nil if it depends on the interceptors.
    func receive(_ outcome: CallOutcome) -> CallOutcome? {
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
        isRefused = receive(.failure(error)) == nil
        return isRefused
    }

    /// Returns the outcome of a call whose interceptors have ended.
    func end(_ result: Result<InterceptedResult, any Error>) -> CallOutcome {
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

    /// Ends the interceptors' part in the call, which fails for them.
    func detach(_ error: any Error) {
        if case .inside(let continuation) = phase { continuation.resume(throwing: error) }
        phase = .ended
        call?.intercepted = nil
        call = nil
    }
}
