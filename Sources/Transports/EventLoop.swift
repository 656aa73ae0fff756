/// The one thread, or serial queue, that a client or an actor lives on: what is touched there alone needs no lock.
///
/// On Linux that is a `Reactor`; where there are none, a `DispatchLoop`. It is a serial executor too, so that actors live on it.
/// Actors name it without holding it: a loop lives as long as the process.
package protocol EventLoop: SerialExecutor {
    /// Whether the caller runs on it.
    var isCurrent: Bool { get }
    /// The time by which its timers go, in nanoseconds. From anywhere.
    var now: UInt64 { get }
    /// How far that is ahead of the monotonic clock, which tests turn on.
    var timeAhead: UInt64 { get }
    /// Runs tasks there that belong to no actor.
    var taskExecutor: any TaskExecutor { get }

    /// Runs `work` there, after what was sent before it. From anywhere.
    func execute(_ work: @escaping @Sendable () -> Void)
    /// Runs `work` after a delay; keep the timer to cancel it. On the loop.
    @discardableResult
    func schedule(after delay: Duration, _ work: @escaping () -> Void) -> LoopTimer
    /// Calls `task` when all has been done that is ready now. On the loop; the caller sees to it that it is added once.
    func atEndOfTurn(_ task: any EndOfTurn)

    /// What takes the machine's time begins, an attempt to connect for one: a test's clock stands still until it ends.
    func holdTime()
    func releaseTime()
}

/// What is to be done once when a loop has handled everything that was ready.
package protocol EndOfTurn: AnyObject {
    func endOfTurn()
}

extension EventLoop {
    package var timeAhead: UInt64 { 0 }
    package func holdTime() {}
    package func releaseTime() {}

    package func assertCurrent() { assert(isCurrent, "called from another thread") }

    /// Runs `work` now when the caller is on the loop, else soon.
    package func run(_ work: @escaping @Sendable () -> Void) {
        if isCurrent { work() } else { execute(work) }
    }

    /// Runs `work` there and gives its result.
    package func perform<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in execute { continuation.resume(returning: work()) } }
    }

    /// The same as `schedule(after:_:)` for an owner whom the timer does not hold: nothing happens when it has gone.
    @discardableResult
    package func schedule<Owner: AnyObject>(
        after delay: Duration, for owner: Owner, _ work: @escaping (Owner) -> Void
    ) -> LoopTimer {
        schedule(after: delay) { [weak owner] in if let owner { work(owner) } }
    }
}
