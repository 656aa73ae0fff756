extension AsyncStream where Element: Sendable {
    /// A stream of one element, which asynchronous work produces; it ends after it.
    ///
    /// The work begins at once, and is cancelled when the stream is.
    public static func single(
        priority: TaskPriority? = nil, _ work: @escaping @Sendable () async -> Element
    ) -> Self {
        produced(priority: priority) { $0.yield(await work()) }
    }

    /// A stream that asynchronous work makes, such as a method of an actor that returns one.
    public static func deferred(_ make: @escaping @Sendable () async -> Self) -> Self {
        produced { continuation in
            for await element in await make() { continuation.yield(element) }
        }
    }

    /// A stream that asynchronous work fills. It ends with the work; the work is cancelled with it.
    static func produced(
        priority: TaskPriority? = nil, _ fill: @escaping @Sendable (Continuation) async -> Void
    ) -> Self {
        Self { continuation in
            let task = Task(priority: priority) {
                await fill(continuation)
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }
}
