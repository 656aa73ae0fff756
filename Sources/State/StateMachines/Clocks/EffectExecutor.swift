internal import Platform
internal import Relays

/// A serial task executor for the effects of a test store. It reports when no effect can continue.
///
/// Jobs run in the order in which they become ready. They run on a thread of the process, so a test that blocks the
/// main actor does not block effects.
final class EffectExecutor: TaskExecutor {
    /// The waiting jobs and their counts, under the lock.
    private struct State: Sendable {
        var jobs: [UnownedJob] = []
        var isRunning = false
        /// The number of jobs received, and of jobs done.
        var received: UInt64 = 0
        var done: UInt64 = 0
    }

    /// The number of jobs after which `waitUntilIdle()` returns although effects still run.
    private static let maximumJobs: UInt64 = 10_000
    /// The time after which `waitUntilIdle()` returns although an effect blocks the thread.
    private static let timeout = Duration.seconds(1)

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

    /// Returns when each effect has ended or is suspended, and the main actor has no work from effects.
    ///
    /// Returns earlier when the task is cancelled, after 10,000 jobs, and after one second.
    func waitUntilIdle() async {
        let limit = state.withLock { $0.done } + Self.maximumJobs
        let deadline = ContinuousClock.now + Self.timeout
        while let received = await waitForIdle(limit, deadline) {
            await Self.yieldToMainActor()
            let isIdle = state.withLock { !$0.isRunning && $0.received == received || $0.done >= limit }
            if isIdle || ContinuousClock.now >= deadline { return }
        }
    }

    /// Waits until no job is left, or a limit is reached. Returns the number of received jobs; nil when the task is
    /// cancelled.
    private func waitForIdle(_ limit: UInt64, _ deadline: ContinuousClock.Instant) async -> UInt64? {
        func idleCount(_ state: inout State) -> UInt64? {
            !state.isRunning || state.done >= limit || ContinuousClock.now >= deadline ? state.received : nil
        }
        if let received = state.withLock({ idleCount(&$0) }) { return Task.isCancelled ? nil : received }
        let timer = Task {
            guard (try? await Task.sleep(until: deadline)) != nil else { return }
            self.state.change { _ in }.woken.resume()
        }
        defer { timer.cancel() }
        return await state.wait { idleCount(&$0) }
    }

    /// Returns when the main actor has run the jobs that were enqueued before.
    @MainActor private static func yieldToMainActor() async { await Task.yield() }
}

/// Starts a task, on the executor if there is one.
func startTask<Success: Sendable>(
    on executor: EffectExecutor?, priority: TaskPriority? = nil, _ work: @escaping @Sendable () async -> Success
) -> Task<Success, Never> {
    guard let executor else { return Task(priority: priority) { await work() } }
    return Task(executorPreference: executor, priority: priority) {
        await EffectExecutor.$current.withValue(executor) { await work() }
    }
}
