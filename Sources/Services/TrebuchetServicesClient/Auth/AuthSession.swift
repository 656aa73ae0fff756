public import SharedState

/// The signed-in user at a backend, and the status of the last auth operation.
///
///     @Shared(.trebuchetAuth) var auth: AuthSession
public struct AuthSession: Sendable {
    /// The sign-in state; the backend updates it.
    public var state: AuthState
    /// The reason why a session ended elsewhere. Until the next sign-in, for example as a guest, calls over the existing
    /// connection fail with `unauthenticated`. The backend updates it.
    public internal(set) var sessionEnd: SessionEndReason?
    /// The status of the last operation: sign-in, sign-out, or a change of the account.
    public var operationStatus: OperationStatus
    /// The error of the last operation; it stays until a success or `reset()`.
    public var error: (any Error)?

    /// Creates a session for previews and tests. The session of a backend comes from `.trebuchetAuth`.
    public init(
        state: AuthState = .loading, operationStatus: OperationStatus = .idle, error: (any Error)? = nil
    ) {
        self.state = state
        self.operationStatus = operationStatus
        self.error = error
    }

    /// True while an operation is in progress.
    public var isLoading: Bool { operationStatus == .pending }
    /// True when the last operation failed.
    public var isError: Bool { error != nil }
    /// True when the last operation succeeded.
    public var isSuccess: Bool { operationStatus == .success }
    /// True when there has been no operation since the start or `reset()`.
    public var isIdle: Bool { operationStatus == .idle }

    /// The signed-in user, which may be a guest; nil without one, and while the state is loading.
    public var user: User? { state.user }
    /// True with a signed-in user, which may be a guest.
    public var isSignedIn: Bool { state.isSignedIn }
    /// True with a user that can sign in again: by a code to the address, or by a provider.
    public var isAuthenticated: Bool { state.isAuthenticated }
    /// True with a guest, which is lost with the session.
    public var isGuest: Bool { state.isGuest }
}

extension AuthSession: Equatable {
    /// Errors are equal when their types and descriptions are.
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
