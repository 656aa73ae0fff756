internal import CEpoll
internal import Glibc
internal import Synchronization

/// A thread that is handed requests and takes all that wait at once.
///
/// `@unchecked Sendable`: the semaphore stands at a fixed address and is made to be used from several threads; the rest is
/// constant or has a lock.
final class WorkerThread<Request: Sendable>: @unchecked Sendable {
    private struct Queue {
        var requests: [Request] = []
        var isStopping = false
        var hasEnded = false
        /// Whether the thread has been woken and has not looked yet.
        var isAwake = false
        var ended: [@Sendable () -> Void] = []
    }

    private let queue = Mutex(Queue())
    private let wakeUp = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    /// Starts the thread. `handle` is called on it alone, and let go of at its end.
    init(_ name: String, _ handle: @escaping @Sendable ([Request]) -> Void) {
        sem_init(wakeUp, 0, 0)
        let start = StartContext {
            gnu_pthread_setname(pthread_self(), name)
            return self.loop(handle)
        }
        var thread = pthread_t()
        let status = pthread_create(
            &thread, nil,
            { raw in
                var context: StartContext? = Unmanaged<StartContext>.fromOpaque(raw!).takeRetainedValue()
                let worker = context?.run()
                // The handler goes with it, and what it has open, before anybody is told of the end.
                context = nil
                worker?()
                return nil
            }, Unmanaged.passRetained(start).toOpaque())
        precondition(status == 0, "pthread_create: \(String(cString: strerror(status)))")
        pthread_detach(thread)
    }

    deinit {
        sem_destroy(wakeUp)
        wakeUp.deallocate()
    }

    /// Hands over a request; false when the thread is stopping.
    func submit(_ request: Request) -> Bool {
        let (isAccepted, mustWake) = queue.withLock { queue in
            guard !queue.isStopping else { return (false, false) }
            queue.requests.append(request)
            defer { queue.isAwake = true }
            return (true, !queue.isAwake)
        }
        if mustWake { sem_post(wakeUp) }
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
        if mustWake { sem_post(wakeUp) }
    }

    /// Runs until it is stopped. Gives what is to be done when the handler is gone.
    private func loop(_ handle: ([Request]) -> Void) -> () -> Void {
        while true {
            while sem_wait(wakeUp) != 0, errno == EINTR {}
            var requests: [Request] = []
            let isStopping = queue.withLock { queue in
                swap(&requests, &queue.requests)
                queue.isAwake = false
                return queue.isStopping
            }
            if !requests.isEmpty { handle(requests) }
            if isStopping { return finish }
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

/// What the new thread is handed.
private final class StartContext {
    let run: () -> () -> Void
    init(_ run: @escaping () -> () -> Void) { self.run = run }
}
