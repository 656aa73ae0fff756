public import SharedState

/// Who is signed in at a backend, and how the last operation on that goes.
///
///     @Shared(.trebuchetAuth) var auth: AuthSession
public struct AuthSession: Sendable {
    /// Kept up to date by the backend.
    public var state: AuthState
    /// Why nobody is signed in any more, when the session has ended elsewhere: until somebody signs in again, as a guest for
    /// instance, calls over the connection that there was fail with `unauthenticated`. Kept up to date by the backend.
    public internal(set) var sessionEnd: SessionEnd?
    /// How the last operation on the session goes: signing in or out, or a change of the account.
    public var operationStatus: OperationStatus
    /// Of the last operation; stays until a success or `reset()`.
    public var error: (any Error)?

    /// A session as it stands; for previews and tests. Those of a backend come through `.trebuchetAuth`.
    public init(
        state: AuthState = .loading, operationStatus: OperationStatus = .idle, error: (any Error)? = nil
    ) {
        self.state = state
        self.operationStatus = operationStatus
        self.error = error
    }

    /// Whether an operation is under way.
    public var isLoading: Bool { operationStatus == .pending }
    /// Whether the last operation failed.
    public var isError: Bool { error != nil }
    /// Whether the last operation succeeded.
    public var isSuccess: Bool { operationStatus == .success }
    /// Whether there has been no operation since the start or `reset()`.
    public var isIdle: Bool { operationStatus == .idle }

    /// Who is signed in, a guest among them; nil for nobody, and while that is not known yet.
    public var user: User? { state.user }
    /// Whether there is a user, guests among them.
    public var isSignedIn: Bool { state.isSignedIn }
    /// Whether there is a user who can come back: by a code to the address, or by a provider.
    public var isAuthenticated: Bool { state.isAuthenticated }
    /// Whether there is a user who is lost with the session.
    public var isGuest: Bool { state.isGuest }
}

extension AuthSession: Equatable {
    /// Errors are the same when their types are and they say the same.
    public static func == (left: Self, right: Self) -> Bool {
        left.state == right.state && left.sessionEnd == right.sessionEnd
            && left.operationStatus == right.operationStatus
            && areEqual(left.error, right.error)
    }

    private static func areEqual(_ left: (any Error)?, _ right: (any Error)?) -> Bool {
        switch (left, right) {
        case (nil, nil): true
        case (let left?, let right?): type(of: left) == type(of: right) && "\(left)" == "\(right)"
        default: false
        }
    }
}
