extension Stream {
    /// Returns each value, transformed.
    ///
    ///     self           ─1───2───3──
    ///     map { $0 * 2 } ─2───4───6──
    @inlinable
    nonisolated public func map<Output: Sendable>(
        _ transform: @escaping @Sendable (Value) async -> Output
    ) async -> Streams.Derived<Output> {
        let outlet: Outlet<Output> = outletBelow()
        return await derive(into: outlet) { value, wave in await outlet.emit(transform(value), wave) }
    }

    /// Returns each value, transformed, and drops nil results.
    ///
    ///     self                  ─"1"───"x"───"3"──
    ///     compactMap { Int($0) } ─1───────────3───
    ///
    /// The newest result stays current while later values are dropped. There is no current value before the first
    /// result.
    @inlinable
    nonisolated public func compactMap<Output: Sendable>(
        _ transform: @escaping @Sendable (Value) async -> Output?
    ) async -> Streams.Derived<Output> {
        let outlet: Outlet<Output> = outletBelow()
        return await derive(into: outlet) { value, wave in
            if let output = await transform(value) { await outlet.emit(output, wave) }
        }
    }

    /// Returns each value that is not nil.
    ///
    ///     self         ─1───nil───3──
    ///     compactMap() ─1─────────3──
    nonisolated public func compactMap<Wrapped: Sendable>() async -> Streams.Derived<Wrapped> where Value == Wrapped? {
        await compactMap { $0 }
    }

    /// Returns each value transformed together with the previous value, which is nil for the first.
    ///
    ///     self                            ─1───2───5──
    ///     selfScan { $1 - ($0 ?? $1) }    ─0───1───3──
    nonisolated public func selfScan<Output: Sendable>(
        _ transform: @escaping @Sendable (_ previous: Value?, _ value: Value) async -> Output
    ) async -> Streams.Derived<Output> {
        let outlet: Outlet<Output> = outletBelow()
        let previous = OperatorState<Value?>(nil)
        return await derive(into: outlet) { value, wave in
            await outlet.emit(transform(previous.exchange(value), value), wave)
        }
    }
}
