/// Suspends tasks of actors on one event loop, without continuations.
///
/// The runtime resumes a continuation through its global pool: two hops between threads, of some 20 µs each, before the task runs
/// on its actor again. A task that is suspended here calls an actor whose executor keeps the call instead of running it. When it is
/// resumed, it goes from there to its own actor, on the same thread.
///
/// Only on its event loop, as each method checks in debug builds.
package final class TaskSuspender {
    private let executor: KeepingExecutor
    private let place: Place

    package init(_ loop: any EventLoop) {
        executor = KeepingExecutor(loop)
        place = Place(executor)
    }

    /// Suspends the calling task until ``SuspendedTask/resume()`` or ``SuspendedTask/run()``, of which one must follow, once.
    ///
    /// - Parameters:
    ///   - isolation: the calling actor, which must run on the event loop.
    ///   - body: receives the suspended task, in the same isolation. It must not resume it.
    package func suspend(
        isolation: isolated (any Actor)? = #isolation, _ body: @escaping (SuspendedTask) -> Void
    ) async {
        executor.loop.assertCurrent()
        executor.receiver.value = body
        // The runtime calls `enqueue` of the executor before the call returns to the loop, so no other task takes the receiver.
        await place.pass()
        assert(executor.receiver.value == nil, "the runtime has not called the executor")
    }

    /// The actor that suspended tasks wait for.
    private actor Place {
        private let executor: KeepingExecutor
        private var count: UInt64 = 0

        init(_ executor: KeepingExecutor) { self.executor = executor }

        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

        /// Without an effect on the actor, the optimizer would remove the call.
        @inline(never) func pass() { count &+= 1 }
    }
}

/// A task that waits on its event loop. Only on that loop.
package final class SuspendedTask {
    private let job: UnownedJob
    private let executor: KeepingExecutor

    fileprivate init(_ job: UnownedJob, _ executor: KeepingExecutor) {
        self.job = job
        self.executor = executor
    }

    /// Continues the task after the work that waits on its event loop. Callable on the loop, also from tasks.
    package func resume() {
        let task = LoopBound(self, on: executor.loop)
        executor.loop.execute { task.value.run() }
    }

    /// Queues the task on its actor. Callable on the loop, but not from tasks, because another task ran inside of them.
    package func run() {
        executor.loop.assertCurrent()
        job.runSynchronously(on: executor.asUnownedSerialExecutor())
    }
}

/// An executor that passes its jobs on instead of running them. Only on the event loop of its `TaskSuspender`.
private final class KeepingExecutor: SerialExecutor {
    let loop: any EventLoop
    /// Receives the next job.
    let receiver: LoopVariable<((SuspendedTask) -> Void)?>

    init(_ loop: any EventLoop) {
        self.loop = loop
        receiver = LoopVariable(nil, on: loop)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let task = SuspendedTask(UnownedJob(job), self)
        guard let receive = receiver.value else {
            // unreachable from data: only `TaskSuspender.suspend` calls the actor of this executor, and sets the receiver before.
            preconditionFailure("a job without a receiver")
        }
        receiver.value = nil
        receive(task)
    }
}
