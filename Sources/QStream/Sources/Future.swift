/// Work whose result comes later.
public struct Future<Value: Sendable>: Sendable {
    private let task: Task<Value, Never>

    /// Begins the work.
    public init(priority: TaskPriority? = nil, _ work: @escaping @concurrent @Sendable () async -> Value) {
        task = Task.detached(executorPreference: Worker.current.executor, priority: priority, operation: work)
    }

    /// The result, when the work is done.
    public var value: Value {
        get async { await task.value }
    }

    /// Nil, and then the result.
    ///
    ///     stream()   n─────A──
    public func stream() -> AnyStream<Value?> {
        let subject = Subject<Value?>(value: nil)
        _ = Worker.current.start { [task, weak subject] in
            let value = await task.value
            await subject?.set(value)
        }
        return subject.any()
    }
}
