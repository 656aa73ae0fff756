/// Calls of one reactor that wait for the actor of one name to be made, in the order in which they came.
///
/// On its reactor alone.
final class ActorQueue {
    fileprivate var waiters: [ActorWaiter] = []
    /// How many of them have left.
    private var left = 0

    func add(_ resume: @escaping (Result<ActorRecord, any Error>) -> Void) -> ActorWaiter {
        let waiter = ActorWaiter(self, resume)
        waiters.append(waiter)
        return waiter
    }

    fileprivate func didLeave() {
        left += 1
        // Half of them at a time, so that each is moved once on average.
        guard left * 2 > waiters.count else { return }
        waiters.removeAll { $0.resume == nil }
        left = 0
    }

    func resume(_ outcome: Result<ActorRecord, any Error>) {
        let waiting = waiters
        waiters = []
        for waiter in waiting { waiter.take()?(outcome) }
    }
}

/// One of them.
final class ActorWaiter {
    private weak var queue: ActorQueue?
    fileprivate var resume: ((Result<ActorRecord, any Error>) -> Void)?

    fileprivate init(_ queue: ActorQueue, _ resume: @escaping (Result<ActorRecord, any Error>) -> Void) {
        self.queue = queue
        self.resume = resume
    }

    fileprivate func take() -> ((Result<ActorRecord, any Error>) -> Void)? {
        defer { resume = nil }
        return resume
    }

    /// It waits no more, and what it held is freed.
    func leave() {
        guard resume != nil else { return }
        resume = nil
        queue?.didLeave()
    }
}
