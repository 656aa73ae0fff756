internal import Bytes
internal import CEpoll
internal import Glibc
internal import Platform
internal import Synchronization
public import Transports

/// A thread with one epoll set that is also an executor: connections, actors and timers live on it without a lock.
///
/// A turn of its loop handles every descriptor that is ready, then what other threads sent, then those connections that had more
/// to say than one turn has room for, jobs of actors and tasks, then timers; at its end what was written leaves, one
/// `send` per connection. Each of these parts has some milliseconds; what is left of it goes on in the next turn, in its order,
/// after the sockets were looked at. A reactor lives as long as the process, because actors name it as their executor without
/// holding it.
///
/// `@unchecked Sendable`: apart from `inbox`, which has a lock, the state is touched on the reactor's own thread alone;
/// `assertCurrent()` says so where it matters.
public final class Reactor: EventLoop, @unchecked Sendable {
    /// What other threads send, with the fact whether the reactor has been woken for it.
    private struct Inbox {
        var work: [Work] = []
        var isAwake = false
        /// Set once the thread runs.
        var thread: pthread_t?
    }

    private enum Work {
        /// Of an actor that lives here.
        case job(UnownedJob)
        /// Of a task that prefers `tasks`.
        case task(UnownedJob)
        case closure(@Sendable () -> Void)
        /// Of another reactor.
        case gathered(any GatheredWork)
    }

    /// The size of the buffer into which every connection is read, in bytes.
    package static let readBufferSize = 256 << 10

    /// `reactor-0`, for logs.
    public let name: String
    private let inbox = Mutex(Inbox())
    private let epoll: Int32
    private let wakeUp: Int32
    /// Written by the reactor's thread before `init` returns, then only read.
    private nonisolated(unsafe) var thread = pthread_t()

    /// Nanoseconds that a part of a turn may take.
    private static let partOfTurn: UInt64 = 2_000_000
    private static let mostOfTurn: UInt64 = 16_000_000

    /// What others sent, in its order, and jobs of actors and tasks, in theirs. Apart, so that a flood of tasks does not hold up
    /// calls from other reactors, of which each connection has few.
    private var sent = WorkQueue<@Sendable () -> Void>()
    private var jobs = WorkQueue<Work>()
    private var line = WorkQueue<any InLine>()
    /// What is gathered here for other reactors.
    var outboxes = Outboxes()
    /// When the clock was last looked at by work that is measured.
    package var lastLook: UInt64 = 0
    /// When the work in hand began, by the monotonic clock, as far as that is known without looking: when its part of the turn did, or later,
    /// when the work before it ended that was measured. It is read and written in one step, so access to it needs no check, as to `measured`.
    @exclusivity(unchecked) package var workBegan: UInt64 = 0
    /// Whose work has not been measured yet.
    @exclusivity(unchecked) var measured: (any MeasuredWork)?
    package private(set) var turns = TurnCount()
    var timers = TimerQueue()
    private var endOfTurn: [any EndOfTurn] = []
    private var unflushed: [ByteChannel] = []
    /// Handlers removed in this turn: an event for them may still lie in the batch, so they are released at its end.
    private var removed: [Unmanaged<ReadinessHandler>] = []

    /// For tasks that run here though they belong to no actor. Written in `init` alone, before the thread begins.
    package private(set) nonisolated(unsafe) var tasks: ReactorTasks!
    package var taskExecutor: any TaskExecutor { tasks }

