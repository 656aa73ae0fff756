public import SharedState

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
