internal import Synchronization
internal import Trebuchet

/// Which connections are signed in by which session, so that they are not any more when the session ends.
final class SessionConnections: Sendable {
    private struct State {
        /// Each connection that ever was signed in, with its session, until it closes.
        var sessions: [CallerConnection: String?] = [:]
        var connections: [String: Set<CallerConnection>] = [:]
        /// Sessions that have ended of late: a connection that was being let in meanwhile is not signed in.
        var ended: [String] = []

        mutating func leave(_ connection: CallerConnection) {
            guard let session = sessions[connection] ?? nil else { return }
            sessions[connection] = .some(nil)
            connections[session]?.remove(connection)
            if connections[session]?.isEmpty == true { connections[session] = nil }
        }
    }

    private static let endedKept = 10_000

    private let state = Mutex(State())

    /// Connections that are signed in.
    var count: Int { state.withLock { $0.connections.values.reduce(0) { $0 + $1.count } } }

    /// Notes a connection that was let in with a token.
    func add(_ connection: CallerConnection) {
        guard let principal = connection.principal, let session = principal.claims["session"] else { return }
        signIn(connection, principal, session: session)
    }

    func signIn(_ connection: CallerConnection, _ principal: Principal, session: String) {
        let isNew = state.withLock { state in
            let isNew = state.sessions[connection] == nil
            state.leave(connection)
            guard !state.ended.contains(session) else {
                connection.principal = nil
                return false
            }
            connection.principal = principal
            state.sessions[connection] = session
            state.connections[session, default: []].insert(connection)
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

    /// Signs out all connections of a session, and those that would still come.
    func end(_ session: String) {
        state.withLock { state in
            for connection in state.connections[session] ?? [] {
                connection.principal = nil
                state.leave(connection)
            }
            if state.ended.count >= Self.endedKept { state.ended.removeFirst(Self.endedKept / 2) }
            state.ended.append(session)
        }
    }
}
