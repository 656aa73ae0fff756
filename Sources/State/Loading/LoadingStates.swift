internal import Relays

/// The states of a loader: the one that is current when reading begins, then every change, in order.
///
/// All readers get the same changes. A reader more than 256 changes behind loses the oldest, never the newest. Ends
/// when the loader is freed.
public struct LoadingStates<Value: Hashable & Sendable>: AsyncSequence, Sendable {
    public typealias Element = LoadingState<Value>
    public typealias Failure = Never

    /// The maximum number of buffered changes per reader.
    static var bufferLimit: Int { 256 }

    let store: LoadingStateStore<Value>

    public func makeAsyncIterator() -> Iterator { Iterator(store) }

    /// The position of one reader among the states.
    public struct Iterator: AsyncIteratorProtocol {
        private var first: LoadingStateStore<Value>.Change?
        private var lastNumber: UInt64
        private var changes: EventSubscription<LoadingStateStore<Value>.Change>.Iterator

        init(_ store: LoadingStateStore<Value>) {
            let (newest, subscription) = store.subscribe(limit: LoadingStates.bufferLimit)
            first = newest
            lastNumber = newest.version
            changes = subscription.makeAsyncIterator()
        }

        /// Returns the next state; nil at the end or when the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> LoadingState<Value>? {
            if let change = first.take() { return change.state }
            do {
                while let change = try await changes.next(isolation: actor) {
                    guard change.version > lastNumber else { continue }
                    lastNumber = change.version
                    return change.state
                }
            } catch {
                // Only a subscription that fails on overflow throws, and this one drops.
            }
            return nil
        }
    }
}

@available(*, unavailable)
extension LoadingStates.Iterator: Sendable {}
