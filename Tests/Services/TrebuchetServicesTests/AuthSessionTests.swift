import SharedState
import Testing
import TrebuchetServices

@Suite struct AuthSessionTests {
    private static let guest = User(id: "1")
    private static let ada = User(id: "2", email: "ada@b.c")

    @Test(
        "a state reports whether a user is signed in, and as what",
        arguments: [
            (AuthState.loading, nil, false, false, false), (.unauthenticated, nil, false, false, false),
            (.guest(guest), guest, true, false, true), (.authenticated(ada), ada, true, true, false),
        ])
    func states(_ state: AuthState, user: User?, isSignedIn: Bool, isAuthenticated: Bool, isGuest: Bool) {
        let session = AuthSession(state: state)
        #expect(session.user == user)
        #expect(session.isSignedIn == isSignedIn)
        #expect(session.isAuthenticated == isAuthenticated)
        #expect(session.isGuest == isGuest)
        if let user { #expect(AuthState(user) == state) }
    }

    @Test(
        "a session reports its operation's status; an error stays during the next attempt",
        arguments: OperationStatus.allCases)
    func operation(_ status: OperationStatus) {
        var session = AuthSession(operationStatus: status)
        #expect(session.isLoading == (status == .pending))
        #expect(session.isSuccess == (status == .success))
        #expect(session.isIdle == (status == .idle))
        #expect(!session.isError)
        session.error = AuthError.noCode
        #expect(session.isError)
    }

    @Test("sessions are equal when their states, statuses, and the kinds and texts of their errors are")
    func equality() {
        let session = AuthSession(state: .guest(Self.guest), operationStatus: .error, error: AuthError.noCode)
        #expect(session == session)
        for change: (inout AuthSession) -> Void in [
            { $0.state = .unauthenticated }, { $0.operationStatus = .idle }, { $0.error = nil },
            { $0.error = AuthError.invalidAddress }, { $0.error = Other.noCode },
        ] {
            var other = session
            change(&other)
            #expect(other != session)
        }
    }

    private enum Other: Error, CustomStringConvertible {
        case noCode
        var description: String { AuthError.noCode.description }
    }
}
