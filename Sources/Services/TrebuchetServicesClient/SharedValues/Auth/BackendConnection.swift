internal import Relays
public import SharedState
public import Transports
internal import TrebuchetClient

/// The state of a backend's connection, with the signed-in user.
public enum BackendConnection: Sendable, Hashable {
    /// There is no connection, and no attempt: the backend is unused so far, or its client was closed.
    case disconnected
    /// A connection attempt is in progress.
    case connecting
    /// There is a connection without a signed-in user.
    case connected
    /// There is a connection with a signed-in user, perhaps a guest.
    case authenticated(User)
    /// There is no connection because of this error; with `isRetrying`, another attempt is in progress or scheduled.
    case error(ConnectionError)

    /// The reason for a missing connection.
    public struct ConnectionError: Error, Sendable, Hashable, CustomStringConvertible {
        /// The kind of failure.
        public let code: TransportError.Code
        /// The description of the failure, for a log.
        public let message: String
        /// True when another attempt is in progress or scheduled; otherwise the app must connect again.
        public let isRetrying: Bool

        public var description: String { message }

        init(_ error: TransportError, isRetrying: Bool) {
            code = error.code
            message = error.message
            self.isRetrying = isRetrying
        }
    }

    init(_ connection: TrebuchetClient.ConnectionState, _ auth: AuthState) {
        switch connection {
        case .connecting(_, let error?): self = .error(ConnectionError(error, isRetrying: true))
        case .connecting(_, nil): self = .connecting
        case .connected, .draining: self = auth.user.map { .authenticated($0) } ?? .connected
        case .disconnected(let error?): self = .error(ConnectionError(error, isRetrying: false))
        case .disconnected(nil), .closed: self = .disconnected
        }
    }
}

/// The key of a backend's connection; see ``SharedState/SharedReaderKey/trebuchetConnection``.
public struct BackendConnectionKey: SharedReaderKey {
    let backend: TrebuchetBackend?

    /// The identity: all values of a backend share one connection state.
    public var id: AuthKey.ID { AuthKey(backend: backend).id }

    /// Returns the current state without a wait. Throws `AuthError.withoutBackend` without a backend.
    public func load(context: LoadContext<BackendConnection>, continuation: LoadContinuation<BackendConnection>) {
        guard let backend else { return continuation.resume(throwing: AuthError.withoutBackend) }
        continuation.resume(returning: backend.connection)
    }

    /// Connects the backend if necessary, and sends each change of its connection and its user.
    public func subscribe(
        context: LoadContext<BackendConnection>, subscriber: SharedSubscriber<BackendConnection>
    ) -> SharedSubscription {
        guard let backend else { return SharedSubscription() }
        backend.connect()
        let task = Task {
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    for await _ in backend.client.connectionState.stream {
                        subscriber.update { $0 = backend.connection }
                    }
                }
                group.addTask {
                    for await _ in backend.session.states.stream { subscriber.update { $0 = backend.connection } }
                }
            }
        }
        return SharedSubscription { task.cancel() }
    }
}

extension TrebuchetBackend {
    fileprivate var connection: BackendConnection {
        BackendConnection(client.connectionState.currentValue, session.states.currentValue.state)
    }
}

extension SharedReaderKey where Self == BackendConnectionKey.Default {
    /// The connection of the ``TrebuchetBackend`` that is current when the shared value is created. Its first use connects the
    /// backend.
    public static var trebuchetConnection: Self {
        Self[BackendConnectionKey(backend: .current), default: .disconnected]
    }

    /// Another name for ``trebuchetConnection``.
    public static var instantConnection: Self { trebuchetConnection }
}
