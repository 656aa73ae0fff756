internal import Observation
internal import Synchronization

/// The storage of `TrebuchetClient.default`. Reads are tracked by Observation.
final class DefaultClient: Observable, Sendable {
    static let shared = DefaultClient()

    private let current = Mutex<TrebuchetClient?>(nil)
    private let registrar = ObservationRegistrar()

    var client: TrebuchetClient? {
        get {
            registrar.access(self, keyPath: \.client)
            return current.withLock { $0 }
        }
        set {
            // The old client is released outside the lock, because that closes its connection.
            let replaced = current.withLock { client in
                defer { client = newValue }
                return client
            }
            registrar.withMutation(of: self, keyPath: \.client) {}
            _ = replaced
        }
    }
}

extension TrebuchetClient {
    /// The client of each ``ObservedActor`` without another; for programs with one server. Default nil.
    ///
    /// It can be set before or after their first read. An observer that has a client keeps it.
    public static var `default`: TrebuchetClient? {
        get { DefaultClient.shared.client }
        set { DefaultClient.shared.client = newValue }
    }
}
