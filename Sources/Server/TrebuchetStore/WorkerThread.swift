internal import Platform
internal import Synchronization

/// A thread with a request queue and a state that only it uses. It takes all waiting requests at once.
final class WorkerThread<State, Request: Sendable>: Sendable {
    /// The state, and the closures that the thread calls.
    private struct Work {
        let state: State
        let handle: @Sendable (State, [Request]) -> Bool
        let whenIdle: @Sendable (State) -> Bool
    }

    /// The waiting requests, under the lock.
    private struct Queue {
        var requests: [Request] = []
        var isStopping = false
        var hasEnded = false
        /// True if the thread was woken and has not checked the queue yet.
        var isAwake = false
        var ended: [@Sendable () -> Void] = []
    }

    /// Nil after the thread has started and taken the work.
    private let work: Mutex<Work?>
    private let queue = Mutex(Queue())
    private let wakeUp = ThreadSemaphore()

    /// Starts the thread. Both closures are called only on it. They and the state are released at its end.
    ///
    /// - Parameters:
    ///   - state: the argument of both closures, which no other code uses any more.
    ///   - whenIdle: called at the beginning and after requests when none wait, repeatedly while it returns true for more work;
    ///     not when the thread is to end.
    ///   - handle: handles the requests that wait now. If it returns true, it has kept some, and is called again, perhaps without
    ///     a request.
    init(
        _ name: String, _ state: sending State, whenIdle: @escaping @Sendable (State) -> Bool = { _ in false },
        _ handle: @escaping @Sendable (State, [Request]) -> Bool
    ) {
        work = Mutex(Work(state: state, handle: handle, whenIdle: whenIdle))
        startThread(named: name) {
            self.loop()
            self.finish()
        }
    }

    /// Queues a request. Returns false when the thread is stopping.
    func submit(_ request: Request) -> Bool {
        let (isAccepted, mustWake) = queue.withLock { queue in
            guard !queue.isStopping else { return (false, false) }
            queue.requests.append(request)
            defer { queue.isAwake = true }
            return (true, !queue.isAwake)
        }
        if mustWake { wakeUp.signal() }
        return isAccepted
    }

    /// Lets the thread complete its requests and end. `ended` is called after that.
    func stop(_ ended: @escaping @Sendable () -> Void) {
        let (hasEnded, mustWake) = queue.withLock { queue in
            queue.isStopping = true
            if queue.hasEnded { return (true, false) }
            queue.ended.append(ended)
            defer { queue.isAwake = true }
            return (false, !queue.isAwake)
        }
        if hasEnded { ended() }
        if mustWake { wakeUp.signal() }
    }

    /// Runs until it is stopped. At its return the state and the closures are released before the end is reported.
    private func loop() {
        guard let work = work.withLock({ $0.take() }) else { preconditionFailure("the thread was started twice") }
        var hasMore = work.whenIdle(work.state)
        var hasKept = false
        while true {
            // A submission during idle work signals too: then a later wait ends at once.
            if !hasMore { wakeUp.wait() }
            var requests: [Request] = []
            let isStopping = queue.withLock { queue in
                swap(&requests, &queue.requests)
                queue.isAwake = false
                return queue.isStopping
            }
            let wasIdle = requests.isEmpty && !hasKept
            if !wasIdle { hasKept = work.handle(work.state, requests) }
            if isStopping, !hasKept { return }
            hasMore = wasIdle ? work.whenIdle(work.state) : true
        }
    }

    private func finish() {
        let ended = queue.withLock { queue in
            queue.hasEnded = true
            defer { queue.ended = [] }
            return queue.ended
        }
        for completion in ended { completion() }
    }
}
