internal import Synchronization

/// A message that is on its way to another node and still in this one's memory: whoever sends it has this until it has gone, and nobody
/// else keeps it.
final class Departure: Sendable {
    private let didGo = Mutex<(@Sendable () -> Void)?>(nil)

    deinit { didGo.withLock { $0 }?() }

    /// Calls `body` when it has gone.
    func onEnd(_ body: @escaping @Sendable () -> Void) { didGo.withLock { $0 = body } }
}
