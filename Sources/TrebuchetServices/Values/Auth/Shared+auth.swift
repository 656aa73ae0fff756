internal import Relays
public import SharedState

/// Signing in and out.
///
/// Each operation comes in two forms. With callbacks it returns at once: `onAttempt` is called meanwhile, then comes one of
/// `onSuccess` and `onError`, and last `onSettled`, each exactly once and on the main actor; what it came to is in the value
/// by then. The `async` form returns or throws that; cancelling its task cancels the operation.
///
/// Errors are an ``AuthError``, or a `TrebuchetError` when the server could not be asked.
@MainActor
extension Shared where Value == AuthSession {
    /// Signs in as a guest. A guest who is signed in already stays the same user.
    @discardableResult
    public func signInAsGuest(
        onAttempt: (@MainActor () -> Void)? = nil,
        onSuccess: (@MainActor (User) -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<User, any Error>) -> Void)? = nil
    ) -> OperationCall<User> {
        start(.auth, onAttempt: onAttempt, onSuccess: onSuccess, onError: onError, onSettled: onSettled) {
            try await signingIn { try await $0.signInAsGuest() }
        }
    }

    /// Signs in as a guest. A guest who is signed in already stays the same user.
    @discardableResult
    public func signInAsGuest() async throws -> User {
        try await perform(.auth) { try await signingIn { try await $0.signInAsGuest() } }
    }

    /// Has a code of six digits sent to a mail address, for ``verifyMagicCode(email:code:)``. The answer is the same
    /// whether or not somebody has signed in with the address before.
    @discardableResult
    public func sendMagicCode(
        to email: String,
        onAttempt: (@MainActor () -> Void)? = nil,
        onSuccess: (@MainActor (SendMagicCodeResponse) -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<SendMagicCodeResponse, any Error>) -> Void)? = nil
    ) -> OperationCall<SendMagicCodeResponse> {
        start(.auth, onAttempt: onAttempt, onSuccess: onSuccess, onError: onError, onSettled: onSettled) {
            try await backend().session.sendMagicCode(to: email)
        }
    }

    /// Has a code of six digits sent to a mail address, for ``verifyMagicCode(email:code:)``. The answer is the same
    /// whether or not somebody has signed in with the address before.
    @discardableResult
    public func sendMagicCode(to email: String) async throws -> SendMagicCodeResponse {
        try await perform(.auth) { try await backend().session.sendMagicCode(to: email) }
    }

    /// Signs in with the code that was sent to an address.
    ///
    /// A guest keeps the id if nobody has signed in with the address before. Otherwise it is that other user who is signed
    /// in now, and the guest is given up.
    @discardableResult
    public func verifyMagicCode(
        email: String,
        code: String,
        onAttempt: (@MainActor () -> Void)? = nil,
        onSuccess: (@MainActor (User) -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<User, any Error>) -> Void)? = nil
    ) -> OperationCall<User> {
        start(.auth, onAttempt: onAttempt, onSuccess: onSuccess, onError: onError, onSettled: onSettled) {
            try await signingIn { try await $0.verifyMagicCode(email: email, code: code) }
        }
    }

    /// Signs in with the code that was sent to an address.
    ///
    /// A guest keeps the id if nobody has signed in with the address before. Otherwise it is that other user who is signed
    /// in now, and the guest is given up.
    @discardableResult
    public func verifyMagicCode(email: String, code: String) async throws -> User {
        try await perform(.auth) { try await signingIn { try await $0.verifyMagicCode(email: email, code: code) } }
    }

    /// Signs in with an ID token that a provider (OpenID Connect) has given to the app.
    ///
    /// - Parameters:
    ///   - provider: its name at the server, as `google`.
    ///   - nonce: what was given to the provider for this token; required when the token has one.
    @discardableResult
    public func signIn(
        idToken: String,
        provider: String,
        nonce: String? = nil,
        onAttempt: (@MainActor () -> Void)? = nil,
        onSuccess: (@MainActor (User) -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<User, any Error>) -> Void)? = nil
    ) -> OperationCall<User> {
        start(.auth, onAttempt: onAttempt, onSuccess: onSuccess, onError: onError, onSettled: onSettled) {
            try await signingIn { try await $0.signIn(idToken: idToken, provider: provider, nonce: nonce) }
        }
    }

    /// Signs in with an ID token that a provider (OpenID Connect) has given to the app.
    @discardableResult
    public func signIn(idToken: String, provider: String, nonce: String? = nil) async throws -> User {
        try await perform(.auth) {
            try await signingIn { try await $0.signIn(idToken: idToken, provider: provider, nonce: nonce) }
        }
    }

    /// Ends the session, here and at the server. When the server cannot be asked this fails, and the user stays signed in.
    @discardableResult
    public func signOut(
        onAttempt: (@MainActor () -> Void)? = nil,
        onSuccess: (@MainActor () -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Void, any Error>) -> Void)? = nil
    ) -> OperationCall<Void> {
        start(.auth, onAttempt: onAttempt, onSuccess: { _ in onSuccess?() }, onError: onError, onSettled: onSettled) {
            try await signingIn { try await $0.signOut() }
        }
    }

    /// Ends the session, here and at the server. When the server cannot be asked this fails, and the user stays signed in.
    public func signOut() async throws {
        try await perform(.auth) { try await signingIn { try await $0.signOut() } }
    }

    /// Clears the error and makes the status idle. An operation under way goes on, and shows nothing more in them.
    public func reset() { reset(.auth) }

    /// Changes who is signed in, and sees to it that the value shows it before the operation settles.
    nonisolated func signingIn<Output: Sendable>(
        _ change: (SessionKeeper) async throws -> Output
    ) async throws -> Output {
        let session = try backend().session
        let output = try await change(session)
        withLock { session.states.currentValue.show(in: &$0) }
        return output
    }

    /// The backend of the key; of a value without one, the current.
    nonisolated func backend() throws -> TrebuchetBackend {
        guard let backend = (key as? AuthKey)?.backend ?? TrebuchetBackend.current else {
            throw AuthError.withoutBackend
        }
        return backend
    }
}

extension OperationSlot where Value == AuthSession {
    static let auth = OperationSlot(status: \.operationStatus, error: \.error)
}
