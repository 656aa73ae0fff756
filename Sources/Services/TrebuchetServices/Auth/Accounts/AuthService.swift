public import Trebuchet

/// Signs clients in and out; exposed as `auth`.
///
///     let accounts = try await Accounts(mailer: SMTPMailer(host: "127.0.0.1", port: 25))
///     let server = TrebuchetServer(transport: …, access: accounts.accessPolicy)
///     await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
///
/// After a sign-in, the user is the connection's `principal`. Its id is the id of the user, its roles are `guest` or `user` and
/// those that an administrator has granted, and its claims are `session` and, for a user, `email`.
@Trebuchet
public distributed actor AuthService: AuthInterface {
    /// The name under which clients call the service.
    public static let name = ServiceNames.auth

    private let accounts: Accounts

    /// Creates a service for these accounts. Expose it as ``name``: clients call it there.
    public init(_ accounts: Accounts, actorSystem: TrebuchetActorSystem) {
        self.accounts = accounts
        self.actorSystem = actorSystem
    }

    /// Signs the connection in as a guest. A connection of a guest keeps its user.
    public distributed func signInAsGuest() async throws(AuthError) -> SessionGrant {
        try await accounts.signInAsGuest(on: try connection())
    }

    /// Sends a code of six digits to a mail address. An earlier code becomes void.
    public distributed func sendMagicCode(to email: String) async throws(AuthError) -> SendMagicCodeResponse {
        try await accounts.sendMagicCode(to: email, for: try connection())
    }

    /// Signs the connection in as the user of an address.
    ///
    /// If the address is new, a guest becomes that user and keeps the id. If the address belongs to another user, the
    /// connection is signed in as that user and the guest's session ends. A guest is deleted with its last session.
    @Redacted
    public distributed func verifyMagicCode(email: String, code: String) async throws(AuthError) -> SessionGrant {
        try await accounts.verifyMagicCode(email: email, code: code, on: try connection())
    }

    /// Renews a session and signs the connection in. Each token works once; a second use ends the session.
    @Redacted
    public distributed func refresh(_ refreshToken: String) async throws(AuthError) -> SessionGrant {
        try await accounts.refresh(refreshToken, on: try connection())
    }

    /// Signs the connection in as the user of an ID token (OpenID Connect) of one of the server's providers.
    ///
    /// The account is found by the provider and its `sub`. When there is none, and the provider reports a verified address, the
    /// account of that address is used. Otherwise a guest becomes the user and keeps the id, or a new account is created.
    ///
    /// - Parameters:
    ///   - provider: the name of the provider at the server.
    ///   - nonce: the text that the client passed to the provider for this token; required when the token has one. The token's
    ///     claim is this text, or its SHA-256 in hexadecimal digits.
    @Redacted
    public distributed func signIn(
        idToken: String, provider: String, nonce: String?
    ) async throws(AuthError) -> SessionGrant {
        try await accounts.signIn(idToken: idToken, provider: provider, nonce: nonce, on: try connection())
    }

    /// Ends the session of a token. If the caller's connection belongs to that session, it becomes anonymous. All other
    /// connections of the session lose their authorization and are notified.
    @Redacted
    public distributed func signOut(_ refreshToken: String) async throws(AuthError) {
        try await accounts.signOut(refreshToken, on: try connection())
    }

    /// Returns the sessions of the caller's account, newest first.
    public distributed func sessions() async throws(AuthError) -> [SessionInfo] {
        try await accounts.sessions(of: try connection())
    }

    /// Ends a session of the caller's account, by its ``SessionInfo/id``. Its connections lose their authorization and are
    /// notified.
    public distributed func endSession(_ id: String) async throws(AuthError) {
        try await accounts.endSession(id, for: try connection())
    }

    /// Ends all sessions of the caller's account except the caller's.
    ///
    /// - Returns: the number of ended sessions.
    public distributed func endOtherSessions() async throws(AuthError) -> Int {
        try await accounts.endOtherSessions(of: try connection())
    }

    /// Sets the label of the caller's session for `sessions()`: up to 64 bytes without control characters; empty for none.
    public distributed func labelSession(_ label: String) async throws(AuthError) {
        try await accounts.label(label, sessionOf: try connection())
    }

    /// Sends a code to the future address of the caller's account. The caller must be a guest, or must have signed in within
    /// the last 10 minutes (`AuthLimits.recentSignInTime`).
    public distributed func sendAddressCode(to email: String) async throws(AuthError) -> SendMagicCodeResponse {
        try await accounts.sendAddressCode(to: email, for: try connection())
    }

    /// Changes the address of the caller's account, with the code that was sent to it. The previous address is notified by mail
    /// and becomes free.
    @Redacted
    public distributed func changeAddress(to email: String, code: String) async throws(AuthError) -> User {
        try await accounts.changeAddress(to: email, code: code, on: try connection())
    }

    /// Deletes the caller's account; all its sessions end, and its address becomes free.
    ///
    /// - Parameter code: a code that `sendMagicCode` has sent to the account's address. It may be nil for a guest, and within
    ///   10 minutes after a sign-in (`AuthLimits.recentSignInTime`).
    @Redacted
    public distributed func deleteAccount(code: String?) async throws(AuthError) {
        try await accounts.deleteAccount(code: code, on: try connection())
    }

    /// The connection comes from the call itself, never from arguments.
    private func connection() throws(AuthError) -> CallerConnection {
        guard let connection = Caller.current?.connection else { throw .withoutAccessPolicy }
        return connection
    }
}
