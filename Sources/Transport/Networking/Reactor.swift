internal import Bytes
internal import CEpoll
internal import Glibc
internal import Platform
internal import Synchronization
public import Transports

/// A thread with one epoll set that is also an executor. It runs connections, actors and timers without locks.
///
/// A turn of its loop handles ready descriptors, work from other threads, connections with more input than one turn allows, jobs
/// of actors and tasks, and timers, in this order. At the end of the turn the output is sent, with one `send` per connection.
/// Each phase has a time slice of some milliseconds; the rest continues in the next turn, in order, after the sockets were
/// polled. A reactor lives as long as the process, because actors reference it as their executor without retaining it.
///
/// `@unchecked Sendable`: except for `inbox`, which has a lock, the state is accessed only on the reactor's thread;
/// `assertCurrent()` checks this where it matters.
public final class Reactor: EventLoop, @unchecked Sendable {
    /// The work sent by other threads, and whether the reactor has been woken for it.
    private struct Inbox {
        var work: [Work] = []
        var isAwake = false
        /// The thread, once it runs.
        var thread: pthread_t?
    }

    /// A work item.
    private enum Work {
        /// A job of an actor on this reactor.
        case job(UnownedJob)
        /// A job of a task that prefers `tasks`.
        case task(UnownedJob)
        case closure(@Sendable () -> Void)
        /// Work collected by another reactor.
        case gathered(any BatchedTask)
    }

    /// The size of the shared read buffer in bytes.
    package static let readBufferSize = 256 << 10

    /// The name for logs, such as `reactor-0`.
    public let name: String
    private let inbox = Mutex(Inbox())
    private let epoll: Int32
    private let wakeUp: Int32
    /// Written by the reactor's thread before `init` returns, and only read afterwards.
    private nonisolated(unsafe) var thread = pthread_t()

    /// The time slice of a phase of a turn, in nanoseconds.
    static let partOfTurn: UInt64 = 2_000_000
    private static let maximumPerTurn: UInt64 = 4_000_000

    /// Work from other threads and jobs of actors and tasks, each in order. The queues are separate, so that a flood of tasks
    /// does not delay calls from other reactors, of which each connection has few.
    private var sent = WorkQueue<@Sendable () -> Void>()
    private var jobs = WorkQueue<Work>()
    /// The number of jobs and queued calls that have run.
    @exclusivity(unchecked) private var jobsRun: UInt64 = 0
    /// The number of calls that wait outside of `jobs`, of which one job runs many. Each may become a job.
    @exclusivity(unchecked) private var queuedCalls = 0
    var ready = WorkQueue<any Resumable>()
    var longSteps = WorkQueue<any Resumable>()
    /// The number of steps of TLS handshakes that connections have made in this turn.
    private var handshakes = 0
    /// The maximum number of such steps in a turn. One step needs at most 1 ms of processor time.
    private static let maximumHandshakes = 4
    /// The time until which long steps rest.
    var endOfRest: UInt64 = 0
    static let longestRest: UInt64 = 20_000_000
    /// The work collected for other reactors.
    var outboxes = Outboxes()
    /// The last clock reading by measured work.
    package var lastClockReading: UInt64 = 0
    /// The start of the current work by the monotonic clock, as far as known without a clock reading: the start of the phase, or
    /// the end of the last measured work. It is read and written in one step, so it needs no dynamic exclusivity check; nor does
    /// `measured`.
    @exclusivity(unchecked) package var workBegan: UInt64 = 0
    /// The work that is not measured yet.
    @exclusivity(unchecked) var measured: (any BatchTimed)?
    package private(set) var turns = TurnCount()
    var timers = TimerQueue()
    private var endOfTurn: [any EndOfTurnTask] = []
    private var unflushed: [ByteChannel] = []
    /// The handlers removed in this turn, released at its end: the current batch may still contain an event for them.
    private var removed: [Unmanaged<ReadinessHandler>] = []

    /// The executor for tasks that belong to no actor. Written only in `init`, before the thread starts.
    package private(set) nonisolated(unsafe) var tasks: ReactorTasks!
    package var taskExecutor: any TaskExecutor { tasks }

