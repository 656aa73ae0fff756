internal import Bytes
internal import CEpoll
internal import Glibc
internal import Synchronization

/// A thread with one epoll set that is also an executor: connections, actors and timers live on it without a lock.
///
/// A turn of its loop handles every descriptor that is ready, then what other threads sent, then jobs of actors and
/// tasks, then timers; at its end what was written leaves, one `send` per connection. A reactor lives as long as the
/// process, because actors name it as their executor without holding it.
///
/// `@unchecked Sendable`: apart from `inbox`, which has a lock, the state is touched on the reactor's own thread alone;
/// `assertCurrent()` says so where it matters.
public final class Reactor: SerialExecutor, TaskExecutor, @unchecked Sendable {
    /// What other threads send, with the fact whether the reactor has been woken for it.
    private struct Inbox {
        var work: [Work] = []
        var isAwake = false
        /// Set once the thread runs.
        var thread: pthread_t?
    }

    private enum Work {
        case job(UnownedJob)
        case closure(@Sendable () -> Void)
    }

    /// The size of the buffer into which every connection is read, in bytes.
    static let readBufferSize = 256 << 10

    /// `reactor-0`, for logs.
    public let name: String
    private let inbox = Mutex(Inbox())
    private let epoll: Int32
    private let wakeUp: Int32
    /// Written by the reactor's thread before `init` returns, then only read.
    private nonisolated(unsafe) var thread = pthread_t()

    private var jobs: [Work] = []
    private var timers = TimerQueue()
    private var endOfTurn: [any EndOfTurn] = []
    private var unflushed: [ByteChannel] = []
    /// Handlers removed in this turn: an event for them may still lie in the batch, so they are released at its end.
    private var removed: [Unmanaged<ReadinessHandler>] = []

