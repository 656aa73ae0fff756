extension Stream {
    /// Returns the newest values of this stream and the other, together, whenever one of them changes.
    ///
    ///     self                ─1───────2──────
    ///     b                   ───a───b───────c
    ///     combineLatest(b)    ───1a──1b2b────2c
    ///
    /// The result begins when each stream has a value. A value that reaches it on several paths (a diamond) comes out
    /// once, after all paths are done, and never as a mixture of new and old. If such a value is already in delivery,
    /// the result begins, and the method returns, after that delivery. Inside a closure of a stream the method returns
    /// at once, and the result begins later. There are overloads for up to seven streams.
    nonisolated public func combineLatest<B: Stream>(_ b: B) async -> Streams.Derived<(Value, B.Value)> {
        await combine(b)
    }

    /// Returns the newest values of this stream and two others, together, whenever one of them changes.
    ///
    ///     self                 1────2─────────
    ///     b                    a──────────────
    ///     c                    T─────────z────
    ///     combineLatest(b, c)  1aT──2aT──2az──
    ///
    /// It begins and handles diamonds like ``combineLatest(_:)``.
    nonisolated public func combineLatest<B: Stream, C: Stream>(
        _ b: B, _ c: C
    ) async -> Streams.Derived<(Value, B.Value, C.Value)> {
        await combine(b, c)
    }

    /// Returns the newest values of this stream and three others, together, whenever one of them changes.
    ///
    ///     self                    1─────2───────────
    ///     b                       a─────────────────
    ///     c                       T─────────────────
    ///     d                       x───────────z─────
    ///     combineLatest(b, c, d)  1aTx──2aTx──2aTz──
    ///
    /// It begins and handles diamonds like ``combineLatest(_:)``.
    nonisolated public func combineLatest<B: Stream, C: Stream, D: Stream>(
        _ b: B, _ c: C, _ d: D
    ) async -> Streams.Derived<(Value, B.Value, C.Value, D.Value)> {
        await combine(b, c, d)
    }

    /// Returns the newest values of this stream and four others, together, whenever one of them changes.
    ///
    ///     self                       1──────2─────────────
    ///     b                          a────────────────────
    ///     c                          T────────────────────
    ///     d                          x────────────────────
    ///     e                          5─────────────z──────
    ///     combineLatest(b, c, d, e)  1aTx5──2aTx5──2aTxz──
    ///
    /// It begins and handles diamonds like ``combineLatest(_:)``.
    nonisolated public func combineLatest<B: Stream, C: Stream, D: Stream, E: Stream>(
        _ b: B, _ c: C, _ d: D, _ e: E
    ) async -> Streams.Derived<(Value, B.Value, C.Value, D.Value, E.Value)> {
        await combine(b, c, d, e)
    }

    /// Returns the newest values of this stream and five others, together, whenever one of them changes.
    ///
    ///     self                          1───────2───────────────
    ///     b                             a───────────────────────
    ///     c                             T───────────────────────
    ///     d                             x───────────────────────
    ///     e                             5───────────────────────
    ///     f                             y───────────────z───────
    ///     combineLatest(b, c, d, e, f)  1aTx5y──2aTx5y──2aTx5z──
    ///
    /// It begins and handles diamonds like ``combineLatest(_:)``.
    nonisolated public func combineLatest<B: Stream, C: Stream, D: Stream, E: Stream, F: Stream>(
        _ b: B, _ c: C, _ d: D, _ e: E, _ f: F
    ) async -> Streams.Derived<(Value, B.Value, C.Value, D.Value, E.Value, F.Value)> {
        await combine(b, c, d, e, f)
    }

    /// Returns the newest values of this stream and six others, together, whenever one of them changes.
    ///
    ///     self                             1────────2─────────────────
    ///     b                                a──────────────────────────
    ///     c                                T──────────────────────────
    ///     d                                x──────────────────────────
    ///     e                                5──────────────────────────
    ///     f                                y──────────────────────────
    ///     g                                9─────────────────z────────
    ///     combineLatest(b, c, d, e, f, g)  1aTx5y9──2aTx5y9──2aTx5yz──
    ///
    /// It begins and handles diamonds like ``combineLatest(_:)``.
    nonisolated public func combineLatest<B: Stream, C: Stream, D: Stream, E: Stream, F: Stream, G: Stream>(
        _ b: B, _ c: C, _ d: D, _ e: E, _ f: F, _ g: G
    ) async -> Streams.Derived<(Value, B.Value, C.Value, D.Value, E.Value, F.Value, G.Value)> {
        await combine(b, c, d, e, f, g)
    }
}

