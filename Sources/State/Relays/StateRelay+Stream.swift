extension StateRelay {
    /// The values of a relay, newest first served; see ``StateRelay/stream``.
    public struct Stream: AsyncSequence, Sendable {
        public typealias Element = Value
        public typealias Failure = Never

        @usableFromInline let monitor: Monitor<VersionedValue<Value>>
        /// The version after which readers begin.
        @usableFromInline let start: UInt64

        @inlinable
        init(monitor: Monitor<VersionedValue<Value>>, after start: UInt64 = 0) {
            self.monitor = monitor
            self.start = start
        }

        @inlinable
        public func makeAsyncIterator() -> Iterator { Iterator(monitor: monitor, lastVersion: start) }

        /// The position of one reader in the stream: only the last version it has received.
        public struct Iterator: AsyncIteratorProtocol {
            @usableFromInline let monitor: Monitor<VersionedValue<Value>>
            @usableFromInline var lastVersion: UInt64

            /// The version of the value returned last. Before the first value: the version that the stream starts
            /// after, or 0.
            @inlinable public var version: UInt64 { lastVersion }

            @inlinable
            init(monitor: Monitor<VersionedValue<Value>>, lastVersion: UInt64) {
                self.monitor = monitor
                self.lastVersion = lastVersion
            }

            /// Returns the current value if it is newer than the last one returned, else waits for the next; nil at
            /// the end or when the task is cancelled.
            @inlinable
            public mutating func next(isolation actor: isolated (any Actor)?) async -> Value? {
                let step = await monitor.wait(isolation: actor) { [lastVersion] in $0.step(after: lastVersion) }
                guard case .value(let value, let version) = step else { return nil }
                lastVersion = version
                return value
            }
        }
    }
}

@available(*, unavailable)
extension StateRelay.Stream.Iterator: Sendable {}
