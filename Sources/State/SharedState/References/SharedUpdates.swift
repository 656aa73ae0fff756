internal import Relays

/// The current value, then each newer one that the reader does not skip.
///
/// A reader may skip values but never gets one twice, or an older one after a newer one. The last value always
/// arrives. A reader does not keep the value alive: the sequence ends with the last wrapper. Updates of a part of a
/// value come with each change of the whole.
public struct SharedUpdates<Value: Sendable>: AsyncSequence, Sendable {
    public typealias Element = Value
    public typealias Failure = Never

    private let makeReader: @Sendable () -> Iterator.Reader

    init(_ newest: StateRelay<Value>.Stream) {
        makeReader = {
            var values = newest.makeAsyncIterator()
            return { actor in
                guard let value = await values.next(isolation: actor) else { return nil }
                return VersionedSnapshot(value: value, version: values.version)
            }
        }
    }

    /// Creates the updates of a part of a value.
    init<Root: Sendable>(
        _ base: SharedUpdates<Root>, _ transform: @escaping @Sendable (VersionedSnapshot<Root>) -> Value
    ) {
        makeReader = {
            let read = base.makeReader()
            return { actor in
                guard let root = await read(actor) else { return nil }
                return VersionedSnapshot(value: transform(root), version: root.version)
            }
        }
    }

    public func makeAsyncIterator() -> Iterator { Iterator(read: makeReader()) }

    /// The position of one reader among the values.
    public struct Iterator: AsyncIteratorProtocol {
        typealias Reader = (isolated (any Actor)?) async -> VersionedSnapshot<Value>?

        let read: Reader

        /// Returns the next value; nil at the end or when the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Value? { await read(actor)?.value }
    }
}

@available(*, unavailable)
extension SharedUpdates.Iterator: Sendable {}
