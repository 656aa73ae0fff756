internal import Dispatch
internal import Platform
internal import Synchronization

/// An event loop on a serial Dispatch queue, for platforms without epoll.
///
/// Each work item is one turn.
///
/// `@unchecked Sendable`: `endOfTurn`, `timers` and `alarm` are accessed only on the queue; the rest is constant.
package final class DispatchLoop: EventLoop, @unchecked Sendable {
    private static let current = DispatchSpecificKey<ObjectIdentifier>()

    /// The loop shared by clients that are not given another.
    package static let shared = DispatchLoop(name: "trebuchet-client")

    private let queue: DispatchQueue
    private var endOfTurn: [any EndOfTurnTask] = []
    /// The timers share one Dispatch timer: a Dispatch timer would stay until it is due, cancelled or not.
    private var timers = TimerQueue()
    private var alarm: (any DispatchSourceTimer)?
    /// The time for which `alarm` is set; `max` while it is not set.
    private var alarmAt = UInt64.max
    /// The executor for tasks that run here and belong to no actor. Written only in `init`.
    package private(set) nonisolated(unsafe) var taskExecutor: any TaskExecutor

    /// - Parameter name: the label of the queue, visible in debuggers.
    package init(name: String) {
        queue = DispatchQueue(label: name)
        let tasks = DispatchTasks()
        taskExecutor = tasks
        tasks.loop = self
        queue.setSpecific(key: Self.current, value: ObjectIdentifier(self))
    }

    package var isCurrent: Bool { DispatchQueue.getSpecific(key: Self.current) == ObjectIdentifier(self) }

    package var now: UInt64 { MonotonicClock.now }

    package func execute(_ work: @escaping @Sendable () -> Void) {
        queue.async {
            work()
            self.finishTurn()
        }
    }

    package func schedule(after delay: Duration, _ work: @escaping () -> Void) -> LoopTimer {
        assertCurrent()
        let timer = LoopTimer(deadline: now &+ delay.nanoseconds, work: work)
        timers.insert(timer)
        setAlarm()
        return timer
    }

    /// Sets the alarm for the next timer, unless it is set for an earlier time.
    private func setAlarm() {
        guard let next = timers.nextDeadline(), next < alarmAt else { return }
        alarmAt = next
        let alarm = alarm ?? newAlarm()
        let now = now
        alarm.schedule(
            deadline: .now() + .nanoseconds(Int(clamping: next > now ? next - now : 0)), leeway: .nanoseconds(0))
    }

    private func newAlarm() -> any DispatchSourceTimer {
        let alarm = DispatchSource.makeTimerSource(queue: queue)
        // Weak, so that a loop whose timers are not awaited can be freed.
        alarm.setEventHandler { [weak self] in self?.fireTimers() }
        alarm.activate()
        self.alarm = alarm
        return alarm
    }

    private func fireTimers() {
        alarmAt = .max
        let now = now
        while let work = timers.popDue(at: now) {
            work()
            finishTurn()
        }
        setAlarm()
    }

    package func atEndOfTurn(_ task: any EndOfTurnTask) {
        assertCurrent()
        endOfTurn.append(task)
    }

    private func finishTurn() {
        while !endOfTurn.isEmpty {
            var tasks: [any EndOfTurnTask] = []
            swap(&tasks, &endOfTurn)
            for task in tasks { task.endOfTurn() }
        }
    }

    // MARK: Actors and tasks

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        execute { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    fileprivate func enqueue(task job: UnownedJob, of executor: UnownedTaskExecutor) {
        execute { job.runSynchronously(on: executor) }
    }

    package func checkIsolated() { precondition(isCurrent, "not on the queue of this loop") }

    package func isIsolatingCurrentContext() -> Bool? { isCurrent }
}

/// The executor of tasks that prefer a loop: it runs their code outside of actors there.
///
/// `@unchecked Sendable`: `loop` is written once, before the object is shared; a loop lives as long as the process.
private final class DispatchTasks: TaskExecutor, @unchecked Sendable {
    unowned(unsafe) var loop: DispatchLoop!

    func enqueue(_ job: consuming ExecutorJob) {
        loop.enqueue(task: UnownedJob(job), of: asUnownedTaskExecutor())
    }
}
