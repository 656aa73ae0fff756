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
