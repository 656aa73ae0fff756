extension Stream {
    /// Returns the accumulated results: each step begins with the result of the previous one.
    ///
    ///     self         ─1───2───3──
    ///     scan(0, +)   ─1───3───6──
    ///
    /// A current value of this stream is the first step.
    nonisolated public func scan<Result: Sendable>(
        _ initialResult: Result, _ step: @escaping @Sendable (_ result: Result, _ value: Value) async -> Result
    ) async -> Streams.Derived<Result> {
        let outlet: Outlet<Result> = outletBelow()
        let result = OperatorState(initialResult)
        return await derive(into: outlet) { value, wave in
            let next = await step(result.value, value)
            result.exchange(next)
            await outlet.emit(next, wave)
        }
    }

    /// Returns the accumulated results, like ``scan(_:_:)``.
    ///
    ///     self                                 ─1───2───3──
    ///     scan(initialResult: 0) { $0 + $1 }   ─1───3───6──
    nonisolated public func scan<Result: Sendable>(
        initialResult: Result, _ step: @escaping @Sendable (_ result: Result, _ value: Value) async -> Result
    ) async -> Streams.Derived<Result> {
        await scan(initialResult, step)
    }
}

extension Stream {
    /// Returns the same values, with a current value before the first of them.
    ///
    ///     self                   ─────1───2──
    ///     with(initialValue: 0)  0────1───2──
    ///
    /// If this stream already has a current value, that one is used.
    nonisolated public func with(initialValue: Value) async -> Streams.Derived<Value> {
        let outlet = Outlet(initialValue, height: self.outlet.height)
        return await derive(into: outlet) { value, wave in await outlet.emit(value, wave) }
    }
}
