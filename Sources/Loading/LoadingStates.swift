internal import Relays

/// The states of a loader: the one that is current when reading begins, then every change, in order.
///
/// All readers see the same changes. One that falls more than 256 behind loses the oldest of them, never the newest.
/// Ends when the loader is freed.
public struct LoadingStates<Value: Hashable & Sendable>: AsyncSequence, Sendable {
    public typealias Element = LoadingState<Value>
    public typealias Failure = Never

    /// How many changes are kept for a reader.
    static var bufferLimit: Int { 256 }

    let store: LoadingStateStore<Value>

    public func makeAsyncIterator() -> Iterator { Iterator(store) }

    /// One reader's place among the states.
    public struct Iterator: AsyncIteratorProtocol {
        private var first: LoadingStateStore<Value>.Change?
        private var seen: UInt64
        private var changes: EventSubscription<LoadingStateStore<Value>.Change>.Iterator

        init(_ store: LoadingStateStore<Value>) {
            let (newest, subscription) = store.follow(limit: LoadingStates.bufferLimit)
            first = newest
            seen = newest.version
            changes = subscription.makeAsyncIterator()
        }

        /// The next state; nil at the end or when the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> LoadingState<Value>? {
            if let change = first.take() { return change.state }
            do {
                while let change = try await changes.next(isolation: actor) {
                    guard change.version > seen else { continue }
                    seen = change.version
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
