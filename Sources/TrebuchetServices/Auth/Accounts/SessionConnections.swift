internal import Synchronization
internal import Trebuchet

/// Which connections are signed in by which session, so that they lose their rights when the session ends.
final class SessionConnections: Sendable {
    private struct State {
        /// Each connection that ever was signed in, with its session, until it closes.
        var sessions: [CallerConnection: String?] = [:]
        var connections: [String: Set<CallerConnection>] = [:]
        var ended: RecentSessions<SessionEnd>
        /// Who their connections are, of those that have changed.
        var principals: RecentSessions<Principal>
        /// What happened before it may be forgotten, or was never heard of.
        var horizon = Int64.min

        mutating func leave(_ connection: CallerConnection) {
            guard let session = sessions[connection] ?? nil else { return }
            sessions[connection] = .some(nil)
            connections[session]?.remove(connection)
            if connections[session]?.isEmpty == true { connections[session] = nil }
        }

        /// Notes up to when things are forgotten.
        mutating func note(_ time: Int64?) {
            if let time { horizon = max(horizon, time) }
        }
    }

    private let state: Mutex<State>

    /// - Parameter kept: of how many sessions it is kept that they have ended or changed, each.
    init(kept: Int = 10_000) {
        state = Mutex(State(ended: RecentSessions(kept: kept), principals: RecentSessions(kept: kept)))
    }

    /// Connections that are signed in.
    var count: Int { state.withLock { $0.connections.values.reduce(0) { $0 + $1.count } } }

    /// Notes a connection that was let in with a token.
    func add(_ connection: CallerConnection) {
        guard let principal = connection.principal, let session = principal.claims["session"] else { return }
        // It was looked up a moment ago, and may have changed meanwhile.
        signIn(connection, session: session) { $0.principals[session]?.value ?? principal }
    }

    /// Makes a connection that of a session. One that has ended meanwhile leaves it without rights.
    ///
    /// - Parameter number: of the change of accounts that the principal is known from.
    func signIn(_ connection: CallerConnection, _ principal: Principal, session: String, at number: UInt64 = 0) {
        signIn(connection, session: session) { state in
            if let known = state.principals[session], known.number > number { known.value } else { principal }
        }
    }

    private func signIn(_ connection: CallerConnection, session: String, as newest: (State) -> Principal) {
        let isNew = state.withLock { state in
            let isNew = state.sessions[connection] == nil
            state.leave(connection)
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
    ///
    /// - Parameter time: when that was, in milliseconds.
    func end(_ session: String, because end: SessionEnd, at time: Int64 = 0) {
        state.withLock { state in
            for connection in state.connections[session] ?? [] {
                state.leave(connection)
                // Before anybody can sign it in again.
                Self.revoke(connection, end)
            }
            state.note(state.ended.set(session, to: end, number: 0, at: time))
        }
    }

    /// Who the connections of a session are from now on, unless a later change is known of.
    ///
    /// - Parameters:
    ///   - number: of the change of accounts.
    ///   - time: when that was, in milliseconds.
    func update(_ session: String, to principal: Principal, number: UInt64 = 0, at time: Int64 = 0) {
        state.withLock { state in
            if let known = state.principals[session], known.number > number { return }
            state.note(state.principals.set(session, to: principal, number: number, at: time))
            for connection in state.connections[session] ?? [] { connection.principal = principal }
        }
    }

    // MARK: What is known of sessions of other nodes

    /// What happened up to this time may not be known here.
    func forgetsWhatWas(before time: Int64) { state.withLock { $0.note(time) } }

    /// The same, and who somebody has become is not known either: it is looked up from now on.
    func beginAnew(at time: Int64) {
        state.withLock { state in
            state.note(time)
            state.principals = RecentSessions(kept: state.principals.kept)
        }
    }

    /// Whether all that has happened is known.
    var remembersAll: Bool { state.withLock { $0.horizon == .min } }

    /// What is known of a session without asking for it.
    ///
    /// - Parameter issued: when somebody was told that it goes on, in milliseconds.
    func standing(of session: String, since issued: Int64) -> SessionStanding {
        state.withLock { state in
            if let end = state.ended[session]?.value { return .ended(end) }
            if issued <= state.horizon { return .unknown }
            return .goesOn(as: state.principals[session]?.value)
        }
    }

    /// Those that connections are signed in by.
    var sessions: [String] { state.withLock { Array($0.connections.keys) } }

    func count(of session: String) -> Int { state.withLock { $0.connections[session]?.count ?? 0 } }

    /// Why a session has ended, if that was of late.
    func reason(_ session: String) -> SessionEnd { state.withLock { $0.ended[session]?.value ?? .unknown } }

    private static func revoke(_ connection: CallerConnection, _ end: SessionEnd) {
        connection.revoke("the session has ended: \(end); sign in again", except: AuthService.name)
    }
}

/// What a node knows of a session.
enum SessionStanding: Equatable {
    case ended(SessionEnd)
    /// Somebody has changed since; nil for whom the token says.
    case goesOn(as: Principal?)
    /// It has to be looked up.
    case unknown
}

/// What is known of sessions of late: a connection that was being let in meanwhile is treated by that, and a client that asks why
/// its session has ended is told.
private struct RecentSessions<Value> {
    struct Note {
        let value: Value
        let number: UInt64
        let time: Int64
    }

    let kept: Int
    private var notes: [String: Note] = [:]
    /// The oldest first, from `first` on.
    private var order: [String] = []
    private var first = 0

    init(kept: Int) { self.kept = kept }

    subscript(session: String) -> Note? { notes[session] }

    /// Notes what is true of a session from now on.
    ///
    /// - Returns: the time of what had to go for it.
    mutating func set(_ session: String, to value: Value, number: UInt64, at time: Int64) -> Int64? {
        guard notes.updateValue(Note(value: value, number: number, time: time), forKey: session) == nil else {
            return nil
        }
        order.append(session)
        guard notes.count > kept else { return nil }
        let gone = notes.removeValue(forKey: order[first])
        first += 1
        if first >= kept {
            order.removeFirst(first)
            first = 0
        }
        return gone?.time
    }
}
