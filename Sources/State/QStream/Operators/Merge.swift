extension Streams {
    /// Merges the values of several streams of the same type, in the order in which they are sent.
    ///
    ///     a       ─1───────2──
    ///     b       ───7───8────
    ///     Merge   ─1─7───8─2──
    ///
    /// The initial value is the current value of the last stream that has one.
    public actor Merge<Value: Sendable>: Stream {
        /// The outlet of the values of all streams.
        nonisolated public let outlet: Outlet<Value>
        private nonisolated let attachments: [Attachment]

        /// Merges any number of streams of any types. An empty array gives a stream that never has a value.
        public nonisolated init(_ streams: [any Stream<Value>]) async {
            let outlet = Outlet<Value>()
            let queue = SerialTaskQueue("sends into the merge that it came from")
            var attachments: [Attachment] = []
            for stream in streams { attachments += await Self.attach(stream, outlet, queue) }
            self.outlet = outlet
            self.attachments = attachments
        }

        /// Merges five or more streams of one type.
        public nonisolated init<S: Stream>(
            _ a: S, _ b: S, _ c: S, _ d: S, _ e: S, _ more: S...
        ) async where S.Value == Value {
            await self.init(([a, b, c, d, e] + more) as [any Stream<Value>])
        }

        /// Merges two streams.
        public nonisolated init<A: Stream, B: Stream>(_ a: A, _ b: B) async where A.Value == Value, B.Value == Value {
            await self.init([a, b] as [any Stream<Value>])
        }

        /// Merges three streams.
        public nonisolated init<A: Stream, B: Stream, C: Stream>(_ a: A, _ b: B, _ c: C) async
        where A.Value == Value, B.Value == Value, C.Value == Value {
            await self.init([a, b, c] as [any Stream<Value>])
        }

        /// Merges four streams.
        public nonisolated init<A: Stream, B: Stream, C: Stream, D: Stream>(_ a: A, _ b: B, _ c: C, _ d: D) async
        where A.Value == Value, B.Value == Value, C.Value == Value, D.Value == Value {
            await self.init([a, b, c, d] as [any Stream<Value>])
        }

        private static func attach(
            _ stream: some Stream<Value>, _ outlet: Outlet<Value>, _ queue: SerialTaskQueue
        ) async -> [Attachment] {
            await stream.attach(outlet) { value, wave in await queue.emit(value, from: outlet, wave) }
        }
    }
}

extension Stream {
    /// Returns the values of this stream and another, in the order in which they are sent; see ``Streams/Merge``.
    ///
    ///     self       ─1───────2──
    ///     other      ───7───8────
    ///     merge      ─1─7───8─2──
    nonisolated public func merge<Other: Stream>(_ other: Other) async -> Streams.Merge<Value>
    where Other.Value == Value {
        await Streams.Merge(self, other)
    }
}

extension Sequence where Element: Stream {
    /// Returns the values of all the streams, in the order in which they are sent; see ``Streams/Merge``.
    ///
    ///     a                ─1───────2──
    ///     b                ───7───8────
    ///     [a, b].merge()   ─1─7───8─2──
    public func merge() async -> Streams.Merge<Element.Value> {
        await Streams.Merge(map { $0 as any Stream<Element.Value> })
    }
}
