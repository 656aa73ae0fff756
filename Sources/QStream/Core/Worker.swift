/// Starts the tasks that operators need: timers, queues, readers of sequences.
///
/// They run where the chain was built: on the task executor that the building task preferred, if any. They inherit
/// nothing else, so that a task-local value does not live as long as a stream.
struct Worker: Sendable {
    let executor: (any TaskExecutor)?

    static var current: Worker {
        Worker(executor: withUnsafeCurrentTask { $0?.unownedTaskExecutor?.asTaskExecutor() })
    }

    func start(
        priority: TaskPriority? = nil, _ operation: sending @escaping @concurrent @Sendable () async -> Void
    ) -> Task<Void, Never> {
        Task.detached(executorPreference: executor, priority: priority, operation: operation)
    }
}
