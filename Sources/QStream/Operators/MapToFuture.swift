extension Stream {
    /// Nil at once and then, when there is one, the result of work that nobody waits for.
    ///
    ///     self             ─1────────2───────
    ///     mapToFuture      ─n────A───n────B──
    ///
    /// A new value cancels the work on the one before, whose result does not come any more.
    nonisolated public func mapToFuture<Output: Sendable>(
        priority: TaskPriority? = nil, _ transform: @escaping @Sendable (Value) async -> Output?
    ) async -> Streams.Derived<Output?> {
        let outlet: Outlet<Output?> = outletBelow()
        let line = Line("sends into the mapToFuture that it came from")
        let worker = Worker.current
        // The number is that of the newest value, nil when the chain has gone.
        let state = Kept<(number: Int?, task: Task<Void, Never>?)>((0, nil))
        let stop = Attachment {
            state.exchange((nil, nil)).task?.cancel()
        }
        return await derive(into: outlet, also: [stop]) { value, wave in
            let (newest, old) = state.withLock { state in
                let old = state.task
                state = (state.number.map { $0 + 1 }, nil)
                return (state.number, old)
            }
            old?.cancel()
            // A value may be on its way while the chain goes.
            guard let number = newest else { return }
            await line.emit(nil, from: outlet, wave)
            let task = worker.start(priority: priority) {
                guard let output = await transform(value) else { return }
                let wave = Wave(from: outlet)
                await wave.run {
                    await line.emit(output, from: outlet, wave) { state.withLock { $0.number == number } }
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
