internal import Relays
public import SharedState
public import Transports
internal import Trebuchet

/// How a backend stands with its server, and who it is there.
public enum BackendConnection: Sendable, Hashable {
    /// There is no connection, and none is being made: nothing has used the backend yet, or its client was closed.
    case disconnected
    /// There is no connection, and one is being made.
    case connecting
    /// There is a connection, and nobody is signed in.
    case connected
    /// There is a connection, and somebody is signed in, perhaps as a guest.
    case authenticated(User)
    /// There is no connection because of this; when `isRetrying`, another attempt is under way or waited for.
    case error(ConnectionError)

    /// Why there is no connection.
    public struct ConnectionError: Error, Sendable, Hashable, CustomStringConvertible {
        /// What kind of failure it was.
        public let code: TransportError.Code
        /// What happened, in words for a log.
        public let message: String
        /// Whether another attempt is under way or waited for; without one, the app has to connect again.
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

/// The connection of a backend; see ``SharedState/SharedReaderKey/trebuchetConnection``.
public struct BackendConnectionKey: SharedReaderKey {
    let backend: TrebuchetBackend?

    /// One connection for each backend, whoever shows it.
    public var id: AuthKey.ID { AuthKey(backend: backend).id }

    /// How it stands at this moment; waits for nothing. Throws `AuthError.withoutBackend` where there is no backend.
    public func load(context: LoadContext<BackendConnection>, continuation: LoadContinuation<BackendConnection>) {
        guard let backend else { return continuation.resume(throwing: AuthError.withoutBackend) }
        continuation.resume(returning: backend.connection)
    }

    /// Connects the backend if nothing has, and shows each change of its connection and of who is signed in.
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
    /// How the ``TrebuchetBackend`` that is current when the shared value is made stands with its server. Its first use
    /// connects the backend.
    public static var trebuchetConnection: Self {
        Self[BackendConnectionKey(backend: .current), default: .disconnected]
    }

    /// The same as ``trebuchetConnection``.
    public static var instantConnection: Self { trebuchetConnection }
}
