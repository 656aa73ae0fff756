extension Stream {
    /// Returns the values for which the condition holds.
    ///
    ///     self               ─1───2───3───4──
    ///     filter { $0 > 2 }  ─────────3───4──
    ///
    /// The newest of them stays current. There is no current value before the first.
    @inlinable
    nonisolated public func filter(
        _ isIncluded: @escaping @Sendable (Value) async -> Bool
    ) async -> Streams.Derived<Value> {
        let outlet: Outlet<Value> = outletBelow()
        return await derive(into: outlet) { value, wave in
            if await isIncluded(value) { await outlet.emit(value, wave) }
        }
    }

    /// Returns the first value only, which stays current.
    ///
    ///     self    ─────1───2───3──
    ///     first() ─────1──────────
    nonisolated public func first() async -> Streams.Derived<Value> {
        let outlet: Outlet<Value> = outletBelow()
        let isOver = OperatorState(false)
        return await derive(into: outlet) { value, wave in
            if !isOver.exchange(true) { await outlet.emit(value, wave) }
        }
    }

    /// Drops values while the condition holds, and passes all values from the first other one.
    ///
    ///     self                   ─1───2───3───1──
    ///     drop(while: { $0 < 3 }) ─────────3───1──
    nonisolated public func drop(
        while isDropped: @escaping @Sendable (Value) async -> Bool
    ) async -> Streams.Derived<Value> {
        let outlet: Outlet<Value> = outletBelow()
        let isOver = OperatorState(false)
        return await derive(into: outlet) { value, wave in
            if !isOver.value {
                if await isDropped(value) { return }
                isOver.exchange(true)
            }
            await outlet.emit(value, wave)
        }
    }
}
