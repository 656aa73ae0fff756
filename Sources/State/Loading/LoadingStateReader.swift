/// A source that notifies followers of each change of a loader's state.
@MainActor
protocol LoadingStateSource<Value>: AnyObject {
    associatedtype Value: Hashable & Sendable

    /// Calls `observer` on each change. Returns the argument for ``removeObserver(_:)``.
    func addObserver(_ observer: @escaping (LoadingState<Value>) -> Void) -> UInt64
    func removeObserver(_ number: UInt64)
}

extension BaseLoadable: LoadingStateSource {}

/// Reads the states of a loader without follower support, once for all followers.
///
/// Reads once, until its release: the states of such a loader may be a single stream, which ends for good with the
/// first cancelled reader, and gives two readers half of the states each.
final class LoadingStateReader<Value: Hashable & Sendable>: LoadingStateSource {
    private var observers: [UInt64: (LoadingState<Value>) -> Void] = [:]
    private var lastObserver: UInt64 = 0
    private var task: Task<Void, Never>?

    init(_ loader: some Loadable<Value>) {
        let states = loader.state
        task = Task { [weak self] in
            for await state in states { self?.notifyObservers(of: state) }
        }
    }

    deinit { task?.cancel() }

    func addObserver(_ observer: @escaping (LoadingState<Value>) -> Void) -> UInt64 {
        lastObserver += 1
        observers[lastObserver] = observer
        return lastObserver
    }

    func removeObserver(_ number: UInt64) { observers[number] = nil }

    private func notifyObservers(of state: LoadingState<Value>) {
        for observer in observers.values { observer(state) }
    }
}
