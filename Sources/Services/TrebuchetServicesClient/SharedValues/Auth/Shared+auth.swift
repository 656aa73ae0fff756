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

/// Operations on the account of the signed-in user, and its sessions. Each has the same two forms as signing in and out.
@MainActor
extension Shared where Value == AuthSession {
    /// Requests the sessions of the account, newest first.
    @discardableResult
    public func sessions(
        onAttempt: (@MainActor () -> Void)? = nil,
        onSuccess: (@MainActor ([SessionInfo]) -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<[SessionInfo], any Error>) -> Void)? = nil
    ) -> OperationCall<[SessionInfo]> {
        start(.auth, onAttempt: onAttempt, onSuccess: onSuccess, onError: onError, onSettled: onSettled) {
            try await backend().session.sessions()
        }
    }

    /// Requests the sessions of the account, newest first.
    public func sessions() async throws -> [SessionInfo] {
        try await perform(.auth) { try await backend().session.sessions() }
    }

    /// Ends a session of the account, by its `id`. Its connections lose their authorization, and their clients are notified at
    /// once.
    @discardableResult
    public func endSession(
        _ id: SessionInfo.ID,
        onAttempt: (@MainActor () -> Void)? = nil,
        onSuccess: (@MainActor () -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Void, any Error>) -> Void)? = nil
    ) -> OperationCall<Void> {
        start(.auth, onAttempt: onAttempt, onSuccess: { _ in onSuccess?() }, onError: onError, onSettled: onSettled) {
            try await backend().session.endSession(id)
        }
    }

    /// Ends a session of the account, by its `id`. Its connections lose their authorization, and their clients are notified at
    /// once.
    public func endSession(_ id: SessionInfo.ID) async throws {
        try await perform(.auth) { try await backend().session.endSession(id) }
    }

    /// Ends all sessions of the account except this one, and returns their number.
    @discardableResult
    public func endOtherSessions(
        onAttempt: (@MainActor () -> Void)? = nil,
        onSuccess: (@MainActor (Int) -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Int, any Error>) -> Void)? = nil
    ) -> OperationCall<Int> {
        start(.auth, onAttempt: onAttempt, onSuccess: onSuccess, onError: onError, onSettled: onSettled) {
            try await backend().session.endOtherSessions()
        }
    }

    /// Ends all sessions of the account except this one, and returns their number.
    @discardableResult
    public func endOtherSessions() async throws -> Int {
        try await perform(.auth) { try await backend().session.endOtherSessions() }
    }

    /// Sets the label of this session for ``sessions()``, for example the name of the device: up to 64 bytes.
    @discardableResult
    public func labelSession(
        _ label: String,
        onAttempt: (@MainActor () -> Void)? = nil,
        onSuccess: (@MainActor () -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Void, any Error>) -> Void)? = nil
    ) -> OperationCall<Void> {
        start(.auth, onAttempt: onAttempt, onSuccess: { _ in onSuccess?() }, onError: onError, onSettled: onSettled) {
            try await backend().session.labelSession(label)
        }
    }

    /// Sets the label of this session for ``sessions()``, for example the name of the device: up to 64 bytes.
    public func labelSession(_ label: String) async throws {
        try await perform(.auth) { try await backend().session.labelSession(label) }
    }

    /// Sends a code to the future address of the account, for ``changeAddress(to:code:)``.
    @discardableResult
    public func sendAddressCode(
        to email: String,
        onAttempt: (@MainActor () -> Void)? = nil,
        onSuccess: (@MainActor (SendMagicCodeResponse) -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<SendMagicCodeResponse, any Error>) -> Void)? = nil
    ) -> OperationCall<SendMagicCodeResponse> {
        start(.auth, onAttempt: onAttempt, onSuccess: onSuccess, onError: onError, onSettled: onSettled) {
            try await backend().session.sendAddressCode(to: email)
        }
    }

    /// Sends a code to the future address of the account, for ``changeAddress(to:code:)``.
    @discardableResult
    public func sendAddressCode(to email: String) async throws -> SendMagicCodeResponse {
        try await perform(.auth) { try await backend().session.sendAddressCode(to: email) }
    }

    /// Changes the address of the account, with the code that was sent to it. The previous address is notified by mail.
    @discardableResult
    public func changeAddress(
        to email: String,
        code: String,
        onAttempt: (@MainActor () -> Void)? = nil,
        onSuccess: (@MainActor (User) -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<User, any Error>) -> Void)? = nil
    ) -> OperationCall<User> {
        start(.auth, onAttempt: onAttempt, onSuccess: onSuccess, onError: onError, onSettled: onSettled) {
            try await signingIn { try await $0.changeAddress(to: email, code: code) }
        }
    }

    /// Changes the address of the account, with the code that was sent to it. The previous address is notified by mail.
    @discardableResult
    public func changeAddress(to email: String, code: String) async throws -> User {
        try await perform(.auth) { try await signingIn { try await $0.changeAddress(to: email, code: code) } }
    }

    /// Deletes the account: all its sessions end, and its address becomes free.
    ///
    /// - Parameter code: a code that ``sendMagicCode(to:)`` has sent to the account's address. Default: nil, which is accepted
    ///   for a guest, and shortly after a sign-in.
    @discardableResult
    public func deleteAccount(
        code: String? = nil,
        onAttempt: (@MainActor () -> Void)? = nil,
        onSuccess: (@MainActor () -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Void, any Error>) -> Void)? = nil
    ) -> OperationCall<Void> {
        start(.auth, onAttempt: onAttempt, onSuccess: { _ in onSuccess?() }, onError: onError, onSettled: onSettled) {
            try await signingIn { try await $0.deleteAccount(code: code) }
        }
    }

    /// Deletes the account: all its sessions end, and its address becomes free.
    public func deleteAccount(code: String? = nil) async throws {
        try await perform(.auth) { try await signingIn { try await $0.deleteAccount(code: code) } }
    }
}

