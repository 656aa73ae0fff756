internal import Platform
internal import Synchronization

/// A thread that is handed requests and takes all that wait at once.
final class WorkerThread<Request: Sendable>: Sendable {
    private struct Work: Sendable {
        let handle: @Sendable ([Request]) -> Void
        let whenIdle: @Sendable () -> Bool
    }

    private struct Queue {
        /// Until the thread has begun, which has it then.
        var work: Work?
        var requests: [Request] = []
        var isStopping = false
        var hasEnded = false
        /// Whether the thread has been woken and has not looked yet.
        var isAwake = false
        var ended: [@Sendable () -> Void] = []
    }

    private let queue: Mutex<Queue>
    private let wakeUp = ThreadSemaphore()

    /// Starts the thread. Both closures are called on it alone, and let go of at its end.
    ///
    /// - Parameter whenIdle: called at the beginning and after requests when none wait, again and again as long as it says
    ///   that there is more to do; not when the thread is to end.
    init(
        _ name: String, whenIdle: @escaping @Sendable () -> Bool = { false },
        _ handle: @escaping @Sendable ([Request]) -> Void
    ) {
        queue = Mutex(Queue(work: Work(handle: handle, whenIdle: whenIdle)))
        startThread(named: name) {
            self.loop()
            self.finish()
        }
    }

    /// Hands over a request; false when the thread is stopping.
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

    /// Lets the thread do what it was handed, and end. `ended` is called after that.
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

    /// Runs until it is stopped. The closures go when it returns, and what they have open, before anybody is told of the end.
    private func loop() {
        guard let work = queue.withLock({ $0.work.take() }) else { preconditionFailure("the thread was started twice") }
        var hasMore = work.whenIdle()
        while true {
            // Whoever hands something over while there is more to do signals too: then a later wait ends at once.
            if !hasMore { wakeUp.wait() }
            var requests: [Request] = []
            let isStopping = queue.withLock { queue in
                swap(&requests, &queue.requests)
                queue.isAwake = false
                return queue.isStopping
            }
            if !requests.isEmpty { work.handle(requests) }
            if isStopping { return }
            hasMore = requests.isEmpty ? work.whenIdle() : true
        }
    }

    private func finish() {
        let ended = queue.withLock { queue in
            queue.hasEnded = true
            defer { queue.ended = [] }
            return queue.ended
        }
        for tell in ended { tell() }
    }
}