    let readBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: readBufferSize, alignment: 64)
    /// The output of the connection whose event is being handled. Behind a pointer, so that writing to it costs no
    /// exclusivity check; it is used by the holder of `corked` alone, never by two at once.
    let output = UnsafeMutablePointer<ByteBuffer>.allocate(capacity: 1)
    /// Takes what is written to a connection that is closed. Behind a pointer as `output` is.
    let nowhere = UnsafeMutablePointer<ByteBuffer>.allocate(capacity: 1)
    /// What leaves between it from where it was read. Behind a pointer as `output` is.
    let borrowed = UnsafeMutablePointer<BorrowedBytes>.allocate(capacity: 1)
    /// Made when the first TLS connection comes.
    private(set) lazy var tlsBuffers = TLSBuffers()
    /// The connection that writes into `output` now.
    unowned(unsafe) var corked: ByteChannel?
    /// Counts up when a turn begins and when it ends: odd while the reactor works. The watchdog sees whether it moves.
    let pulse = Atomic<UInt64>(0)
    /// The address of an `ActivityLabel`, which is never freed.
    let activity = Atomic<UInt>(0)
    /// How far its clock is ahead of the machine's, in nanoseconds: tests turn it on.
    let ahead = Atomic<UInt64>(0)
    let timeHolds = Atomic<Int>(0)
    let stalls = Mutex<(count: Int, observer: (@Sendable (ReactorStall) -> Void)?)>((0, nil))

    package init(name: String) throws(TransportError) {
        self.name = name
        epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard epoll >= 0 else { throw .system("epoll_create1", errno, "starting \(name)") }
        wakeUp = eventfd(0, Int32(EFD_NONBLOCK) | Int32(EFD_CLOEXEC))
        guard wakeUp >= 0 else { throw .system("eventfd", errno, "starting \(name)") }
        output.initialize(to: ByteBuffer(capacity: 64 << 10))
        nowhere.initialize(to: ByteBuffer())
        borrowed.initialize(to: BorrowedBytes())
        var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: 0))
        epoll_ctl(epoll, EPOLL_CTL_ADD, wakeUp, &event)
        tasks = ReactorTasks(self)
        start()
        Watchdog.shared.watch(self)
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

    public func enqueue(_ job: consuming ExecutorJob) { enqueue(.job(UnownedJob(job))) }

    func enqueue(task job: UnownedJob) { enqueue(.task(job)) }

    private func enqueue(_ work: Work) {
        if isCurrent { keep(work) } else { send(work) }
    }

    private func keep(_ work: Work) {
        switch work {
        case .closure(let closure): sent.append(closure)
        case .gathered(let gathered): sent.append { gathered.arrive() }
        case .job, .task: jobs.append(work)
        }
    }

    private func send(_ work: Work) {
        // Nothing that a reactor sends overtakes what was gathered there before.
        Self.ofThread?.handOver(to: self)
        let mustWake = inbox.withLock { inbox in
            inbox.work.append(work)
            defer { inbox.isAwake = true }
            return !inbox.isAwake
        }
        if mustWake { eventfd_write(wakeUp, 1) }
    }

    /// Takes what another reactor has gathered: all of it with one lock and one wake-up.
    func receive(_ gathered: [any GatheredWork]) {
        let mustWake = inbox.withLock { inbox in
            for work in gathered { inbox.work.append(.gathered(work)) }
            defer { inbox.isAwake = true }
            return !inbox.isAwake
        }
        if mustWake { eventfd_write(wakeUp, 1) }
    }

    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    public func checkIsolated() { precondition(isCurrent, "\(name): not on this reactor's thread") }

    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    // MARK: Work from the reactor's thread

    /// Calls `task` when this turn ends, before connections are flushed. The caller sees to it that it is added once.
    package func atEndOfTurn(_ task: any EndOfTurn) { endOfTurn.append(task) }

    func flushAtEndOfTurn(_ channel: ByteChannel) { unflushed.append(channel) }

    /// Puts `task` at the end of the line of those who go on in a later turn. The caller sees to it that it stands there once.
    package func standInLine(_ task: any InLine) { line.append(task) }

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
        let ready = ThreadSemaphore()
        let context = Unmanaged.passRetained(StartContext(reactor: self, ready: ready)).toOpaque()
        var created = pthread_t()
        let status = pthread_create(
            &created, nil,
            { raw in
                let context = Unmanaged<StartContext>.fromOpaque(raw!).takeRetainedValue()
                context.reactor.thread = pthread_self()
                gnu_pthread_setname(pthread_self(), context.reactor.name)
                context.ready.signal()
                context.reactor.loop()
            }, context)
        precondition(status == 0, "pthread_create: \(String(cString: strerror(status)))")
        pthread_detach(created)
        ready.wait()
    }

    private func loop() -> Never {
        beOfThread()
        // As many as leave a turn short when each uses its share of it.
        let capacity = 128
        let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: capacity)
        let watchdog = Watchdog.shared
        var beats: UInt64 = 0
        while true {
            var count = epoll_wait(epoll, events, Int32(capacity), timeoutMilliseconds())
            beats += 1
            pulse.store(beats, ordering: .sequentiallyConsistent)
            watchdog.noteTurn()
            let woken = MonotonicClock.now
            workBegan = woken
            let begun = jobs.isEmpty && sent.isEmpty ? 0 : woken
            handle(UnsafeMutableBufferPointer(start: events, count: max(0, Int(count))))
            // Before those in line, to which it may add: calls of other reactors' connections are as good as this one's own.
            runSent(turnBegan: begun)
            // While some have more to say, sockets are looked at between, but the turn does not end yet: what is done once in a
            // turn, for many messages together, would else be done for few.
            if !line.isEmpty {
                let begun = MonotonicClock.now
                beginPart(at: begun)
                runLine()
                while !line.isEmpty, lastLook &- begun < Self.partOfTurn {
                    count = epoll_wait(epoll, events, Int32(capacity), 0)
                    handle(UnsafeMutableBufferPointer(start: events, count: max(0, Int(count))))
                    runLine()
                }
            }
            runJobs(turnBegan: begun)
            fireTimers()
            finishTurn()
            turns.note(from: woken, to: MonotonicClock.now)
            beats += 1
            pulse.store(beats, ordering: .relaxed)
        }
    }

    private func handle(_ events: UnsafeMutableBufferPointer<epoll_event>) {
        note(.sockets)
        for event in events {
            if let pointer = event.data.ptr {
                Unmanaged<ReadinessHandler>.fromOpaque(pointer)._withUnsafeGuaranteedRef { $0.ready(event.events) }
            } else {
                var value: eventfd_t = 0
                eventfd_read(wakeUp, &value)
                takeInbox()
            }
            if !outboxes.isEmpty { handOverWhenDue() }
        }
        handOver()
    }

    private func timeoutMilliseconds() -> Int32 {
        if !sent.isEmpty || !jobs.isEmpty || !line.isEmpty || !endOfTurn.isEmpty || !unflushed.isEmpty { return 0 }
        guard let deadline = timers.nextDeadline() else { return -1 }
        let now = now
        if deadline <= now { return 0 }
        return Int32(clamping: (deadline - now + 999_999) / 1_000_000)
    }

    private func takeInbox() {
        var work: [Work] = []
        inbox.withLock { inbox in
            swap(&work, &inbox.work)
            inbox.isAwake = false
        }
        for work in work { keep(work) }
    }

    /// Goes on with those who stand in line now, each once.
    private func runLine() {
        guard !line.isEmpty else { return }
        note(.line)
        var slice = TimeSlice(budget: Self.partOfTurn, from: MonotonicClock.now)
        for _ in 0..<line.count {
            line.removeFirst().goOn()
            if !outboxes.isEmpty { handOverWhenDue() }
            if slice.isLookDue(), slice.isUsedUp(lastLook: &lastLook) { break }
        }
        handOver()
    }

    /// Runs what is queued now; what that queues runs in the next turn, so that sockets have their share. What was left from an
    /// earlier turn has as much time as the sockets had in this one: calls from other reactors are among it, and they
    /// are to be no worse off than those that come over this one's sockets.
    ///
    /// - Parameter turnBegan: 0 when nothing was left.
    private func runSent(turnBegan: UInt64) {
        guard !sent.isEmpty else { return }
        note(.jobs)
        var slice = slice(turnBegan)
        for _ in 0..<sent.count {
            sent.removeFirst()()
            if !outboxes.isEmpty { handOverWhenDue() }
            if slice.isLookDue(), slice.isUsedUp(lastLook: &lastLook) { break }
        }
        handOver()
    }

    private func slice(_ turnBegan: UInt64) -> TimeSlice {
        let now = MonotonicClock.now
        beginPart(at: now)
        let share = turnBegan == 0 ? Self.partOfTurn : min(max(Self.partOfTurn, now &- turnBegan), Self.mostOfTurn)
        return TimeSlice(budget: share, from: now)
    }

    /// The same for jobs of actors and tasks.
    private func runJobs(turnBegan: UInt64) {
        guard !jobs.isEmpty else { return }
        note(.jobs)
        let serial = asUnownedSerialExecutor()
        let task = tasks.asUnownedTaskExecutor()
        var slice = slice(turnBegan)
        for _ in 0..<jobs.count {
            switch jobs.removeFirst() {
            // Each as what it was queued for: a job that is said to have a preference, and has none, is queued anew at each step
            // from one actor of the reactor to another.
            case .job(let job): job.runSynchronously(on: serial)
            case .task(let job): job.runSynchronously(on: task)
            case .closure, .gathered: preconditionFailure("among what was sent")
            }
            if slice.isLookDue(), slice.isUsedUp(lastLook: &lastLook) { break }
        }
    }

    private func fireTimers() {
        guard let deadline = timers.nextDeadline() else { return }
        let now = now
        guard deadline <= now else { return }
        note(.timers)
        var slice = TimeSlice(budget: Self.partOfTurn, from: now &- timeAhead)
        while let work = timers.popDue(at: now) {
            work()
            if slice.isLookDue(), slice.isUsedUp(lastLook: &lastLook) { break }
        }
    }

    private func finishTurn() {
        if measured != nil { beginPart(at: MonotonicClock.now) }
        note(.endOfTurn)
        while !endOfTurn.isEmpty {
            var tasks: [any EndOfTurn] = []
            swap(&tasks, &endOfTurn)
            for task in tasks { task.endOfTurn() }
        }
        // Twice, so that what delegates write when they hear of something leaves too. What they write then waits for the
        // next turn: a connection that takes all at once would hold up the others for ever.
        for _ in 0..<2 where !unflushed.isEmpty {
            var channels: [ByteChannel] = []
            swap(&channels, &unflushed)
            for channel in channels { channel.flushAtEndOfTurn() }
        }
        handOver()
        guard !removed.isEmpty else { return }
        for handler in removed { handler.release() }
        removed.removeAll(keepingCapacity: true)
    }
}

/// What the new thread is handed.
private final class StartContext {
    let reactor: Reactor
    let ready: ThreadSemaphore

    init(reactor: Reactor, ready: ThreadSemaphore) {
        self.reactor = reactor
        self.ready = ready
    }
}
