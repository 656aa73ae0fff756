public import Trebuchet

/// Signs clients in and out; exposed as `auth`.
///
///     let accounts = try await Accounts(mailer: SMTPMailer(host: "127.0.0.1", port: 25))
///     let server = TrebuchetServer(transport: …, access: accounts.accessPolicy)
///     await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
///
/// Whoever signs in is the connection's `principal` from then on: its id is that of the user, its only role `guest` or
/// `user`, its claims are `session` and, for a user, `email`.
@Trebuchet
public distributed actor AuthService {
    /// The name that clients call it by.
    public static let name = "auth"

    private let accounts: Accounts

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
    public distributed func verifyMagicCode(email: String, code: String) async throws(AuthError) -> SessionGrant {
        try await accounts.verifyMagicCode(email: email, code: code, on: try connection())
    }

    /// Renews a session and signs the connection in. Each token does so once; using one again ends the session.
    public distributed func refresh(_ refreshToken: String) async throws(AuthError) -> SessionGrant {
        try await accounts.refresh(refreshToken, on: try connection())
    }

    /// Ends the session of a token, and with it the sign-in of all connections that it has.
    public distributed func signOut(_ refreshToken: String) async throws(AuthError) {
        try await accounts.signOut(refreshToken)
    }

    /// It comes from the call itself, never from arguments.
    private func connection() throws(AuthError) -> CallerConnection {
        guard let connection = Caller.current?.connection else { throw .withoutAccessPolicy }
        return connection
    }
}
