extension StateRelay {
    /// The values of a relay, newest first served; see ``StateRelay/stream``.
    public struct Stream: AsyncSequence, Sendable {
        public typealias Element = Value
        public typealias Failure = Never

        let monitor: Monitor<VersionedValue<Value>>

        public func makeAsyncIterator() -> Iterator { Iterator(monitor: monitor) }

        /// One reader's place in the stream: the version it has seen, and nothing else.
        public struct Iterator: AsyncIteratorProtocol {
            let monitor: Monitor<VersionedValue<Value>>
            private var seen: UInt64 = 0

            init(monitor: Monitor<VersionedValue<Value>>) { self.monitor = monitor }

            /// The current value if it is newer than the last one returned, else the next; nil at the end or when the
            /// task is cancelled.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> Value? {
                let step = await monitor.wait(isolation: actor) { [seen] in $0.step(after: seen) }
                guard case .value(let value, let version) = step else { return nil }
                seen = version
                return value
            }
        }
    }
}

@available(*, unavailable)
extension StateRelay.Stream.Iterator: Sendable {}
