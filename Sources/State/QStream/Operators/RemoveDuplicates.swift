/// A type whose values are compared asynchronously.
public protocol AsyncEquatable {
    static func == (a: Self, b: Self) async -> Bool
}

extension Stream {
    /// Returns each value that differs from the one before it.
    ///
    ///     self               ─1───1───2───2───1──
    ///     removeDuplicates() ─1───────2───────1──
    nonisolated public func removeDuplicates() async -> Streams.Derived<Value> where Value: Equatable {
        await removeDuplicates { $0 == $1 }
    }

    /// Returns each value that differs from the one before it, compared asynchronously.
    ///
    ///     self               ─1───1───2───2───1──
    ///     removeDuplicates() ─1───────2───────1──
    nonisolated public func removeDuplicates() async -> Streams.Derived<Value> where Value: AsyncEquatable {
        await removeDuplicates { await $0 == $1 }
    }

    /// Returns each value for which `areSame` is false in comparison with the last value that passed.
    ///
    ///     self                                    ─11───12───25──
    ///     removeDuplicates { $0 / 10 == $1 / 10 } ─11────────25──
    nonisolated public func removeDuplicates(
        by areSame: @escaping @Sendable (_ last: Value, _ value: Value) async -> Bool
    ) async -> Streams.Derived<Value> {
        let outlet: Outlet<Value> = outletBelow()
        return await derive(into: outlet) { value, wave in
            if let last = outlet.current, await areSame(last, value) { return }
            await outlet.emit(value, wave)
        }
    }
}
