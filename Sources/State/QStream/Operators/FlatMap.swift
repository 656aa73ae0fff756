extension Stream {
    /// Returns the elements of the array that `transform` returns for each value, one after another.
    ///
    ///     self                 ─1───────3──────
    ///     flatMap { [$0, $0] } ─(11)────(33)───
    ///
    /// The result is a stream of impulses: it has no current value.
    nonisolated public func flatMap<Element: Sendable>(
        _ transform: @escaping @Sendable (Value) async -> [Element]
    ) async -> Streams.Derived<Element> {
        let outlet: Outlet<Element> = outletBelow(keepsValue: false)
        return await derive(into: outlet, withCurrent: false) { value, wave in
            for element in await transform(value) { await outlet.emit(element, wave) }
        }
    }

    /// Returns each element of each array.
    ///
    ///     self      ─[1,2]───[3]──
    ///     flatMap() ─(12)────3────
    nonisolated public func flatMap<Element: Sendable>() async -> Streams.Derived<Element> where Value == [Element] {
        await flatMap { $0 }
    }
}
