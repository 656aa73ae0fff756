/// Something that loads a value and tells how that goes.
@MainActor
public protocol Loadable<Value>: AnyObject, Sendable {
    /// What is loaded; compared, so that what has not changed is not published again.
    associatedtype Value: Hashable & Sendable

    /// The current state, then each change of it.
    var state: any AsyncSequence<LoadingState<Value>, Never> { get }

    /// The newest state.
    var currentState: LoadingState<Value> { get }

    /// Whether `cancel()` was called since the last `reset()`: until then `load()` does nothing.
    var isCanceled: Bool { get }

    /// Stops the load under way, for good: see ``reset()``.
    func cancel()

    /// Back to the beginning: stops the load under way, forgets its outcome and makes `load()` work again.
    func reset()

    /// Loads; returns when there is an outcome, which is then in ``currentState``.
    func load() async
}

extension Loadable {
    /// Loads, unless a load is under way.
    public func loadIfNotLoading() async {
        guard !currentState.isLoading else { return }
        await load()
    }
}
