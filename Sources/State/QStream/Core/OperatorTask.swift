/// Starts the tasks of operators: timers, queues, readers of sequences.
///
/// They run on the task executor that the task which built the chain preferred, if any. They inherit nothing else, so
/// that a task-local value does not live as long as a stream.
struct OperatorTask: Sendable {
    let executor: (any TaskExecutor)?

    static var current: OperatorTask {
        OperatorTask(executor: withUnsafeCurrentTask { $0?.unownedTaskExecutor?.asTaskExecutor() })
    }

    func start(
        priority: TaskPriority? = nil, _ operation: sending @escaping @concurrent @Sendable () async -> Void
    ) -> Task<Void, Never> {
        Task.detached(executorPreference: executor, priority: priority, operation: operation)
    }
}
