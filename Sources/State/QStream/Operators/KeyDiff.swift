extension Stream {
    /// Returns the removed and inserted keys with their values. A key that stays is not reported, even with a new
    /// value.
    ///
    ///     self            ─[a:1]──────────[a:2,b:3]──────[b:3]─────────
    ///     keyDiffStream() ─(-[], +[a:1])──(-[], +[b:3])──(-[a:2], +[])─
    ///
    /// The first dictionary consists of insertions. A dictionary with the same keys sends nothing.
    nonisolated public func keyDiffStream<Key: Hashable & Sendable, Element: Sendable>() async
        -> Streams.Derived<(removals: [Key: Element], insertions: [Key: Element])> where Value == [Key: Element]
    {
        let outlet: Outlet<(removals: [Key: Element], insertions: [Key: Element])> = outletBelow()
        let last = OperatorState<[Key: Element]>([:])
        return await derive(into: outlet) { new, wave in
            let old = last.exchange(new)
            let removals = old.filter { new[$0.key] == nil }
            let insertions = new.filter { old[$0.key] == nil }
            guard !removals.isEmpty || !insertions.isEmpty else { return }
            await outlet.emit((removals: removals, insertions: insertions), wave)
        }
    }
}
