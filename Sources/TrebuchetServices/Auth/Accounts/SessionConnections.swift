internal import Synchronization
internal import Trebuchet

/// Which connections are signed in by which session, so that they lose their rights when the session ends.
final class SessionConnections: Sendable {
    private struct State {
        /// Each connection that ever was signed in, with its session, until it closes.
        var sessions: [CallerConnection: String?] = [:]
        var connections: [String: Set<CallerConnection>] = [:]
        var ended = RecentSessions<SessionEnd>()
        /// Who their connections are, of those that have changed.
        var principals = RecentSessions<Principal>()

        mutating func leave(_ connection: CallerConnection) {
            guard let session = sessions[connection] ?? nil else { return }
            sessions[connection] = .some(nil)
            connections[session]?.remove(connection)
            if connections[session]?.isEmpty == true { connections[session] = nil }
        }
    }

    private let state = Mutex(State())

    /// Connections that are signed in.
    var count: Int { state.withLock { $0.connections.values.reduce(0) { $0 + $1.count } } }

    /// Notes a connection that was let in with a token.
    func add(_ connection: CallerConnection) {
        guard let principal = connection.principal, let session = principal.claims["session"] else { return }
        // It was looked up a moment ago, and may have changed meanwhile.
        signIn(connection, session: session) { $0.principals[session] ?? principal }
    }

    /// Makes a connection that of a session. One that has ended meanwhile leaves it without rights.
    func signIn(_ connection: CallerConnection, _ principal: Principal, session: String) {
        signIn(connection, session: session) { _ in principal }
    }

    private func signIn(_ connection: CallerConnection, session: String, as newest: (State) -> Principal) {
        let isNew = state.withLock { state in
            let isNew = state.sessions[connection] == nil
            state.leave(connection)
            if let end = state.ended[session] {
                Self.revoke(connection, end)
                return false
            }
            state.sessions[connection] = session
            state.connections[session, default: []].insert(connection)
            connection.principal = newest(state)
            return isNew
        }
        guard isNew else { return }
        connection.onClose { [weak self, weak connection] in
            guard let self, let connection else { return }
            state.withLock { state in
                state.leave(connection)
                state.sessions[connection] = nil
            }
        }
    }

    /// A connection goes on as nobody: its client wants to.
    func signOut(_ connection: CallerConnection) {
        state.withLock { state in
            state.leave(connection)
            connection.principal = nil
        }
    }

    /// Takes their rights from all connections of a session, and from those that would still come.
    func end(_ session: String, because end: SessionEnd) {
        state.withLock { state in
            for connection in state.connections[session] ?? [] {
                state.leave(connection)
                // Before anybody can sign it in again.
                Self.revoke(connection, end)
            }
            state.ended.set(session, to: end)
        }
    }

    /// Who the connections of a session are from now on.
    func update(_ session: String, to principal: Principal) {
        state.withLock { state in
            state.principals.set(session, to: principal)
            for connection in state.connections[session] ?? [] { connection.principal = principal }
        }
    }

    func count(of session: String) -> Int { state.withLock { $0.connections[session]?.count ?? 0 } }

    /// Why a session has ended, if that was of late.
    func reason(_ session: String) -> SessionEnd { state.withLock { $0.ended[session] ?? .unknown } }

    private static func revoke(_ connection: CallerConnection, _ end: SessionEnd) {
        connection.revoke("the session has ended: \(end); sign in again", except: AuthService.name)
    }
}

/// What is known of sessions of late: a connection that was being let in meanwhile is treated by that, and a client that asks why
/// its session has ended is told.
private struct RecentSessions<Value> {
    private static var kept: Int { 10_000 }

    private var values: [String: Value] = [:]
    /// The oldest first, from `first` on.
    private var order: [String] = []
    private var first = 0

    subscript(session: String) -> Value? { values[session] }

    /// Notes what is true of a session from now on.
    mutating func set(_ session: String, to value: Value) {
        guard values.updateValue(value, forKey: session) == nil else { return }
        order.append(session)
        guard values.count > Self.kept else { return }
        values[order[first]] = nil
        first += 1
        if first >= Self.kept {
            order.removeFirst(first)
            first = 0
        }
    }
}
