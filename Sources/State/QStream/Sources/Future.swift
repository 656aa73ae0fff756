/// Asynchronous work with a result.
public struct Future<Value: Sendable>: Sendable {
    private let task: Task<Value, Never>

    /// Starts the work.
    public init(priority: TaskPriority? = nil, _ work: @escaping @concurrent @Sendable () async -> Value) {
        task = Task.detached(executorPreference: OperatorTask.current.executor, priority: priority, operation: work)
    }

    /// The result, when the work is done.
    public var value: Value {
        get async { await task.value }
    }

    /// Returns a stream of nil, and then the result.
    ///
    ///     stream()   n─────A──
    public func stream() -> AnyStream<Value?> {
        let subject = Subject<Value?>(value: nil)
        _ = OperatorTask.current.start { [task, weak subject] in
            let value = await task.value
            await subject?.set(value)
        }
        return subject.any()
    }
}
