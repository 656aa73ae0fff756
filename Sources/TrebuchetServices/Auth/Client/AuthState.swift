/// Who is signed in, as far as is known.
public enum AuthState: Sendable, Hashable {
    /// There is a session from before, and the server has not said yet whether it goes on.
    case loading
    case unauthenticated
    case guest(User)
    case authenticated(User)

    /// The state of somebody who is signed in: a guest has no address.
    public init(_ user: User) { self = user.isGuest ? .guest(user) : .authenticated(user) }

    public var user: User? {
        switch self {
        case .loading, .unauthenticated: nil
        case .guest(let user), .authenticated(let user): user
        }
    }

    /// Whether there is a user, guests among them.
    public var isSignedIn: Bool { user != nil }
    /// Whether there is a user with an address.
    public var isAuthenticated: Bool { if case .authenticated = self { true } else { false } }
    public var isGuest: Bool { if case .guest = self { true } else { false } }
}

/// What is known of a session, all of it at one time.
struct SessionStatus: Sendable, Equatable {
    let state: AuthState
    /// See ``AuthSession/sessionEnd``.
    let end: SessionEnd?

    init(_ state: AuthState, end: SessionEnd? = nil) {
        self.state = state
        self.end = end
    }

    /// Shows it in a value.
    func show(in session: inout AuthSession) {
        session.state = state
        session.sessionEnd = end
    }
}
