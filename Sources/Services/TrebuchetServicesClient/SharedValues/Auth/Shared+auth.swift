internal import Relays
public import SharedState

/// Signing in and out.
///
/// Each operation has two forms. The form with callbacks returns at once. It calls `onAttempt` first, then one of `onSuccess`
/// and `onError`, and last `onSettled`, each exactly once and on the main actor; the value shows the outcome by then. The
/// `async` form returns or throws the outcome; cancelling its task cancels the operation.
///
/// Errors are an ``AuthError``, or a `TrebuchetError` when the server could not be reached.
@MainActor
extension Shared where Value == AuthSession {
    /// Signs in as a guest. A signed-in guest stays the same user.
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

    /// Signs in as a guest. A signed-in guest stays the same user.
    @discardableResult
    public func signInAsGuest() async throws -> User {
        try await perform(.auth) { try await signingIn { try await $0.signInAsGuest() } }
    }

    /// Sends a code of six digits to a mail address, for ``verifyMagicCode(email:code:)``. The response is the same whether or
    /// not an account has the address.
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

    /// Sends a code of six digits to a mail address, for ``verifyMagicCode(email:code:)``. The response is the same whether or
    /// not an account has the address.
    @discardableResult
    public func sendMagicCode(to email: String) async throws -> SendMagicCodeResponse {
        try await perform(.auth) { try await backend().session.sendMagicCode(to: email) }
    }

    /// Signs in with the code that was sent to an address.
    ///
    /// A guest keeps its id if no account has the address. Otherwise the user of that account is signed in, and the guest's
    /// session ends.
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
    /// A guest keeps its id if no account has the address. Otherwise the user of that account is signed in, and the guest's
    /// session ends.
    @discardableResult
    public func verifyMagicCode(email: String, code: String) async throws -> User {
        try await perform(.auth) { try await signingIn { try await $0.verifyMagicCode(email: email, code: code) } }
    }

    /// Signs in with an ID token that a provider (OpenID Connect) has issued to the app.
    ///
    /// - Parameters:
    ///   - provider: the name of the provider at the server, as `google`.
    ///   - nonce: the text that the app passed to the provider for this token; required when the token has one.
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

    /// Signs in with an ID token that a provider (OpenID Connect) has issued to the app.
    @discardableResult
    public func signIn(idToken: String, provider: String, nonce: String? = nil) async throws -> User {
        try await perform(.auth) {
            try await signingIn { try await $0.signIn(idToken: idToken, provider: provider, nonce: nonce) }
        }
    }

    /// Ends the session, here and at the server. When the server cannot be reached this fails, and the user stays signed in.
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

    /// Ends the session, here and at the server. When the server cannot be reached this fails, and the user stays signed in.
    public func signOut() async throws {
        try await perform(.auth) { try await signingIn { try await $0.signOut() } }
    }

    /// Clears the error and makes the status idle. An operation in progress continues, but its outcome is not shown there.
    public func reset() { reset(.auth) }

    /// Changes the session, and updates the value before the operation settles.
    nonisolated func signingIn<Output: Sendable>(
        _ change: (ClientSession) async throws -> Output
    ) async throws -> Output {
        let session = try backend().session
        let output = try await change(session)
        withLock { session.states.currentValue.apply(to: &$0) }
        return output
    }

    /// Returns the backend of the key, or the current one for a value without a key.
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