/// Auth and account operations without callbacks, for synchronous code such as the action of a button.
///
/// In asynchronous code the awaited forms have the same names. Top-level code prefers synchronous forms even after `try await`:
/// without these, it would call the form with callbacks, which neither waits nor throws.
@MainActor
extension Shared where Value == AuthSession {
    /// Starts to sign in as a guest; see ``signInAsGuest(onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func signInAsGuest() -> OperationCall<User> {
        signInAsGuest(onAttempt: nil)
    }

    /// Starts to send a code; see ``sendMagicCode(to:onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func sendMagicCode(to email: String) -> OperationCall<SendMagicCodeResponse> {
        sendMagicCode(to: email, onAttempt: nil)
    }

    /// Starts to sign in with a code; see ``verifyMagicCode(email:code:onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func verifyMagicCode(email: String, code: String) -> OperationCall<User> {
        verifyMagicCode(email: email, code: code, onAttempt: nil)
    }

    /// Starts to sign in with an ID token; see ``signIn(idToken:provider:nonce:onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func signIn(
        idToken: String, provider: String, nonce: String? = nil
    ) -> OperationCall<User> {
        signIn(idToken: idToken, provider: provider, nonce: nonce, onAttempt: nil)
    }

    /// Starts to end the session; see ``signOut(onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func signOut() -> OperationCall<Void> {
        signOut(onAttempt: nil)
    }

    /// Starts to request the sessions; see ``sessions(onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func sessions() -> OperationCall<[SessionInfo]> {
        sessions(onAttempt: nil)
    }

    /// Starts to end a session; see ``endSession(_:onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func endSession(_ id: SessionInfo.ID) -> OperationCall<Void> {
        endSession(id, onAttempt: nil)
    }

    /// Starts to end the other sessions; see ``endOtherSessions(onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func endOtherSessions() -> OperationCall<Int> {
        endOtherSessions(onAttempt: nil)
    }

    /// Starts to label this session; see ``labelSession(_:onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func labelSession(_ label: String) -> OperationCall<Void> {
        labelSession(label, onAttempt: nil)
    }

    /// Starts to send a code to a new address; see ``sendAddressCode(to:onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func sendAddressCode(to email: String) -> OperationCall<SendMagicCodeResponse> {
        sendAddressCode(to: email, onAttempt: nil)
    }

    /// Starts to change the address; see ``changeAddress(to:code:onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func changeAddress(to email: String, code: String) -> OperationCall<User> {
        changeAddress(to: email, code: code, onAttempt: nil)
    }

    /// Starts to delete the account; see ``deleteAccount(code:onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func deleteAccount(code: String? = nil) -> OperationCall<Void> {
        deleteAccount(code: code, onAttempt: nil)
    }
}
