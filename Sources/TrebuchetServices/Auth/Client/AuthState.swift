/// Who is signed in, as far as is known.
public enum AuthState: Sendable, Hashable {
    /// There is a session from before, and the server has not said yet whether it goes on.
    case loading
    /// Nobody.
    case unauthenticated
    /// Somebody whom nobody can be again without the session: there is no address and no provider for it.
    case guest(User)
    /// Somebody who can come back: by a code to the address, or by a provider.
    case authenticated(User)

    /// The state of somebody who is signed in: a guest has no address.
    public init(_ user: User) { self = user.isGuest ? .guest(user) : .authenticated(user) }

    /// Nil for nobody, and while that is not known yet.
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
    /// Whether there is a user who is lost with the session.
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
