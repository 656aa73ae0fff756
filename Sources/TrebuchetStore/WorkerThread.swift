internal import Platform
internal import Synchronization

/// A thread that is handed requests and takes all that wait at once.
final class WorkerThread<Request: Sendable>: Sendable {
    private struct Queue {
        /// Until the thread has begun, which has it then.
        var handle: (@Sendable ([Request]) -> Void)?
        var requests: [Request] = []
        var isStopping = false
        var hasEnded = false
        /// Whether the thread has been woken and has not looked yet.
        var isAwake = false
        var ended: [@Sendable () -> Void] = []
    }

    private let queue: Mutex<Queue>
    private let wakeUp = ThreadSemaphore()

    /// Starts the thread. `handle` is called on it alone, and let go of at its end.
    init(_ name: String, _ handle: @escaping @Sendable ([Request]) -> Void) {
        queue = Mutex(Queue(handle: handle))
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

    /// Runs until it is stopped. The handler goes when it returns, and what it has open, before anybody is told of the end.
    private func loop() {
        guard let handle = queue.withLock({ $0.handle.take() }) else {
            preconditionFailure("the thread was started twice")
        }
        while true {
            wakeUp.wait()
            var requests: [Request] = []
            let isStopping = queue.withLock { queue in
                swap(&requests, &queue.requests)
                queue.isAwake = false
                return queue.isStopping
            }
            if !requests.isEmpty { handle(requests) }
            if isStopping { return }
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
