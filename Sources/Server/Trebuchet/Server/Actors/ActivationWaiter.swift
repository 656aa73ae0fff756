internal import Networking
internal import Transports

/// The calls of one reactor that wait for the activation of one name, in their order of arrival. Only on that reactor.
final class ActivationQueue: Resumable {
    fileprivate var waiters: [ActivationWaiter] = []
    /// The index of the next waiter; earlier ones have been resumed.
    private var next = 0
    /// The number of cancelled waiters from `next` on.
    private var cancelledCount = 0
    /// The work of a scheduled resumption.
    private var whenResumed: (() -> Void)?

    /// The number of waiters.
    var count: Int { waiters.count - next - cancelledCount }

    /// The quota scopes of the first waiter, in which the next activation counts; nil without waiters.
    var nextScopes: QuotaScopes? { waiters[next...].first { !$0.isCancelled }?.scopes }

    /// - Parameters:
    ///   - scopes: the quota scopes of the caller.
    ///   - isLarge: whether the call may take long because of its size. It is resumed in a long step.
    func addWaiter(
        for scopes: QuotaScopes, isLarge: Bool, _ resume: @escaping (Result<ActorRecord, any Error>) -> Void
    ) -> ActivationWaiter {
        let waiter = ActivationWaiter(self, for: scopes, isLarge: isLarge, resume)
        waiters.append(waiter)
        return waiter
    }

    /// Moves the waiters of the callers that a refusal concerns to another queue. All keep their order.
    func removeWaiters(refusedBy refusal: CallerRefusal) -> ActivationQueue {
        let refused = ActivationQueue()
        var others: [ActivationWaiter] = []
        for waiter in waiters[next...] where !waiter.isCancelled {
            if refusal.concerns(waiter.scopes) {
                waiter.queue = refused
                refused.waiters.append(waiter)
            } else {
                others.append(waiter)
            }
        }
        (waiters, next, cancelledCount) = (others, 0, 0)
        return refused
    }

    private static func isDeactivated(_ outcome: Result<ActorRecord, any Error>) -> Bool {
        if case .success(let record) = outcome { record.actorInstance.isDeactivated } else { false }
    }

    fileprivate func waiterDidCancel() {
        cancelledCount += 1
        // Compacts when half of them have left, so that each is moved once on average.
        guard cancelledCount * 2 > waiters.count - next else { return }
        waiters = waiters[next...].filter { $0.resume != nil }
        (next, cancelledCount) = (0, 0)
    }

    /// Resumes the first waiters, at least one, while the actor stays active. Returns whether more wait.
    ///
    /// - Parameters:
    ///   - isLongStep: whether the first one may be a large call. Another one needs another step.
    ///   - isTimeUp: whether the others must wait for a later turn.
    func resume(
        isLongStep: Bool, _ outcome: Result<ActorRecord, any Error>, until isTimeUp: () -> Bool
    ) -> Bool {
        var mayBeLarge = isLongStep
        while next < waiters.count, !Self.isDeactivated(outcome) {
            let waiter = waiters[next]
            guard !waiter.isLarge || waiter.isCancelled || mayBeLarge else { break }
            mayBeLarge = false
            next += 1
            if let resume = waiter.removeCompletion() { resume(outcome) } else { cancelledCount -= 1 }
            if isTimeUp() { break }
        }
        if next == waiters.count { (waiters, next, cancelledCount) = ([], 0, 0) }
        return !waiters.isEmpty
    }

    /// Calls `body` in a later turn: in a long step if the next waiter is a large call.
    func resumeLater(on reactor: Reactor, _ body: @escaping (_ isLongStep: Bool) -> Void) {
        let isLongStep = next < waiters.count && waiters[next].isLarge
        whenResumed = { body(isLongStep) }
        if isLongStep { reactor.scheduleLongStep(self) } else { reactor.scheduleResume(self) }
    }

    func resume() {
        let body = whenResumed
        whenResumed = nil
        body?()
    }
}

/// One waiting call.
final class ActivationWaiter {
    fileprivate weak var queue: ActivationQueue?
    fileprivate let scopes: QuotaScopes
    fileprivate let isLarge: Bool
    fileprivate var resume: ((Result<ActorRecord, any Error>) -> Void)?

    fileprivate init(
        _ queue: ActivationQueue, for scopes: QuotaScopes, isLarge: Bool,
        _ resume: @escaping (Result<ActorRecord, any Error>) -> Void
    ) {
        (self.queue, self.scopes, self.isLarge, self.resume) = (queue, scopes, isLarge, resume)
    }

    fileprivate var isCancelled: Bool { resume == nil }

    fileprivate func removeCompletion() -> ((Result<ActorRecord, any Error>) -> Void)? {
        defer { resume = nil }
        return resume
    }

    /// Cancels the wait and releases the closure.
    func cancel() {
        guard resume != nil else { return }
        resume = nil
        queue?.waiterDidCancel()
    }
}
