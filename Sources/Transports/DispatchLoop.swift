internal import Dispatch
internal import Platform
internal import Synchronization

/// A serial Dispatch queue as a loop, for platforms without our sockets.
///
/// Each piece of work is a turn of its own.
///
/// `@unchecked Sendable`: `endOfTurn`, `timers` and what wakes for them are touched on the queue alone; the rest is constant.
package final class DispatchLoop: EventLoop, @unchecked Sendable {
    private static let current = DispatchSpecificKey<ObjectIdentifier>()

    /// Clients that bring no loop of their own share this one.
    package static let shared = DispatchLoop(name: "trebuchet-client")

    private let queue: DispatchQueue
    private var endOfTurn: [any EndOfTurn] = []
    /// All of them wait for one timer of Dispatch: each of those would be there until it is due, cancelled or not.
    private var timers = TimerQueue()
    private var alarm: (any DispatchSourceTimer)?
    /// When that goes off; `max` while it does not.
    private var alarmAt = UInt64.max
    /// For tasks that run here though they belong to no actor. Written in `init` alone.
    package private(set) nonisolated(unsafe) var taskExecutor: any TaskExecutor

    /// - Parameter name: for those who look at threads.
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
        timers.add(timer)
        setAlarm()
        return timer
    }

    /// Sees to it that it goes off for the next timer, or before.
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
        // A loop whose timers nobody waits for may go.
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

    package func atEndOfTurn(_ task: any EndOfTurn) {
        assertCurrent()
        endOfTurn.append(task)
    }

    private func finishTurn() {
        while !endOfTurn.isEmpty {
            var tasks: [any EndOfTurn] = []
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

/// The executor of tasks that prefer a loop: what they run outside of any actor runs there.
///
/// `@unchecked Sendable`: `loop` is written once, before anybody else has it; a loop lives as long as the process.
private final class DispatchTasks: TaskExecutor, @unchecked Sendable {
    unowned(unsafe) var loop: DispatchLoop!

    func enqueue(_ job: consuming ExecutorJob) {
        loop.enqueue(task: UnownedJob(job), of: asUnownedTaskExecutor())
    }
}
