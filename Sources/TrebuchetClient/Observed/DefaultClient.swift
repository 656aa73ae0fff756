internal import Observation
internal import Synchronization

/// Where `TrebuchetClient.default` is kept. Reading it is noticed by Observation.
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
            // Taken out of the lock before it is freed: that closes its connection.
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
    /// The client of each ``ObservedActor`` that is given none; for programs that have one server. Default nil.
    ///
    /// Set it before or after they are first read. One that has a client already keeps it.
    public static var `default`: TrebuchetClient? {
        get { DefaultClient.shared.client }
        set { DefaultClient.shared.client = newValue }
    }
}
