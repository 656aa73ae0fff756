extension Stream {
    /// Returns nil at once for each value, then the result of asynchronous work. Senders do not wait for the work.
    ///
    ///     self             ─1────────2───────
    ///     mapToFuture      ─n────A───n────B──
    ///
    /// A new value cancels the work for the previous one, whose result is dropped.
    nonisolated public func mapToFuture<Output: Sendable>(
        priority: TaskPriority? = nil, _ transform: @escaping @Sendable (Value) async -> Output?
    ) async -> Streams.Derived<Output?> {
        let outlet: Outlet<Output?> = outletBelow()
        let queue = SerialTaskQueue("sends into the mapToFuture that it came from")
        let worker = OperatorTask.current
        // The number belongs to the newest value; nil after the release of the chain.
        let state = OperatorState<(number: Int?, task: Task<Void, Never>?)>((0, nil))
        let stop = Attachment {
            state.exchange((nil, nil)).task?.cancel()
        }
        return await derive(into: outlet, additional: [stop]) { value, wave in
            let (newest, old) = state.withLock { state in
                let old = state.task
                state = (state.number.map { $0 + 1 }, nil)
                return (state.number, old)
            }
            old?.cancel()
            // A delivery may be in progress while the chain is released.
            guard let number = newest else { return }
            await queue.emit(nil, from: outlet, wave)
            let task = worker.start(priority: priority) {
                guard let output = await transform(value) else { return }
                let wave = Wave(from: outlet)
                await wave.run {
                    await queue.emit(output, from: outlet, wave) { state.withLock { $0.number == number } }
                }
                await wave.settle()
            }
            let isNewest = state.withLock { state in
                guard state.number == number else { return false }
                state.task = task
                return true
            }
            if !isNewest { task.cancel() }
        }
    }
}
