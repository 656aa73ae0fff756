public import SharedState

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
