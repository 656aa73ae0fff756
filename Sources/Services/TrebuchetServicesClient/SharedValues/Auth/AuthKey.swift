internal import Relays
public import SharedState

/// The key of the session at a backend; see ``SharedState/SharedReaderKey/trebuchetAuth``.
public struct AuthKey: SharedKey {
    /// Identifies the backend.
    public struct ID: Hashable, Sendable {
        let backend: ObjectIdentifier?
    }

    let backend: TrebuchetBackend?

    /// The identity: all values of a backend share one session.
    public var id: ID { ID(backend: backend.map { ObjectIdentifier($0) }) }

    /// Returns the current session without a request. Throws `AuthError.withoutBackend` without a backend.
    public func load(context: LoadContext<AuthSession>, continuation: LoadContinuation<AuthSession>) {
        guard let session = backend?.session else { return continuation.resume(throwing: AuthError.withoutBackend) }
        var value = AuthSession()
        session.states.currentValue.apply(to: &value)
        continuation.resume(returning: value)
    }

    /// Connects the backend if necessary, and sends each change of the session, including those that the server makes.
    public func subscribe(
        context: LoadContext<AuthSession>, subscriber: SharedSubscriber<AuthSession>
    ) -> SharedSubscription {
        guard let backend else { return SharedSubscription() }
        backend.connect()
        let session = backend.session
        let task = Task {
            var failure = session.loadFailure
            for await _ in session.states.stream {
                // The state is read within the change of the value, so that it never replaces a newer state that an operation
                // has set.
                subscriber.update { session.states.currentValue.apply(to: &$0) }
                if let error = failure.take() { subscriber.yield(throwing: error) }
            }
        }
        return SharedSubscription { task.cancel() }
    }

    /// Does nothing: the state comes from the backend, and operations change it there.
    public func save(_ value: AuthSession, context: SaveContext, continuation: SaveContinuation) {
        continuation.resume()
    }
}

extension SharedReaderKey where Self == AuthKey.Default {
    /// The session at the ``TrebuchetBackend`` that is current when the shared value is created.
    ///
    /// Its first use connects the backend and restores the stored session, if there is one.
    public static var trebuchetAuth: Self {
        let backend = TrebuchetBackend.current
        return Self[
            AuthKey(backend: backend), default: AuthSession(state: backend == nil ? .unauthenticated : .loading)]
    }

    /// Another name for ``trebuchetAuth``.
    public static var instantAuth: Self { trebuchetAuth }
}
