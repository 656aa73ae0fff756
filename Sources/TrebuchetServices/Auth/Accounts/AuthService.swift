public import Trebuchet

/// Signs clients in and out; exposed as `auth`.
///
///     let accounts = try await Accounts(mailer: SMTPMailer(host: "127.0.0.1", port: 25))
///     let server = TrebuchetServer(transport: …, access: accounts.accessPolicy)
///     await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
///
/// Whoever signs in is the connection's `principal` from then on: its id is that of the user, its roles are `guest` or `user` and
/// those that an administrator has granted, its claims are `session` and, for a user, `email`.
@Trebuchet
public distributed actor AuthService {
    /// The name that clients call it by.
    public static let name = "auth"

    private let accounts: Accounts

    /// Signs in to these accounts. Expose it as ``name``: clients look for it there.
    public init(_ accounts: Accounts, actorSystem: TrebuchetActorSystem) {
        self.accounts = accounts
        self.actorSystem = actorSystem
    }

    /// Signs the connection in as a guest. One that is a guest already keeps its user.
    public distributed func signInAsGuest() async throws(AuthError) -> SessionGrant {
        try await accounts.signInAsGuest(on: try connection())
    }

    /// Sends a code of six digits to a mail address, which makes an earlier one void.
    public distributed func sendMagicCode(to email: String) async throws(AuthError) -> SendMagicCodeResponse {
        try await accounts.sendMagicCode(to: email, for: try connection())
    }

    /// Signs the connection in as the user of an address.
    ///
    /// A guest becomes that user and keeps the id, if the address is new. If it belongs to another user already, the
    /// connection is that one from now on; the guest's session ends, and the guest is gone with the last of its sessions.
    @Redacted
    public distributed func verifyMagicCode(email: String, code: String) async throws(AuthError) -> SessionGrant {
        try await accounts.verifyMagicCode(email: email, code: code, on: try connection())
    }

    /// Renews a session and signs the connection in. Each token does so once; using one again ends the session.
    @Redacted
    public distributed func refresh(_ refreshToken: String) async throws(AuthError) -> SessionGrant {
        try await accounts.refresh(refreshToken, on: try connection())
    }

    /// Signs the connection in as the user of an ID token (OpenID Connect) that one of the server's providers has signed.
    ///
    /// The account is found by the provider and its `sub`. When there is none yet, and the provider says that it has
    /// verified an address, it is the account of that address; else a guest becomes it and keeps the id, or a new one is
    /// made.
    ///
    /// - Parameters:
    ///   - provider: its name at the server.
    ///   - nonce: what was given to the provider for this token; required when the token has one. Its claim is this text,
    ///     or the SHA-256 of it in hexadecimal digits.
    @Redacted
    public distributed func signIn(
        idToken: String, provider: String, nonce: String?
    ) async throws(AuthError) -> SessionGrant {
        try await accounts.signIn(idToken: idToken, provider: provider, nonce: nonce, on: try connection())
    }

    /// Ends the session of a token. The connection that asks, if it is one of the session's, goes on as nobody; all others
    /// lose their rights and are told.
    @Redacted
    public distributed func signOut(_ refreshToken: String) async throws(AuthError) {
        try await accounts.signOut(refreshToken, on: try connection())
    }

    /// The sessions of the caller's account, the newest first.
    public distributed func sessions() async throws(AuthError) -> [SessionInfo] {
        try await accounts.sessions(of: try connection())
    }

    /// Ends a session of the caller's account, by its ``SessionInfo/id``. Its connections lose their rights and are told.
    public distributed func endSession(_ id: String) async throws(AuthError) {
        try await accounts.endSession(id, for: try connection())
    }

    /// Ends all sessions of the caller's account but its own.
    ///
    /// - Returns: how many there were.
    public distributed func endOtherSessions() async throws(AuthError) -> Int {
        try await accounts.endOtherSessions(of: try connection())
    }

    /// Gives the caller's session a name that `sessions()` shows: up to 64 bytes without control characters; empty for none.
    public distributed func labelSession(_ label: String) async throws(AuthError) {
        try await accounts.label(label, sessionOf: try connection())
    }

    /// Sends a code to an address that is to become that of the caller's account: a guest's, or one of somebody who has signed in
    /// within the last 10 minutes (`AuthLimits.freshSignIn`).
    public distributed func sendAddressCode(to email: String) async throws(AuthError) -> SendMagicCodeResponse {
        try await accounts.sendAddressCode(to: email, for: try connection())
    }

    /// Makes an address that of the caller's account, with the code that was sent there. The address of before is told by
    /// mail, and is free.
    @Redacted
    public distributed func changeAddress(to email: String, code: String) async throws(AuthError) -> User {
        try await accounts.changeAddress(to: email, code: code, on: try connection())
    }

    /// Deletes the caller's account; all its sessions end, and its address is free.
    ///
    /// - Parameter code: one that `sendMagicCode` has sent to the account's address. Nil is enough for a guest, and for who
    ///   has signed in within the last 10 minutes (`AuthLimits.freshSignIn`).
    @Redacted
    public distributed func deleteAccount(code: String?) async throws(AuthError) {
        try await accounts.deleteAccount(code: code, on: try connection())
    }

    /// It comes from the call itself, never from arguments.
    private func connection() throws(AuthError) -> CallerConnection {
        guard let connection = Caller.current?.connection else { throw .withoutAccessPolicy }
        return connection
    }
}