    let readBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: readBufferSize, alignment: 64)
    /// The output of the connection whose event is being handled. It is behind a pointer to avoid exclusivity checks; only the
    /// connection in `corked` uses it.
    let output = UnsafeMutablePointer<ByteBuffer>.allocate(capacity: 1)
    /// A buffer for output to closed connections, which is discarded. Behind a pointer like `output`.
    let nowhere = UnsafeMutablePointer<ByteBuffer>.allocate(capacity: 1)
    /// Ranges of the read buffer to be sent between parts of `output`. Behind a pointer like `output`.
    let borrowed = UnsafeMutablePointer<BorrowedBytes>.allocate(capacity: 1)
    /// The TLS buffers, created for the first TLS connection.
    private(set) lazy var tlsBuffers = TLSBuffers()
    /// The connection that currently writes into `output`.
    unowned(unsafe) var corked: ByteChannel?
    /// A counter that is incremented at the start and the end of each turn: odd while the reactor works. The watchdog reads it.
    let pulse = Atomic<UInt64>(0)
    /// The address of an `ActivityLabel`, which is never freed.
    let activity = Atomic<UInt>(0)
    /// The offset of its clock from the monotonic clock, in nanoseconds, which tests advance.
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

    // MARK: Work from any thread

    /// Returns true if the caller runs on this reactor's thread.
    @inline(__always)
    package var isCurrent: Bool { pthread_equal(pthread_self(), thread) != 0 }

    package func assertCurrent() { assert(isCurrent, "\(name): called from another thread") }

    /// Runs `work` on the reactor's thread, after work sent earlier. Several sends share one wake-up.
    package func execute(_ work: @escaping @Sendable () -> Void) { send(.closure(work)) }

    /// Runs `work` immediately if the caller is on the reactor's thread, otherwise later.
    package func run(_ work: @escaping @Sendable () -> Void) {
        if isCurrent { work() } else { execute(work) }
    }

    public func enqueue(_ job: consuming ExecutorJob) { enqueue(.job(UnownedJob(job))) }

    func enqueue(task job: UnownedJob) { enqueue(.task(job)) }

    private func enqueue(_ work: Work) {
        if isCurrent { retainWork(work) } else { send(work) }
    }

    private func retainWork(_ work: Work) {
        switch work {
        case .closure(let closure): sent.append(closure)
        case .gathered(let gathered): sent.append { gathered.arrive() }
        case .job, .task: jobs.append(work)
        }
    }

    private func send(_ work: Work) {
        // Work sent by a reactor must not overtake the work it collected before.
        Self.ofThread?.handOver(to: self)
        let mustWake = inbox.withLock { inbox in
            inbox.work.append(work)
            defer { inbox.isAwake = true }
            return !inbox.isAwake
        }
        if mustWake { eventfd_write(wakeUp, 1) }
    }

    /// Receives all work that another reactor has collected, with one lock and one wake-up.
    func receive(_ gathered: [any BatchedTask]) {
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

    /// Calls `task` at the end of this turn, before connections are flushed. The caller adds a task only once.
    package func atEndOfTurn(_ task: any EndOfTurnTask) { endOfTurn.append(task) }

    func flushAtEndOfTurn(_ channel: ByteChannel) { unflushed.append(channel) }

    // MARK: Descriptors

    func watchDescriptor(_ descriptor: Int32, _ handler: ReadinessHandler, events: UInt32) throws(TransportError) {
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
        precondition(OpenSSL.isInitialized, "OpenSSL initialization failed")
        let ready = ThreadSemaphore()
        let context = Unmanaged.passRetained(ThreadStartContext(reactor: self, ready: ready)).toOpaque()
        var created = pthread_t()
        let status = pthread_create(
            &created, nil,
            { raw in
                let context = Unmanaged<ThreadStartContext>.fromOpaque(raw!).takeRetainedValue()
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
        // A number of events that keeps a turn short even if each uses its share of it.
        let capacity = 128
        let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: capacity)
        let watchdog = Watchdog.shared
        var beats: UInt64 = 0
        while true {
            var count = epoll_wait(epoll, events, Int32(capacity), timeoutMilliseconds())
            beats += 1
            pulse.store(beats, ordering: .sequentiallyConsistent)
            watchdog.turnDidStart()
            let woken = MonotonicClock.now
            workBegan = woken
            handshakes = 0
            let begun = jobs.isEmpty && sent.isEmpty ? 0 : woken
            handle(UnsafeMutableBufferPointer(start: events, count: max(0, Int(count))))
            // Runs before `line`, to which it may add: calls from other reactors' connections are treated like calls from local
            // ones.
            runSent(turnBegan: begun)
            // While connections have more input, the sockets are polled in between, but the turn does not end yet. Otherwise the
            // end-of-turn work, which is meant to cover many messages, would run for few.
            if !ready.isEmpty {
                let begun = MonotonicClock.now
                beginPart(at: begun)
                runQueuedTasks()
                while !ready.isEmpty, !hasManyJobs, lastClockReading &- begun < Self.partOfTurn {
                    count = epoll_wait(epoll, events, Int32(capacity), 0)
                    handle(UnsafeMutableBufferPointer(start: events, count: max(0, Int(count))))
                    runQueuedTasks()
                }
            }
            if !longSteps.isEmpty { runLongSteps() }
            runJobs(turnBegan: begun)
            fireTimers()
            finishTurn()
            turns.record(from: woken, to: MonotonicClock.now)
            beats += 1
            pulse.store(beats, ordering: .relaxed)
        }
    }

    /// The number of waiting jobs above which a connection begins few calls in a turn that are further jobs. Jobs run in order, so
    /// those of a connection with a single call wait for the jobs of all others. A queued call counts as a quarter.
    private static let manyJobs = 32
    private static let jobsOfConnection = 2

    /// The number of all jobs and queued calls: those that have run, and those that wait.
    package var jobCount: UInt64 { jobsRun &+ UInt64(jobs.count &+ queuedCalls) }

    private var hasManyJobs: Bool { jobs.count &+ queuedCalls / 4 > Self.manyJobs }

    /// Counts a call that waits outside of the jobs of the reactor.
    package func didQueueCall() { queuedCalls &+= 1 }

    /// Counts a queued call that has run or becomes a job.
    package func didDequeueCall(hasRun: Bool) {
        queuedCalls &-= 1
        if hasRun { jobsRun &+= 1 }
    }

    /// Creates the time slice of a connection in a turn, for its input or its calls from another reactor.
    ///
    /// - Parameters:
    ///   - budget: the duration in nanoseconds.
    ///   - stride: the final stride of the connection's last slice.
    package func connectionSlice(budget: UInt64, stride: Int) -> TimeSlice {
        // The jobs of a connection are counted at clock readings.
        hasManyJobs ? TimeSlice(budget: budget, stride: 1, mostItems: 1) : TimeSlice(budget: budget, stride: stride)
    }

    /// Returns whether a connection has added its share of the jobs, at a clock reading of its slice.
    ///
    /// - Parameter count: `jobCount` at the start of the slice.
    package func hasAddedJobs(to count: UInt64) -> Bool {
        hasManyJobs && jobCount >= count &+ UInt64(Self.jobsOfConnection)
    }

    /// Returns whether the jobs that a connection added in its last slice must run before its next one. Otherwise, connections that add
    /// jobs faster than they run would make the queue longer in each turn.
    ///
    /// - Parameter count: `jobCount` at the end of that slice.
    @inline(__always)
    package func mustRunJobs(upTo count: UInt64) -> Bool { hasManyJobs && jobsRun < count }

    /// Returns whether an accepted connection may continue its TLS handshake in this turn, and counts it. Many connections that
    /// begin at once take turns with other work.
    func mayHandshake() -> Bool {
        guard handshakes < Self.maximumHandshakes else { return false }
        handshakes += 1
        return true
    }

    private func handle(_ events: UnsafeMutableBufferPointer<epoll_event>) {
        recordActivity(.sockets)
        for event in events {
            if let pointer = event.data.ptr {
                Unmanaged<ReadinessHandler>.fromOpaque(pointer)._withUnsafeGuaranteedRef { $0.ready(event.events) }
            } else {
                var value: eventfd_t = 0
                eventfd_read(wakeUp, &value)
                drainInbox()
            }
            if !outboxes.isEmpty { handOverWhenDue() }
        }
        handOver()
    }

    private func timeoutMilliseconds() -> Int32 {
        if !sent.isEmpty || !jobs.isEmpty || !ready.isEmpty || !endOfTurn.isEmpty || !unflushed.isEmpty { return 0 }
        var wait = UInt64.max
        if !longSteps.isEmpty {
            let clock = MonotonicClock.now
            wait = endOfRest > clock ? endOfRest - clock : 0
        }
        if let deadline = timers.nextDeadline() {
            let now = now
            wait = min(wait, deadline > now ? deadline - now : 0)
        }
        return wait == .max ? -1 : Int32(clamping: (wait &+ 999_999) / 1_000_000)
    }

    private func drainInbox() {
        var work: [Work] = []
        inbox.withLock { inbox in
            swap(&work, &inbox.work)
            inbox.isAwake = false
        }
        for work in work { retainWork(work) }
    }

    /// Runs the work that is queued now; work that it queues runs in the next turn, so that sockets get their share. Work left
    /// from an earlier turn gets as much time as the sockets had in this turn. It includes calls from other reactors, which must
    /// not be slower than those from local sockets.
    ///
    /// - Parameter turnBegan: the start of the turn, or 0 when no work was left.
    private func runSent(turnBegan: UInt64) {
        guard !sent.isEmpty else { return }
        recordActivity(.jobs)
        var slice = slice(turnBegan)
        for _ in 0..<sent.count {
            sent.removeFirst()()
            if !outboxes.isEmpty { handOverWhenDue() }
            if slice.isCheckDue(), slice.isUsedUp(lastClockReading: &lastClockReading) { break }
        }
        handOver()
    }

    private func slice(_ turnBegan: UInt64) -> TimeSlice {
        let now = MonotonicClock.now
        beginPart(at: now)
        let share = turnBegan == 0 ? Self.partOfTurn : min(max(Self.partOfTurn, now &- turnBegan), Self.maximumPerTurn)
        return TimeSlice(budget: share, from: now, mostItems: 4)
    }

    /// Runs the queued jobs of actors and tasks, under the rules of `runSent`.
    private func runJobs(turnBegan: UInt64) {
        guard !jobs.isEmpty else { return }
        recordActivity(.jobs)
        let serial = asUnownedSerialExecutor()
        let task = tasks.asUnownedTaskExecutor()
        var slice = slice(turnBegan)
        for _ in 0..<jobs.count {
            jobsRun &+= 1
            switch jobs.removeFirst() {
            // Each job runs as it was queued. A job that is run with a preference it does not have would be queued again at each
            // step from one actor of the reactor to another.
            case .job(let job): job.runSynchronously(on: serial)
            case .task(let job): job.runSynchronously(on: task)
            case .closure, .gathered: preconditionFailure("work sent to the reactor")
            }
            if slice.isCheckDue(), slice.isUsedUp(lastClockReading: &lastClockReading) { break }
        }
    }

    private func fireTimers() {
        guard let deadline = timers.nextDeadline() else { return }
        let now = now
        guard deadline <= now else { return }
        recordActivity(.timers)
        var slice = TimeSlice(budget: Self.partOfTurn, from: now &- timeAhead)
        while let work = timers.popDue(at: now) {
            work()
            if slice.isCheckDue(), slice.isUsedUp(lastClockReading: &lastClockReading) { break }
        }
    }

    private func finishTurn() {
        if measured != nil { beginPart(at: MonotonicClock.now) }
        recordActivity(.endOfTurn)
        while !endOfTurn.isEmpty {
            var tasks: [any EndOfTurnTask] = []
            swap(&tasks, &endOfTurn)
            for task in tasks { task.endOfTurn() }
        }
        // Two passes, so that output which delegates write in the first is sent too. Their output in the second pass waits for
        // the next turn: a connection whose peer accepts everything immediately would otherwise block the others forever.
        for _ in 0..<2 where !unflushed.isEmpty {
            guard flush() else { break }
        }
        handOver()
        guard !removed.isEmpty else { return }
        for handler in removed { handler.release() }
        removed.removeAll(keepingCapacity: true)
    }

    /// Flushes the channels that have output, within a time slice. Returns false when it is used up; the other channels come first
    /// in the next turn. The delegate of a channel that becomes writable may encode megabytes.
    ///
    /// Channels with little output come first, and one with much in each case: responses to calls do not wait for pages.
    private func flush() -> Bool {
        var channels: [ByteChannel] = []
        swap(&channels, &unflushed)
        if channels.count > 1, channels.contains(where: { $0.hasLargeOutput }) {
            let large = channels.filter { $0.hasLargeOutput }
            channels.removeAll { $0.hasLargeOutput }
            channels.insert(large[0], at: 0)
            channels += large[1...]
        }
        var slice = TimeSlice(budget: Self.partOfTurn, from: MonotonicClock.now, mostItems: 4)
        var rest: [ByteChannel] = []
        var isUsedUp = false
        for channel in channels {
            // The end of a channel is reported in its turn: work of the next one may rely on it.
            if isUsedUp, channel.isOpen {
                rest.append(channel)
            } else {
                channel.flushAtEndOfTurn()
                if !isUsedUp, slice.isCheckDue() { isUsedUp = slice.isUsedUp(lastClockReading: &lastClockReading) }
            }
        }
        if !rest.isEmpty { unflushed.insert(contentsOf: rest, at: 0) }
        return !isUsedUp
    }
}

/// The argument of the new thread.
private final class ThreadStartContext {
    let reactor: Reactor
    let ready: ThreadSemaphore

    init(reactor: Reactor, ready: ThreadSemaphore) {
        self.reactor = reactor
        self.ready = ready
    }
}

extension Reactor {
    /// Queues `task` for continuation in a later turn. The caller queues a task only once.
    package func scheduleResume(_ task: any Resumable) { ready.append(task) }

    /// Queues `task` for a step that may take longer than a task's share of a turn, such as the decompression of a large message.
    ///
    /// Such steps share one time slice of each turn, in order, whatever the number of tasks. A turn has at least one step.
    package func scheduleLongStep(_ task: any Resumable) { longSteps.append(task) }

    /// Continues the tasks that are queued now, each once.
    func runQueuedTasks() {
        guard !ready.isEmpty else { return }
        run(ready.count) { ready.removeFirst() }
    }

    /// Runs long steps within a time slice. After one that took longer, they rest for the same time, so that other work of the reactor,
    /// which needs several turns with other threads in between, has at least half of the time.
    func runLongSteps() {
        let begun = MonotonicClock.now
        guard begun >= endOfRest else { return }
        beginPart(at: begun)
        run(longSteps.count) { longSteps.removeFirst() }
        let taken = lastClockReading &- begun
        if taken > Self.partOfTurn { endOfRest = lastClockReading &+ min(taken, Self.longestRest) }
    }

    /// The clock is read after each task: a task may use its whole share, and a long step more.
    private func run(_ count: Int, _ next: () -> any Resumable) {
        recordActivity(.line)
        let begun = MonotonicClock.now
        for _ in 0..<count {
            next().resume()
            if !outboxes.isEmpty { handOverWhenDue() }
            lastClockReading = MonotonicClock.now
            if lastClockReading &- begun >= Self.partOfTurn { break }
        }
        handOver()
    }
}

/// The part of a reactor that the watchdog reads.
extension Reactor {
    /// Records the current activity for the watchdog, with a single store. It is valid until the next record or the next phase of
    /// the turn.
    @inline(__always)
    package func recordActivity(_ label: ActivityLabel) {
        activity.store(UInt(bitPattern: Unmanaged.passUnretained(label).toOpaque()), ordering: .relaxed)
    }

    /// A handler for turns that take more than 100 ms. It is called on the watchdog's thread when such a turn is detected and
    /// when it ends. There is one per reactor; nil, the default, for none.
    package var onStall: (@Sendable (ReactorStall) -> Void)? {
        get { stalls.withLock { $0.observer } }
        set { stalls.withLock { $0.observer = newValue } }
    }

    /// The number of turns that took more than 100 ms.
    package var stallCount: Int { stalls.withLock { $0.count } }

    static func isWorking(_ pulse: UInt64) -> Bool { pulse & 1 == 1 }

    var activityText: String {
        guard let address = UnsafeRawPointer(bitPattern: activity.load(ordering: .relaxed)) else { return "starting" }
        return Unmanaged<ActivityLabel>.fromOpaque(address).takeUnretainedValue().text
    }

    func reportStall(_ stall: ReactorStall) {
        let observer = stalls.withLock { stalls in
            if !stall.isOver { stalls.count += 1 }
            return stalls.observer
        }
        observer?(stall)
    }
}