    let readBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: readBufferSize, alignment: 64)
    /// The output of the connection whose event is being handled. Behind a pointer, so that writing to it costs no
    /// exclusivity check; it is used by the holder of `corked` alone, never by two at once.
    let output = UnsafeMutablePointer<ByteBuffer>.allocate(capacity: 1)
    /// Takes what is written to a connection that is closed. Behind a pointer as `output` is.
    let nowhere = UnsafeMutablePointer<ByteBuffer>.allocate(capacity: 1)
    /// Made when the first TLS connection comes.
    private(set) lazy var tlsBuffers = TLSBuffers()
    /// The connection that writes into `output` now.
    unowned(unsafe) var corked: ByteChannel?
    /// Number of turns so far; a watchdog sees from it whether the reactor moves.
    private let turns = Atomic<UInt64>(0)

    package init(name: String) throws(TransportError) {
        self.name = name
        epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard epoll >= 0 else { throw .system("epoll_create1", errno, "starting \(name)") }
        wakeUp = eventfd(0, Int32(EFD_NONBLOCK) | Int32(EFD_CLOEXEC))
        guard wakeUp >= 0 else { throw .system("eventfd", errno, "starting \(name)") }
        output.initialize(to: ByteBuffer(capacity: 64 << 10))
        nowhere.initialize(to: ByteBuffer())
        var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: 0))
        epoll_ctl(epoll, EPOLL_CTL_ADD, wakeUp, &event)
        start()
    }

    // MARK: Work from anywhere

    /// Whether the caller runs on this reactor's thread.
    @inline(__always)
    package var isCurrent: Bool { pthread_equal(pthread_self(), thread) != 0 }

    package func assertCurrent() { assert(isCurrent, "\(name): called from another thread") }

    /// Runs `work` on the reactor's thread, after what was sent before it. Many sends share one wake-up.
    package func execute(_ work: @escaping @Sendable () -> Void) { send(.closure(work)) }

    /// Runs `work` now when the caller is on the reactor's thread, else soon.
    package func run(_ work: @escaping @Sendable () -> Void) {
        if isCurrent { work() } else { execute(work) }
    }

    /// Runs `work` on the reactor's thread and gives its result.
    package func perform<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in execute { continuation.resume(returning: work()) } }
    }

    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if isCurrent {
            jobs.append(.job(job))
        } else {
            send(.job(job))
        }
    }

    private func send(_ work: Work) {
        let mustWake = inbox.withLock { inbox in
            inbox.work.append(work)
            defer { inbox.isAwake = true }
            return !inbox.isAwake
        }
        if mustWake { eventfd_write(wakeUp, 1) }
    }

    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    public func checkIsolated() { precondition(isCurrent, "\(name): not on this reactor's thread") }

    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    // MARK: Work from the reactor's thread

    /// Runs `work` after a delay; keep the timer to cancel it.
    @discardableResult
    package func schedule(after delay: Duration, _ work: @escaping () -> Void) -> Timer {
        assertCurrent()
        let timer = Timer(deadline: MonotonicClock.now &+ delay.nanoseconds, work: work)
        timers.add(timer)
        return timer
    }

    /// Timers that are still to fire; on the reactor. It looks at each of them.
    package var liveTimerCount: Int {
        assertCurrent()
        return timers.liveCount
    }

    /// Calls `task` when this turn ends, before connections are flushed. The caller sees to it that it is added once.
    package func atEndOfTurn(_ task: any EndOfTurn) { endOfTurn.append(task) }

    func flushAtEndOfTurn(_ channel: ByteChannel) { unflushed.append(channel) }

    // MARK: Descriptors

    func add(_ descriptor: Int32, _ handler: ReadinessHandler, events: UInt32) throws(TransportError) {
        assertCurrent()
        let reference = Unmanaged.passRetained(handler)
        var event = epoll_event(events: events, data: epoll_data_t(ptr: reference.toOpaque()))
        guard epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0 else {
            reference.release()
            throw .system("epoll_ctl", errno, "watching descriptor \(descriptor)")
        }
    }

    func change(_ descriptor: Int32, _ handler: ReadinessHandler, events: UInt32) {
        var event = epoll_event(
            events: events, data: epoll_data_t(ptr: Unmanaged.passUnretained(handler).toOpaque()))
        epoll_ctl(epoll, EPOLL_CTL_MOD, descriptor, &event)
    }

    func remove(_ descriptor: Int32, _ handler: ReadinessHandler) {
        assertCurrent()
        epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil)
        removed.append(Unmanaged.passUnretained(handler))
    }

    // MARK: The loop

    private func start() {
        precondition(OpenSSL.outlivesReactors, "OpenSSL did not start")
        let ready = ThreadGate()
        let context = Unmanaged.passRetained(StartContext(reactor: self, ready: ready)).toOpaque()
        var created = pthread_t()
        let status = pthread_create(
            &created, nil,
            { raw in
                let context = Unmanaged<StartContext>.fromOpaque(raw!).takeRetainedValue()
                context.reactor.thread = pthread_self()
                gnu_pthread_setname(pthread_self(), context.reactor.name)
                context.ready.open()
                context.reactor.loop()
            }, context)
        precondition(status == 0, "pthread_create: \(String(cString: strerror(status)))")
        pthread_detach(created)
        ready.wait()
    }

    private func loop() -> Never {
        let capacity = 512
        let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: capacity)
        while true {
            let count = epoll_wait(epoll, events, Int32(capacity), timeoutMilliseconds())
            turns.wrappingAdd(1, ordering: .relaxed)
            var index = 0
            while index < count {
                let event = events[index]
                index += 1
                if let pointer = event.data.ptr {
                    Unmanaged<ReadinessHandler>.fromOpaque(pointer)._withUnsafeGuaranteedRef { $0.ready(event.events) }
                } else {
                    var value: eventfd_t = 0
                    eventfd_read(wakeUp, &value)
                    takeInbox()
                }
            }
            runJobs()
            fireTimers()
            finishTurn()
        }
    }

    private func timeoutMilliseconds() -> Int32 {
        if !jobs.isEmpty || !endOfTurn.isEmpty || !unflushed.isEmpty { return 0 }
        guard let deadline = timers.nextDeadline() else { return -1 }
        let now = MonotonicClock.now
        if deadline <= now { return 0 }
        return Int32(clamping: (deadline - now + 999_999) / 1_000_000)
    }

    private func takeInbox() {
        var work: [Work] = []
        inbox.withLock { inbox in
            swap(&work, &inbox.work)
            inbox.isAwake = false
        }
        if jobs.isEmpty { jobs = work } else { jobs.append(contentsOf: work) }
    }

    /// Runs what is queued now; what that queues runs in the next turn, so that sockets have their share.
    private func runJobs() {
        guard !jobs.isEmpty else { return }
        var running: [Work] = []
        swap(&running, &jobs)
        let serial = asUnownedSerialExecutor()
        let task = asUnownedTaskExecutor()
        for work in running {
            switch work {
            case .job(let job): job.runSynchronously(isolatedTo: serial, taskExecutor: task)
            case .closure(let closure): closure()
            }
        }
    }

    private func fireTimers() {
        guard let deadline = timers.nextDeadline() else { return }
        let now = MonotonicClock.now
        guard deadline <= now else { return }
        while let work = timers.popDue(at: now) { work() }
    }

    private func finishTurn() {
        while !endOfTurn.isEmpty {
            var tasks: [any EndOfTurn] = []
            swap(&tasks, &endOfTurn)
            for task in tasks { task.endOfTurn() }
        }
        while !unflushed.isEmpty {
            var channels: [ByteChannel] = []
            swap(&channels, &unflushed)
            for channel in channels { channel.flushAtEndOfTurn() }
        }
        guard !removed.isEmpty else { return }
        for handler in removed { handler.release() }
        removed.removeAll(keepingCapacity: true)
    }
}

/// What the new thread is handed.
private final class StartContext {
    let reactor: Reactor
    let ready: ThreadGate

    init(reactor: Reactor, ready: ThreadGate) {
        self.reactor = reactor
        self.ready = ready
    }
}
