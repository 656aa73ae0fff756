extension Stream {
    /// The current value, or the next if there is none; nil only when the task is cancelled before there is one.
    ///
    ///     self     1────2──      ─────1──
    ///     get()    1             ─────1
    nonisolated public func get() async -> Value? {
        await firstValue(receiveCurrentValue: true) { $0 }
    }

    /// The next value, whether there is a current one or not; nil only when the task is cancelled before it comes.
    ///
    ///     self         1────2──
    ///     getNext()    ─────2
    nonisolated public func getNext() async -> Value? {
        await firstValue(receiveCurrentValue: false) { $0 }
    }

    /// The current value, or the next if there is none.
    ///
    ///     self                     ───1──      ────────1──
    ///     get(timeout: 5 ticks)    ───1        ─────x          (throws)
    ///
    /// Throws ``TimeoutError`` when there is none in time, `CancellationError` when the task is cancelled before.
    nonisolated public func get(timeout: Duration, clock: some Clock<Duration> = ContinuousClock()) async throws
        -> Value
    {
        try await withTimeout(timeout, clock: clock) { try await self.getCancelable() }
    }

    /// The current value, or the next if there is none. Throws when the task is cancelled before there is one.
    ///
    ///     self               1────2──      ─────1──
    ///     getCancelable()    1             ─────1
    nonisolated public func getCancelable() async throws(CancellationError) -> Value {
        try await getCancelable { $0 }
    }

    /// What `transform` makes of the first value, the current one included, for which it is not nil.
    ///
    ///     self                           "x"────"1"────"2"──
    ///     getCancelable { Int($0) }      ───────1
    ///
    /// Throws when the task is cancelled before there is one.
    nonisolated public func getCancelable<Output: Sendable>(
        transform: @escaping @Sendable (Value) async -> Output?
    ) async throws(CancellationError) -> Output {
        guard let output = await firstValue(receiveCurrentValue: true, transform) else { throw CancellationError() }
        return output
    }

    /// What `transform` makes of the first value, the current one included, for which it is not nil, if there is one in
    /// time.
    ///
    ///     self                                        "x"────"y"────"1"──
    ///     getCancelable(timeout: 9 ticks) { Int($0) } ─────────x            (throws)
    ///
    /// Throws ``TimeoutError`` when there is no such value in time, `CancellationError` when the task is cancelled before.
    nonisolated public func getCancelable<Output: Sendable>(
        timeout: Duration, clock: some Clock<Duration> = ContinuousClock(),
        transform: @escaping @Sendable (Value) async -> Output?
    ) async throws -> Output {
        try await withTimeout(timeout, clock: clock) { try await self.getCancelable(transform: transform) }
    }

    /// The first value, the current one included, for which the condition holds; nil only when the task is cancelled
    /// before there is one.
    ///
    ///     self                1────2────3──
    ///     waitFor { $0 > 1 }  ─────2
    @discardableResult
    nonisolated public func waitFor(predicate: @escaping @Sendable (Value) async -> Bool) async -> Value? {
        await firstValue(receiveCurrentValue: true) { await predicate($0) ? $0 : nil }
    }

    /// A task that waits for the current value, or the next if there is none; cancel it to wait no longer.
    ///
    ///     self                 ─────1────2──
    ///     getFuture().value    ─────1
    ///
    /// Cancelled before there is a value, it throws `CancellationError`.
    nonisolated public func getFuture() -> Task<Value, any Error> {
        Task { try await self.getCancelable() }
    }

    /// A task that waits for the first value, the current one included, of which `transform` makes something.
    ///
    ///     self                                     "x"────"1"──
    ///     getFuture(compactMap: { Int($0) }).value ───────1
    ///
    /// Cancelled before there is one, it throws `CancellationError`.
    nonisolated public func getFuture<Output: Sendable>(
        compactMap transform: @escaping @Sendable (Value) async -> Output?
    ) -> Task<Output, any Error> {
        Task { try await self.getCancelable(transform: transform) }
    }

    private nonisolated func firstValue<Output: Sendable>(
        receiveCurrentValue: Bool, _ transform: @escaping @Sendable (Value) async -> Output?
    ) async -> Output? {
        let found = Kept<Output?>(nil)
        let gate = Gate()
        let subscription = await subscribe(receiveCurrentValue: receiveCurrentValue) { value in
            guard found.value == nil, let output = await transform(value) else { return }
            found.exchange(output)
            gate.open()
        }
        await gate.wait()
        subscription.cancel()
        return found.value
    }
}
