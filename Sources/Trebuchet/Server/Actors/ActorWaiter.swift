/// Calls of one reactor that wait for the actor of one name to be made, in the order in which they came.
///
/// `@unchecked Sendable`: on its reactor alone.
final class ActorQueue: @unchecked Sendable {
    /// Of the first of them: whose share of the actors on demand it counts in.
    let parties: Parties
    fileprivate var waiters: [ActorWaiter] = []
    /// Those before it have been resumed.
    private var next = 0
    /// How many of the others have left.
    private var left = 0

    init(for parties: Parties) { self.parties = parties }

    /// Those that still wait.
    var count: Int { waiters.count - next - left }

    func add(_ resume: @escaping (Result<ActorRecord, any Error>) -> Void) -> ActorWaiter {
        let waiter = ActorWaiter(self, resume)
        waiters.append(waiter)
        return waiter
    }

    private static func isGone(_ outcome: Result<ActorRecord, any Error>) -> Bool {
        if case .success(let record) = outcome { record.life.isGone } else { false }
    }

    fileprivate func didLeave() {
        left += 1
        // Half of them at a time, so that each is moved once on average.
        guard left * 2 > waiters.count - next else { return }
        waiters = waiters[next...].filter { $0.resume != nil }
        (next, left) = (0, 0)
    }

    /// Resumes up to `count` of them, the first ones, for as long as the actor stays. Whether there are more.
    func resume(atMost count: Int, _ outcome: Result<ActorRecord, any Error>) -> Bool {
        let end = min(next + count, waiters.count)
        while next < end, !Self.isGone(outcome) {
            let waiter = waiters[next]
            next += 1
            if let resume = waiter.take() { resume(outcome) } else { left -= 1 }
        }
        if next == waiters.count { (waiters, next, left) = ([], 0, 0) }
        return !waiters.isEmpty
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
