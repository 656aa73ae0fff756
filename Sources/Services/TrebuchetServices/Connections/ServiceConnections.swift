internal import Synchronization
internal import Trebuchet

/// The state of each connection that uses a service: created by its first call, removed when the connection closes.
final class ServiceConnections<ServiceConnectionState: AnyObject & Sendable>: Sendable {
    private let states = Mutex<[CallerConnection: ServiceConnectionState]>([:])

    /// The states of open connections.
    var all: [ServiceConnectionState] { states.withLock { Array($0.values) } }

    /// The number of close handlers on all known connections, from any service; for tests.
    var closeHandlerCount: Int { states.withLock { $0.keys.reduce(0) { $0 + $1.closeHandlerCount } } }

    /// Returns the state of a connection and creates it when there is none.
    ///
    /// - Parameter principalChanged: called when the connection's principal or its roles change, or its authorization is revoked.
    func state(
        of connection: CallerConnection, make: () -> ServiceConnectionState,
        principalChanged: @escaping @Sendable (ServiceConnectionState) -> Void
    ) -> ServiceConnectionState {
        let (state, isNew) = states.withLock { states in
            if let state = states[connection] { return (state, false) }
            let state = make()
            states[connection] = state
            return (state, true)
        }
        if isNew {
            connection.onClose { [weak self, weak connection] in self?.remove(connection) }
            let changed: @Sendable () -> Void = { [weak state] in if let state { principalChanged(state) } }
            connection.onPrincipalChange(changed)
            connection.onRevocation(changed)
        }
        return state
    }

    private func remove(_ connection: CallerConnection?) {
        guard let connection else { return }
        let removed = states.withLock { $0.removeValue(forKey: connection) }
        _ = removed
    }
}