extension Streams {
    /// Returns the newest values of the two streams, together, whenever one of them changes.
    ///
    ///     a                    1───2───────
    ///     b                    a───────z───
    ///     combineLatest(a, b)  1a──2a──2z──
    ///
    /// It begins and handles diamonds like ``Stream/combineLatest(_:)``.
    public static func combineLatest<A: Stream, B: Stream>(
        _ a: A, _ b: B
    ) async -> Streams.Derived<(A.Value, B.Value)> {
        await a.combine(b)
    }

    /// Returns the newest values of the three streams, together, whenever one of them changes.
    ///
    ///     a                       1────2─────────
    ///     b                       a──────────────
    ///     c                       T─────────z────
    ///     combineLatest(a, b, c)  1aT──2aT──2az──
    ///
    /// It begins and handles diamonds like ``Stream/combineLatest(_:)``.
    public static func combineLatest<A: Stream, B: Stream, C: Stream>(
        _ a: A, _ b: B, _ c: C
    ) async -> Streams.Derived<(A.Value, B.Value, C.Value)> {
        await a.combine(b, c)
    }

    /// Returns the newest values of the four streams, together, whenever one of them changes.
    ///
    ///     a                          1─────2───────────
    ///     b                          a─────────────────
    ///     c                          T─────────────────
    ///     d                          x───────────z─────
    ///     combineLatest(a, b, c, d)  1aTx──2aTx──2aTz──
    ///
    /// It begins and handles diamonds like ``Stream/combineLatest(_:)``.
    public static func combineLatest<A: Stream, B: Stream, C: Stream, D: Stream>(
        _ a: A, _ b: B, _ c: C, _ d: D
    ) async -> Streams.Derived<(A.Value, B.Value, C.Value, D.Value)> {
        await a.combine(b, c, d)
    }

    /// Returns the newest values of the five streams, together, whenever one of them changes.
    ///
    ///     a                             1──────2─────────────
    ///     b                             a────────────────────
    ///     c                             T────────────────────
    ///     d                             x────────────────────
    ///     e                             5─────────────z──────
    ///     combineLatest(a, b, c, d, e)  1aTx5──2aTx5──2aTxz──
    ///
    /// It begins and handles diamonds like ``Stream/combineLatest(_:)``.
    public static func combineLatest<A: Stream, B: Stream, C: Stream, D: Stream, E: Stream>(
        _ a: A, _ b: B, _ c: C, _ d: D, _ e: E
    ) async -> Streams.Derived<(A.Value, B.Value, C.Value, D.Value, E.Value)> {
        await a.combine(b, c, d, e)
    }

    /// Returns the newest values of the six streams, together, whenever one of them changes.
    ///
    ///     a                                1───────2───────────────
    ///     b                                a───────────────────────
    ///     c                                T───────────────────────
    ///     d                                x───────────────────────
    ///     e                                5───────────────────────
    ///     f                                y───────────────z───────
    ///     combineLatest(a, b, c, d, e, f)  1aTx5y──2aTx5y──2aTx5z──
    ///
    /// It begins and handles diamonds like ``Stream/combineLatest(_:)``.
    public static func combineLatest<A: Stream, B: Stream, C: Stream, D: Stream, E: Stream, F: Stream>(
        _ a: A, _ b: B, _ c: C, _ d: D, _ e: E, _ f: F
    ) async -> Streams.Derived<(A.Value, B.Value, C.Value, D.Value, E.Value, F.Value)> {
        await a.combine(b, c, d, e, f)
    }

    /// Returns the newest values of the seven streams, together, whenever one of them changes.
    ///
    ///     a                                   1────────2─────────────────
    ///     b                                   a──────────────────────────
    ///     c                                   T──────────────────────────
    ///     d                                   x──────────────────────────
    ///     e                                   5──────────────────────────
    ///     f                                   y──────────────────────────
    ///     g                                   9─────────────────z────────
    ///     combineLatest(a, b, c, d, e, f, g)  1aTx5y9──2aTx5y9──2aTx5yz──
    ///
    /// It begins and handles diamonds like ``Stream/combineLatest(_:)``.
    public static func combineLatest<A: Stream, B: Stream, C: Stream, D: Stream, E: Stream, F: Stream, G: Stream>(
        _ a: A, _ b: B, _ c: C, _ d: D, _ e: E, _ f: F, _ g: G
    ) async -> Streams.Derived<(A.Value, B.Value, C.Value, D.Value, E.Value, F.Value, G.Value)> {
        await a.combine(b, c, d, e, f, g)
    }
}
