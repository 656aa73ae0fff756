extension StateRelay {
    /// The values of a relay, newest first served; see ``StateRelay/stream``.
    public struct Stream: AsyncSequence, Sendable {
        public typealias Element = Value
        public typealias Failure = Never

        @usableFromInline let monitor: Monitor<VersionedValue<Value>>
        /// Readers begin with what is newer than this version.
        @usableFromInline let start: UInt64

        @inlinable
        init(monitor: Monitor<VersionedValue<Value>>, after start: UInt64 = 0) {
            self.monitor = monitor
            self.start = start
        }

        @inlinable
        public func makeAsyncIterator() -> Iterator { Iterator(monitor: monitor, seen: start) }

        /// One reader's place in the stream: the version it has seen, and nothing else.
        public struct Iterator: AsyncIteratorProtocol {
            @usableFromInline let monitor: Monitor<VersionedValue<Value>>
            @usableFromInline var seen: UInt64

            /// That of the value returned last; before the first, the one that the stream comes after, or 0.
            @inlinable public var version: UInt64 { seen }

            @inlinable
            init(monitor: Monitor<VersionedValue<Value>>, seen: UInt64) {
                self.monitor = monitor
                self.seen = seen
            }

            /// The current value if it is newer than the last one returned, else the next; nil at the end or when the
            /// task is cancelled.
            @inlinable
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
