extension Stream {
    /// The newest values of this stream and the other, together, whenever one of them changes.
    ///
    ///     self                ─1───────2──────
    ///     b                   ───a───b───────c
    ///     combineLatest(b)    ───1a──1b2b────2c
    ///
    /// It begins when each has a value. When one value, sent once, reaches it on several ways (a diamond), it comes out
    /// once, when all ways have been gone: never as a mixture of new and old. Where such a value is on its way already, it
    /// begins when that one is through, and returns then; inside a closure of a stream it returns at once, and begins
    /// later. There are forms for up to seven streams.
    nonisolated public func combineLatest<B: Stream>(_ b: B) async -> Streams.Derived<(Value, B.Value)> {
        await combine(b)
    }

    /// The newest values of this stream and the others, together; see ``combineLatest(_:)``.
    nonisolated public func combineLatest<B: Stream, C: Stream>(
        _ b: B, _ c: C
    ) async -> Streams.Derived<(Value, B.Value, C.Value)> {
        await combine(b, c)
    }

    /// The newest values of this stream and the others, together; see ``combineLatest(_:)``.
    nonisolated public func combineLatest<B: Stream, C: Stream, D: Stream>(
        _ b: B, _ c: C, _ d: D
    ) async -> Streams.Derived<(Value, B.Value, C.Value, D.Value)> {
        await combine(b, c, d)
    }

    /// The newest values of this stream and the others, together; see ``combineLatest(_:)``.
    nonisolated public func combineLatest<B: Stream, C: Stream, D: Stream, E: Stream>(
        _ b: B, _ c: C, _ d: D, _ e: E
    ) async -> Streams.Derived<(Value, B.Value, C.Value, D.Value, E.Value)> {
        await combine(b, c, d, e)
    }

    /// The newest values of this stream and the others, together; see ``combineLatest(_:)``.
    nonisolated public func combineLatest<B: Stream, C: Stream, D: Stream, E: Stream, F: Stream>(
        _ b: B, _ c: C, _ d: D, _ e: E, _ f: F
    ) async -> Streams.Derived<(Value, B.Value, C.Value, D.Value, E.Value, F.Value)> {
        await combine(b, c, d, e, f)
    }

    /// The newest values of this stream and the others, together; see ``combineLatest(_:)``.
    nonisolated public func combineLatest<B: Stream, C: Stream, D: Stream, E: Stream, F: Stream, G: Stream>(
        _ b: B, _ c: C, _ d: D, _ e: E, _ f: F, _ g: G
    ) async -> Streams.Derived<(Value, B.Value, C.Value, D.Value, E.Value, F.Value, G.Value)> {
        await combine(b, c, d, e, f, g)
    }
}

extension Streams {
    /// The newest values of the streams, together; see ``Stream/combineLatest(_:)``.
    public static func combineLatest<A: Stream, B: Stream>(
        _ a: A, _ b: B
    ) async -> Streams.Derived<(A.Value, B.Value)> {
        await a.combine(b)
    }

    /// The newest values of the streams, together; see ``Stream/combineLatest(_:)``.
    public static func combineLatest<A: Stream, B: Stream, C: Stream>(
        _ a: A, _ b: B, _ c: C
    ) async -> Streams.Derived<(A.Value, B.Value, C.Value)> {
        await a.combine(b, c)
    }

    /// The newest values of the streams, together; see ``Stream/combineLatest(_:)``.
    public static func combineLatest<A: Stream, B: Stream, C: Stream, D: Stream>(
        _ a: A, _ b: B, _ c: C, _ d: D
    ) async -> Streams.Derived<(A.Value, B.Value, C.Value, D.Value)> {
        await a.combine(b, c, d)
    }

    /// The newest values of the streams, together; see ``Stream/combineLatest(_:)``.
    public static func combineLatest<A: Stream, B: Stream, C: Stream, D: Stream, E: Stream>(
        _ a: A, _ b: B, _ c: C, _ d: D, _ e: E
    ) async -> Streams.Derived<(A.Value, B.Value, C.Value, D.Value, E.Value)> {
        await a.combine(b, c, d, e)
    }

    /// The newest values of the streams, together; see ``Stream/combineLatest(_:)``.
    public static func combineLatest<A: Stream, B: Stream, C: Stream, D: Stream, E: Stream, F: Stream>(
        _ a: A, _ b: B, _ c: C, _ d: D, _ e: E, _ f: F
    ) async -> Streams.Derived<(A.Value, B.Value, C.Value, D.Value, E.Value, F.Value)> {
        await a.combine(b, c, d, e, f)
    }

    /// The newest values of the streams, together; see ``Stream/combineLatest(_:)``.
    public static func combineLatest<A: Stream, B: Stream, C: Stream, D: Stream, E: Stream, F: Stream, G: Stream>(
        _ a: A, _ b: B, _ c: C, _ d: D, _ e: E, _ f: F, _ g: G
    ) async -> Streams.Derived<(A.Value, B.Value, C.Value, D.Value, E.Value, F.Value, G.Value)> {
        await a.combine(b, c, d, e, f, g)
    }
}
