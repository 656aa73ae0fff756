internal import Synchronization
internal import Trebuchet

/// The connections of each session. They lose their authorization when the session ends.
final class SessionConnections: Sendable {
    private struct State {
        /// The session of each connection that was ever signed in, until the connection closes.
        var sessions: [CallerConnection: String?] = [:]
        var connections: [String: Set<CallerConnection>] = [:]
        var ended: RecentSessionCache<SessionEndReason>
        /// The principals of sessions that have changed.
        var principals: RecentSessionCache<Principal>
        /// Changes up to this time may be unknown here: they were evicted, or never received.
        var horizon = Int64.min

        mutating func remove(_ connection: CallerConnection) {
            guard let session = sessions[connection] ?? nil else { return }
            sessions[connection] = .some(nil)
            connections[session]?.remove(connection)
            if connections[session]?.isEmpty == true { connections[session] = nil }
        }

        /// Raises the horizon to the time of evicted changes.
        mutating func raiseHorizon(to time: Int64?) {
            if let time { horizon = max(horizon, time) }
        }
    }

    private let state: Mutex<State>

    /// - Parameter limit: the maximum number of remembered ends, and of remembered changes.
    init(limit: Int = 10_000) {
        state = Mutex(
            State(ended: RecentSessionCache(capacity: limit), principals: RecentSessionCache(capacity: limit)))
    }

    /// The number of signed-in connections.
    var count: Int { state.withLock { $0.connections.values.reduce(0) { $0 + $1.count } } }

    /// Registers a connection that was admitted with a token.
    func addConnection(_ connection: CallerConnection) {
        guard let principal = connection.principal, let session = principal.claims["session"] else { return }
        // The principal was read a moment before and may have changed since.
        signIn(connection, session: session) { $0.principals[session]?.value ?? principal }
    }

    /// Signs a connection in to a session. When the session has ended meanwhile, the connection loses its authorization.
    ///
    /// - Parameter number: the number of the account change from which the principal was read.
    func signIn(_ connection: CallerConnection, _ principal: Principal, session: String, at number: UInt64 = 0) {
        signIn(connection, session: session) { state in
            if let known = state.principals[session], known.number > number { known.value } else { principal }
        }
    }

    private func signIn(_ connection: CallerConnection, session: String, as newest: (State) -> Principal) {
        let isNew = state.withLock { state in
            let isNew = state.sessions[connection] == nil
            state.remove(connection)
            if let end = state.ended[session]?.value {
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
                state.remove(connection)
                state.sessions[connection] = nil
            }
        }
    }

    /// Makes a connection anonymous at the request of its client.
    func signOut(_ connection: CallerConnection) {
        state.withLock { state in
            state.remove(connection)
            connection.principal = nil
        }
    }

    /// Revokes the authorization of a session's connections, and of connections that would still be added.
    ///
    /// - Parameter time: the time of the end, in milliseconds.
    /// - Returns: the connections.
    @discardableResult
    func endSession(_ session: String, because end: SessionEndReason, at time: Int64 = 0) -> Set<CallerConnection> {
        state.withLock { state in
            let connections = state.connections[session] ?? []
            for connection in connections {
                state.remove(connection)
                // Within the lock, before the connection can be signed in again.
                Self.revoke(connection, end)
            }
            state.raiseHorizon(to: state.ended.set(session, to: end, number: 0, at: time))
            return connections
        }
    }

    /// Ends sessions, and returns when none of their connections begins a call any more.
    func endSessions(_ sessions: [String], because end: SessionEndReason, at time: Int64) async {
        var revoked: Set<CallerConnection> = []
        for session in sessions { revoked.formUnion(endSession(session, because: end, at: time)) }
        // At once: the account's turn lasts as long as one busy reactor, however many connections its sessions have.
        await withTaskGroup(of: Void.self) { group in
            for connection in revoked { group.addTask { await connection.authorizationApplied() } }
        }
    }

    /// Changes the principal of a session's connections, unless a later change is known.
    ///
    /// - Parameters:
    ///   - number: the number of the account change.
    ///   - time: the time of the change, in milliseconds.
    func update(_ session: String, to principal: Principal, number: UInt64 = 0, at time: Int64 = 0) {
        state.withLock { state in
            if let known = state.principals[session], known.number > number { return }
            state.raiseHorizon(to: state.principals.set(session, to: principal, number: number, at: time))
            for connection in state.connections[session] ?? [] { connection.principal = principal }
        }
    }

    // MARK: Sessions of other nodes

    /// Declares that changes up to this time may be unknown here.
    func discardRecords(before time: Int64) { state.withLock { $0.raiseHorizon(to: time) } }

    /// Declares that changes up to this time may be unknown here, and discards the changed principals: they are read again from
    /// now on.
    func reset(at time: Int64) {
        state.withLock { state in
            state.raiseHorizon(to: time)
            state.principals = RecentSessionCache(capacity: state.principals.capacity)
        }
    }

    /// True when all changes since the start are known.
    var hasCompleteHistory: Bool { state.withLock { $0.horizon == .min } }

    /// Returns the known state of a session, without a read.
    ///
    /// - Parameter issued: the time at which the session was known to be valid, in milliseconds.
    func validity(of session: String, since issued: Int64) -> SessionValidity {
        state.withLock { state in
            if let end = state.ended[session]?.value { return .ended(end) }
            if issued <= state.horizon { return .unknown }
            return .valid(as: state.principals[session]?.value)
        }
    }

    /// The sessions with signed-in connections.
    var sessions: [String] { state.withLock { Array($0.connections.keys) } }

    func count(of session: String) -> Int { state.withLock { $0.connections[session]?.count ?? 0 } }

    /// Returns the reason for a recent session end.
    func reason(_ session: String) -> SessionEndReason { state.withLock { $0.ended[session]?.value ?? .unknown } }

    private static func revoke(_ connection: CallerConnection, _ end: SessionEndReason) {
        connection.revokeAccess("the session has ended: \(end); sign in again", except: AuthService.name)
    }
}

/// The state of a session, as a node knows it.
enum SessionValidity: Equatable {
    case ended(SessionEndReason)
    /// The session is valid with this changed principal; nil for the principal of the token.
    case valid(as: Principal?)
    /// The session must be read.
    case unknown
}

/// Recent changes of sessions. They apply to connections that were being admitted meanwhile, and give clients the reason for a
/// session end.
private struct RecentSessionCache<Value> {
    struct KnownSession {
        let value: Value
        let number: UInt64
        let time: Int64
    }

    let capacity: Int
    private var entries: [String: KnownSession] = [:]
    /// The sessions, oldest first, from index `first` on.
    private var order: [String] = []
    private var first = 0

    init(capacity: Int) { self.capacity = capacity }

    subscript(session: String) -> KnownSession? { entries[session] }

    /// Sets the value of a session.
    ///
    /// - Returns: the time of the evicted entry, or nil.
    mutating func set(_ session: String, to value: Value, number: UInt64, at time: Int64) -> Int64? {
        guard entries.updateValue(KnownSession(value: value, number: number, time: time), forKey: session) == nil else {
            return nil
        }
        order.append(session)
        guard entries.count > capacity else { return nil }
        let removed = entries.removeValue(forKey: order[first])
        first += 1
        if first >= capacity {
            order.removeFirst(first)
            first = 0
        }
        return removed?.time
    }
}
