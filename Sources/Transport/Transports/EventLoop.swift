/// The thread or serial queue that runs a client or an actor. State that is accessed only there needs no lock.
///
/// On Linux this is a `Reactor`, elsewhere a `DispatchLoop`. It is also the serial executor of actors. Actors reference it
/// unretained: a loop lives as long as the process.
package protocol EventLoop: SerialExecutor {
    /// Whether the caller runs on this loop.
    var isCurrent: Bool { get }
    /// The time used by the loop's timers, in nanoseconds. Callable from any thread.
    var now: UInt64 { get }
    /// The offset of `now` from the monotonic clock, which tests advance.
    var timeAhead: UInt64 { get }
    /// The executor for tasks that belong to no actor.
    var taskExecutor: any TaskExecutor { get }

    /// Runs `work` on the loop, after all work submitted earlier. Callable from any thread.
    func execute(_ work: @escaping @Sendable () -> Void)
    /// Runs `work` after a delay; keep the timer to cancel it. Only on the loop.
    @discardableResult
    func schedule(after delay: Duration, _ work: @escaping () -> Void) -> LoopTimer
    /// Calls `task` when all ready work of this turn is done. Only on the loop; the caller adds a task only once.
    func atEndOfTurn(_ task: any EndOfTurnTask)

    /// Suspends a test clock while an operation takes real time, such as a connection attempt, until `releaseTime()`.
    func holdTime()
    func releaseTime()
}

/// A task that runs once at the end of a turn, when the loop has handled all ready events.
package protocol EndOfTurnTask: AnyObject {
    func endOfTurn()
}

extension EventLoop {
    package var timeAhead: UInt64 { 0 }
    package func holdTime() {}
    package func releaseTime() {}

    package func assertCurrent() { assert(isCurrent, "called from another thread") }

    /// Runs `work` immediately if the caller is on the loop, otherwise later.
    package func run(_ work: @escaping @Sendable () -> Void) {
        if isCurrent { work() } else { execute(work) }
    }

    /// Runs `work` on the loop and returns its result.
    package func perform<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in execute { continuation.resume(returning: work()) } }
    }

    /// Runs `work` after a delay unless `owner` is freed by then. The timer does not retain it.
    @discardableResult
    package func schedule<Owner: AnyObject>(
        after delay: Duration, for owner: Owner, _ work: @escaping (Owner) -> Void
    ) -> LoopTimer {
        schedule(after: delay) { [weak owner] in if let owner { work(owner) } }
    }
}
