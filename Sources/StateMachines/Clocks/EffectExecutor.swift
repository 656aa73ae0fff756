internal import Platform
internal import Relays

/// Runs the effects of a test store one at a time, in the order in which they become ready, and knows when none of them can go on.
///
/// It runs them in a thread of the process, and not on the main actor: a test that blocks that holds up no effect.
final class EffectExecutor: TaskExecutor {
    private struct State: Sendable {
        var jobs: [UnownedJob] = []
        var isRunning = false
        /// Jobs that have come, and that are done.
        var received: UInt64 = 0
        var done: UInt64 = 0
    }

    /// What effects may do before they are taken for some that never wait.
    private static let mostJobs: UInt64 = 10_000
    /// How long one of them may hold the thread.
    private static let patience = Duration.seconds(1)

    private let state = Monitor(State())

    /// The executor of the effect that runs in the current task; nil in others.
    @TaskLocal static var current: EffectExecutor?

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let mustStart = state.withLock { state in
            state.jobs.append(job)
            state.received += 1
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if mustStart { BlockingThreads.shared.run { self.runAll() } }
    }

    private func runAll() {
        while let job = next() {
            job.runSynchronously(on: asUnownedTaskExecutor())
            state.withLock { $0.done += 1 }
        }
    }

    private func next() -> UnownedJob? {
        let (job, woken) = state.change { state -> UnownedJob? in
            state.isRunning = !state.jobs.isEmpty
            return state.isRunning ? state.jobs.removeFirst() : nil
        }
        woken.resume()
        return job
    }

    /// Returns once each effect has ended or waits for something that no effect and no work of the main actor brings about.
    ///
    /// It waits no longer for effects that go on and on without waiting, or that hold their thread for a second.
    func rest() async {
        let limit = state.withLock { $0.done } + Self.mostJobs
        let deadline = ContinuousClock.now + Self.patience
        while let received = await idle(limit, deadline) {
            await Self.letMainActorRun()
            let isAtRest = state.withLock { !$0.isRunning && $0.received == received || $0.done >= limit }
            if isAtRest || ContinuousClock.now >= deadline { return }
        }
    }

    /// Waits until no job is left, or the limits; returns how many have come. Nil when the task is cancelled.
    private func idle(_ limit: UInt64, _ deadline: ContinuousClock.Instant) async -> UInt64? {
        func look(_ state: inout State) -> UInt64? {
            !state.isRunning || state.done >= limit || ContinuousClock.now >= deadline ? state.received : nil
        }
        if let received = state.withLock({ look(&$0) }) { return Task.isCancelled ? nil : received }
        let alarm = Task {
            guard (try? await Task.sleep(until: deadline)) != nil else { return }
            self.state.change { _ in }.woken.resume()
        }
        defer { alarm.cancel() }
        return await state.wait { look(&$0) }
    }

    /// Returns when the main actor has done what was put to it before.
    @MainActor private static func letMainActorRun() async { await Task.yield() }
}

/// Starts a task, on an executor where there is one.
func startTask<Success: Sendable>(
    on executor: EffectExecutor?, priority: TaskPriority? = nil, _ work: @escaping @Sendable () async -> Success
) -> Task<Success, Never> {
    guard let executor else { return Task(priority: priority) { await work() } }
    return Task(executorPreference: executor, priority: priority) {
        await EffectExecutor.$current.withValue(executor) { await work() }
    }
}
