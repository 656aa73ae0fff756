/// The sign-in state of a client.
public enum AuthState: Sendable, Hashable {
    /// A session was restored, and the server has not confirmed it yet.
    case loading
    /// No user is signed in.
    case unauthenticated
    /// A guest: an account without an address or provider, which is lost with the session.
    case guest(User)
    /// A user that can sign in again: by a code to the address, or by a provider.
    case authenticated(User)

    /// Creates the state of a signed-in user: `guest` or `authenticated`.
    public init(_ user: User) { self = user.isGuest ? .guest(user) : .authenticated(user) }

    /// The signed-in user; nil without one, and while the state is loading.
    public var user: User? {
        switch self {
        case .loading, .unauthenticated: nil
        case .guest(let user), .authenticated(let user): user
        }
    }

    /// True with a signed-in user, which may be a guest.
    public var isSignedIn: Bool { user != nil }
    /// True with a user that is not a guest.
    public var isAuthenticated: Bool { if case .authenticated = self { true } else { false } }
    /// True with a guest, which is lost with the session.
    public var isGuest: Bool { if case .guest = self { true } else { false } }
}

/// The state and the end of a session, consistent with each other.
struct SessionStatus: Sendable, Equatable {
    let state: AuthState
    /// See ``AuthSession/sessionEnd``.
    let end: SessionEndReason?

    init(_ state: AuthState, end: SessionEndReason? = nil) {
        self.state = state
        self.end = end
    }

    /// Copies the status into a session value.
    func apply(to session: inout AuthSession) {
        session.state = state
        session.sessionEnd = end
    }
}
