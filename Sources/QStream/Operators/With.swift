extension Stream {
    /// The same values, and a current value before the first of them.
    ///
    ///     self                   ─────1───2──
    ///     with(initialValue: 0)  0────1───2──
    ///
    /// Where this stream has a current value already, that one counts.
    nonisolated public func with(initialValue: Value) async -> Streams.Derived<Value> {
        let outlet = Outlet(initialValue, height: self.outlet.height)
        return await derive(into: outlet) { value, wave in await outlet.emit(value, wave) }
    }
}
