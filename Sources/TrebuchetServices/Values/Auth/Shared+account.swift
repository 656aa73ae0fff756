public import SharedState

/// The account of who is signed in, and its sessions. Each operation comes in the two forms of signing in and out.
@MainActor
extension Shared where Value == AuthSession {
    /// The sessions of the account, the newest first.
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

    /// The sessions of the account, the newest first.
    public func sessions() async throws -> [SessionInfo] {
        try await perform(.auth) { try await backend().session.sessions() }
    }

    /// Ends a session of the account, by its `id`: its connections lose their rights, and their clients are told at once.
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

    /// Ends a session of the account, by its `id`: its connections lose their rights, and their clients are told at once.
    public func endSession(_ id: SessionInfo.ID) async throws {
        try await perform(.auth) { try await backend().session.endSession(id) }
    }

    /// Ends all sessions of the account but this one, and says how many there were.
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

    /// Ends all sessions of the account but this one, and says how many there were.
    @discardableResult
    public func endOtherSessions() async throws -> Int {
        try await perform(.auth) { try await backend().session.endOtherSessions() }
    }

    /// Gives this session a name that ``sessions()`` shows, as that of the device: up to 64 bytes.
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

    /// Gives this session a name that ``sessions()`` shows, as that of the device: up to 64 bytes.
    public func labelSession(_ label: String) async throws {
        try await perform(.auth) { try await backend().session.labelSession(label) }
    }

    /// Has a code sent to an address that is to become the account's, for ``changeAddress(to:code:)``.
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

    /// Has a code sent to an address that is to become the account's, for ``changeAddress(to:code:)``.
    @discardableResult
    public func sendAddressCode(to email: String) async throws -> SendMagicCodeResponse {
        try await perform(.auth) { try await backend().session.sendAddressCode(to: email) }
    }

    /// Makes an address the account's, with the code that was sent there. The address of before is told by mail.
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

    /// Makes an address the account's, with the code that was sent there. The address of before is told by mail.
    @discardableResult
    public func changeAddress(to email: String, code: String) async throws -> User {
        try await perform(.auth) { try await signingIn { try await $0.changeAddress(to: email, code: code) } }
    }

    /// Deletes the account: all its sessions end, and its address is free.
    ///
    /// - Parameter code: one that ``sendMagicCode(to:)`` has sent to the account's address. Default: nil, which is enough
    ///   for a guest, and for who has just signed in.
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

    /// Deletes the account: all its sessions end, and its address is free.
    public func deleteAccount(code: String? = nil) async throws {
        try await perform(.auth) { try await signingIn { try await $0.deleteAccount(code: code) } }
    }
}
