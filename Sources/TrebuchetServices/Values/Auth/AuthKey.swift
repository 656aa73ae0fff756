internal import Relays
public import SharedState

/// The session at a backend; see ``SharedState/SharedReaderKey/trebuchetAuth``.
public struct AuthKey: SharedKey {
    /// The backend.
    public struct ID: Hashable, Sendable {
        let backend: ObjectIdentifier?
    }

    let backend: TrebuchetBackend?

    /// One session for each backend, whoever shows it.
    public var id: ID { ID(backend: backend.map { ObjectIdentifier($0) }) }

    /// Who is signed in at this moment; asks nobody. Throws `AuthError.withoutBackend` where there is no backend.
    public func load(context: LoadContext<AuthSession>, continuation: LoadContinuation<AuthSession>) {
        guard let session = backend?.session else { return continuation.resume(throwing: AuthError.withoutBackend) }
        var value = AuthSession()
        session.states.currentValue.show(in: &value)
        continuation.resume(returning: value)
    }

    /// Connects the backend if nothing has, and shows each change of the session, also one that the server makes.
    public func subscribe(
        context: LoadContext<AuthSession>, subscriber: SharedSubscriber<AuthSession>
    ) -> SharedSubscription {
        guard let backend else { return SharedSubscription() }
        backend.connect()
        let session = backend.session
        let task = Task {
            var failure = session.loadFailure
            for await _ in session.states.stream {
                // Looked at while the value is changed, it never goes back behind what an operation has set.
                subscriber.update { session.states.currentValue.show(in: &$0) }
                if let error = failure.take() { subscriber.yield(throwing: error) }
            }
        }
        return SharedSubscription { task.cancel() }
    }

    /// The state comes from the backend, and operations change it there.
    public func save(_ value: AuthSession, context: SaveContext, continuation: SaveContinuation) {
        continuation.resume()
    }
}

extension SharedReaderKey where Self == AuthKey.Default {
    /// Who is signed in at the ``TrebuchetBackend`` that is current when the shared value is made.
    ///
    /// Its first use connects the backend and restores the session from before, if one is kept.
    public static var trebuchetAuth: Self {
        let backend = TrebuchetBackend.current
        return Self[
            AuthKey(backend: backend), default: AuthSession(state: backend == nil ? .unauthenticated : .loading)]
    }

    /// The same as ``trebuchetAuth``.
    public static var instantAuth: Self { trebuchetAuth }
}
