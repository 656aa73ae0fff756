extension Stream {
    /// Returns the current value, or the next if there is none; nil only if the task is cancelled first.
    ///
    ///     self     1────2──      ─────1──
    ///     get()    1             ─────1
    nonisolated public func get() async -> Value? {
        await firstValue(receiveCurrentValue: true) { $0 }
    }

    /// Returns the next value, even if there is a current one; nil only if the task is cancelled first.
    ///
    ///     self         1────2──
    ///     getNext()    ─────2
    nonisolated public func getNext() async -> Value? {
        await firstValue(receiveCurrentValue: false) { $0 }
    }

    /// Returns the current value, or the next if there is none.
    ///
    ///     self                     ───1──      ────────1──
    ///     get(timeout: 5 ticks)    ───1        ─────x          (throws)
    ///
    /// Throws ``TimeoutError`` when there is none in time, `CancellationError` when the task is cancelled first.
    nonisolated public func get(timeout: Duration, clock: some Clock<Duration> = ContinuousClock()) async throws
        -> Value
    {
        try await withTimeout(timeout, clock: clock) { try await self.getCancelable() }
    }

    /// Returns the current value, or the next if there is none. Throws when the task is cancelled first.
    ///
    ///     self               1────2──      ─────1──
    ///     getCancelable()    1             ─────1
    nonisolated public func getCancelable() async throws(CancellationError) -> Value {
        try await getCancelable { $0 }
    }

    /// Returns the first non-nil result of `transform`, applied to the current value and those that follow.
    ///
    ///     self                           "x"────"1"────"2"──
    ///     getCancelable { Int($0) }      ───────1
    ///
    /// Throws when the task is cancelled first.
    nonisolated public func getCancelable<Output: Sendable>(
        transform: @escaping @Sendable (Value) async -> Output?
    ) async throws(CancellationError) -> Output {
        guard let output = await firstValue(receiveCurrentValue: true, transform) else { throw CancellationError() }
        return output
    }

    /// Returns the first non-nil result of `transform`, applied to the current value and those that follow, within a
    /// time limit.
    ///
    ///     self                                        "x"────"y"────"1"──
    ///     getCancelable(timeout: 9 ticks) { Int($0) } ─────────x            (throws)
    ///
    /// Throws ``TimeoutError`` when there is no such value in time, `CancellationError` when the task is cancelled
    /// first.
    nonisolated public func getCancelable<Output: Sendable>(
        timeout: Duration, clock: some Clock<Duration> = ContinuousClock(),
        transform: @escaping @Sendable (Value) async -> Output?
    ) async throws -> Output {
        try await withTimeout(timeout, clock: clock) { try await self.getCancelable(transform: transform) }
    }

    /// Returns the first value, including the current one, for which the condition holds; nil only if the task is
    /// cancelled first.
    ///
    ///     self                1────2────3──
    ///     waitFor { $0 > 1 }  ─────2
    @discardableResult
    nonisolated public func waitFor(predicate: @escaping @Sendable (Value) async -> Bool) async -> Value? {
        await firstValue(receiveCurrentValue: true) { await predicate($0) ? $0 : nil }
    }

    /// Returns a task that waits for the current value, or the next if there is none. Cancel the task to stop waiting.
    ///
    ///     self                 ─────1────2──
    ///     getFuture().value    ─────1
    ///
    /// If cancelled before there is a value, the task throws `CancellationError`.
    nonisolated public func getFuture() -> Task<Value, any Error> {
        Task { try await self.getCancelable() }
    }

    /// Returns a task that waits for the first non-nil result of `transform`, applied to the current value and those
    /// that follow.
    ///
    ///     self                                     "x"────"1"──
    ///     getFuture(compactMap: { Int($0) }).value ───────1
    ///
    /// If cancelled before there is a result, the task throws `CancellationError`.
    nonisolated public func getFuture<Output: Sendable>(
        compactMap transform: @escaping @Sendable (Value) async -> Output?
    ) -> Task<Output, any Error> {
        Task { try await self.getCancelable(transform: transform) }
    }

    private nonisolated func firstValue<Output: Sendable>(
        receiveCurrentValue: Bool, _ transform: @escaping @Sendable (Value) async -> Output?
    ) async -> Output? {
        let found = OperatorState<Output?>(nil)
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
