/// The calls of one reactor that wait for the activation of one name, in their order of arrival. Only on that reactor.
final class ActivationQueue {
    /// The quota scopes of the first caller, in which the activation counts.
    let scopes: QuotaScopes
    fileprivate var waiters: [ActivationWaiter] = []
    /// The index of the next waiter; earlier ones have been resumed.
    private var next = 0
    /// The number of cancelled waiters from `next` on.
    private var cancelledCount = 0

    init(for scopes: QuotaScopes) { self.scopes = scopes }

    /// The number of waiters.
    var count: Int { waiters.count - next - cancelledCount }

    func addWaiter(_ resume: @escaping (Result<ActorRecord, any Error>) -> Void) -> ActivationWaiter {
        let waiter = ActivationWaiter(self, resume)
        waiters.append(waiter)
        return waiter
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

    /// Resumes up to `count` of the first waiters while the actor stays active. Returns whether more wait.
    func resume(atMost count: Int, _ outcome: Result<ActorRecord, any Error>) -> Bool {
        let end = min(next + count, waiters.count)
        while next < end, !Self.isDeactivated(outcome) {
            let waiter = waiters[next]
            next += 1
            if let resume = waiter.removeCompletion() { resume(outcome) } else { cancelledCount -= 1 }
        }
        if next == waiters.count { (waiters, next, cancelledCount) = ([], 0, 0) }
        return !waiters.isEmpty
    }
}

/// One waiting call.
final class ActivationWaiter {
    private weak var queue: ActivationQueue?
    fileprivate var resume: ((Result<ActorRecord, any Error>) -> Void)?

    fileprivate init(_ queue: ActivationQueue, _ resume: @escaping (Result<ActorRecord, any Error>) -> Void) {
        self.queue = queue
        self.resume = resume
    }

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
