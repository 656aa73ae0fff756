/// A one-shot timer whose deadline may be moved while it runs. It sleeps in a task that lives while the timer is set.
///
/// It does not fire concurrently: set while its closure runs, it waits for the end of that.
final class ReschedulableTimer: Sendable {
    /// The deadline and the sleeping task, under the lock.
    private struct State {
        var deadline: Duration?
        var action: (@Sendable () async -> Void)?
        var sleeper: Task<Void, Never>?
        /// True if a task will check the deadline. The task may not have been stored in `sleeper` yet.
        var hasSleeper = false
        /// The number of the valid sleeper. A sleeper that finds another number has been cancelled.
        var number = 0
        var isRunningAction = false
    }

    let clock: StreamClock
    private let worker = OperatorTask.current
    private let state = OperatorState(State())

    init(_ clock: some Clock<Duration>) { self.clock = StreamClock(clock) }

    /// Sets the timer to fire after the interval. Replaces the previous setting.
    ///
    /// A running timer can be moved to a later time only.
    func schedule(after interval: Duration, _ action: @escaping @Sendable () async -> Void) {
        let deadline = clock.now() + interval
        let number = state.withLock { state -> Int? in
            state.deadline = deadline
            state.action = action
            guard !state.hasSleeper else { return nil }
            state.hasSleeper = true
            state.number += 1
            return state.number
        }
        guard let number else { return }
        let sleeper = worker.start { await self.run(number) }
        let isWanted = state.withLock { state in
            guard state.number == number, state.hasSleeper else { return false }
            state.sleeper = sleeper
            return true
        }
        // Cancelled before it was stored. Cancellation of a finished task has no effect.
        if !isWanted { sleeper.cancel() }
    }

    /// Cancels the timer. A closure that already runs continues.
    func cancel() {
        let sleeper = state.withLock { state -> Task<Void, Never>? in
            state.deadline = nil
            state.action = nil
            guard !state.isRunningAction else { return nil }
            state.number += 1
            state.hasSleeper = false
            return state.sleeper.take()
        }
        sleeper?.cancel()
    }

    /// The next action of the sleeping task.
    private enum Step {
        case sleep(Duration)
        case action(@Sendable () async -> Void)
        case end
    }

    private func run(_ number: Int) async {
        while true {
            let now = clock.now()
            let step = state.withLock { state -> Step in
                guard state.number == number else { return .end }
                guard let deadline = state.deadline, let action = state.action else {
                    state.sleeper = nil
                    state.hasSleeper = false
                    return .end
                }
                guard deadline <= now else { return .sleep(deadline) }
                state.deadline = nil
                state.action = nil
                state.isRunningAction = true
                return .action(action)
            }
            switch step {
            case .end: return
            case .sleep(let deadline): try? await clock.sleep(deadline)
            case .action(let action):
                await action()
                state.withLock { $0.isRunningAction = false }
            }
        }
    }
}

/// A type-erased clock, with instants as durations since its creation.
struct StreamClock: Sendable {
    let now: @Sendable () -> Duration
    /// Sleeps until the instant. Throws when the task is cancelled.
    let sleep: @Sendable (_ until: Duration) async throws -> Void

    init(_ clock: some Clock<Duration>) {
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
    }
}
