/// An object that loads a value and publishes the progress.
@MainActor
public protocol Loadable<Value>: AnyObject, Sendable {
    /// The type of the value. Values are compared, so that an unchanged state is not published again.
    associatedtype Value: Hashable & Sendable

    /// The current state, then each change.
    var state: any AsyncSequence<LoadingState<Value>, Never> { get }

    /// The newest state.
    var currentState: LoadingState<Value> { get }

    /// A Boolean value that indicates whether `cancel()` was called since the last `reset()`. If so, `load()` does nothing.
    var isCanceled: Bool { get }

    /// Stops the running load, permanently until ``reset()``.
    func cancel()

    /// Restores the initial state: stops the running load, removes its outcome and enables `load()` again.
    func reset()

    /// Loads. Returns when there is an outcome, which is then in ``currentState``.
    func load() async
}

extension Loadable {
    /// Loads, unless a load is running.
    public func loadIfNotLoading() async {
        guard !currentState.isLoading else { return }
        await load()
    }
}
