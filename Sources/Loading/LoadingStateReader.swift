/// A source that notifies followers of each change of a loader's state.
@MainActor
protocol LoadingStateSource<Value>: AnyObject {
    associatedtype Value: Hashable & Sendable

    /// Calls `follower` on each change. Returns the argument for ``unfollow(_:)``.
    func follow(_ follower: @escaping (LoadingState<Value>) -> Void) -> UInt64
    func unfollow(_ number: UInt64)
}

extension BaseLoadable: LoadingStateSource {}

/// Reads the states of a loader without follower support, once for all followers.
///
/// Reads once, until its release: the states of such a loader may be a single stream, which ends for good with the
/// first cancelled reader, and gives two readers half of the states each.
final class LoadingStateReader<Value: Hashable & Sendable>: LoadingStateSource {
    private var followers: [UInt64: (LoadingState<Value>) -> Void] = [:]
    private var lastFollower: UInt64 = 0
    private var task: Task<Void, Never>?

    init(_ loader: some Loadable<Value>) {
        let states = loader.state
        task = Task { [weak self] in
            for await state in states { self?.notifyObservers(of: state) }
        }
    }

    deinit { task?.cancel() }

    func follow(_ follower: @escaping (LoadingState<Value>) -> Void) -> UInt64 {
        lastFollower += 1
        followers[lastFollower] = follower
        return lastFollower
    }

    func unfollow(_ number: UInt64) { followers[number] = nil }

    private func notifyObservers(of state: LoadingState<Value>) {
        for follower in followers.values { follower(state) }
    }
}
