import Commands
@preconcurrency import Glibc
import Platform
import SharedState
import Trebuchet
import TrebuchetServices

/// `trebuchet sign-in` and `sign-out`: select the user of the other commands at a server.
enum SignInCommand {
    static let spec = CommandSpec(
        name: "sign-in",
        summary: "sign in at a server as a guest or with a code by mail",
        options: RemoteURL.options + [
            OptionSpec("--email", "ADDRESS", "send a code to this address and ask for it (sign in as a guest)"),
            OptionSpec("--code", "CODE", "a code that was already sent"),
        ],
        discussion: """
            A guest that signs in with a new address remains the same user. The session is stored in
            ~/.local/state/trebuchet (or $XDG_STATE_HOME/trebuchet), in one file per server that only you can read;
            the commands with --url use it.
            The server must host auth, as 'trebuchet serve' does.
            """,
        run: run)

    static let signOut = CommandSpec(
        name: "sign-out", summary: "end the session at a server", options: RemoteURL.options,
        run: { arguments in
            let backend = try await RemoteURL.connectedBackend(arguments)
            let auth = backend.withCurrent { Shared(.trebuchetAuth) }
            try await auth.signOut()
            Console.print("signed out")
            await backend.client.close()
        })

    private static func run(_ arguments: ParsedArguments) async throws {
        let email = arguments.string("--email")
        if email == nil, arguments.has("--code") { throw UsageError("--code requires --email") }
        let backend = try await RemoteURL.connectedBackend(arguments)
        let auth = backend.withCurrent { Shared(.trebuchetAuth) }
        for await value in auth.updates where value.state != .loading { break }
        if email == nil, let user = auth.wrappedValue.user {
            // A new guest would replace the signed-in user, who may be unable to sign in again.
            Console.print("already signed in as \(name(of: user)); run 'trebuchet sign-out' first")
        } else if let user = try await signIn(auth, email: email, arguments) {
            Console.print("signed in as \(name(of: user))")
            // The label for `trebuchet sessions`; a failure is ignored.
            try? await auth.labelSession("trebuchet at \(hostName)")
        }
        await backend.client.close()
    }

    static func name(of user: User) -> String { "\(user.email ?? "a guest") (\(user.id))" }

    /// Signs in; nil if the code was sent and standard input is no terminal.
    private static func signIn(
        _ auth: Shared<AuthSession>, email: String?, _ arguments: ParsedArguments
    ) async throws -> User? {
        guard let email else { return try await auth.signInAsGuest() }
        if let code = arguments.string("--code") { return try await auth.verifyMagicCode(email: email, code: code) }
        let sent = try await auth.sendMagicCode(to: email)
        let command = "trebuchet sign-in\(RemoteURL.words(arguments)) --email \(email) --code CODE"
        return try await promptForCode(sent, at: email, else: command) { code in
            try await auth.verifyMagicCode(email: email, code: code)
        }
    }

    /// Asks for a code that was sent, until it is correct or the attempts are used up.
    ///
    /// - Parameter command: the command to suggest if standard input is no terminal; then nil is returned.
    static func promptForCode<Output>(
        _ sent: SendMagicCodeResponse, at email: String, else command: String, _ use: (String) async throws -> Output
    ) async throws -> Output? {
        Console.print("a code was sent to \(email); it is valid for \((sent.validSeconds / 60).counted("minute"))")
        while true {
            if isatty(STDIN_FILENO) != 0 { Console.print("code: ", terminator: "") }
            CommandTimeout.current?.stop()
            guard let line = readLine() else {
                Console.print("then: \(command)")
                return nil
            }
            CommandTimeout.current?.restart()
            do {
                return try await use(String(line.filter { !$0.isWhitespace }))
            } catch let error as AuthError {
                guard case .wrongCode(let triesLeft) = error, triesLeft > 0 else { throw error }
                Console.print("\(error)")
            }
        }
    }

    /// The beginning of the host name that fits into a label.
    private static var hostName: String {
        var bytes = [UInt8](repeating: 0, count: 256)
        let status = bytes.withUnsafeMutableBytes { bytes in
            bytes.baseAddress.map { gethostname($0, bytes.count - 1) } ?? -1
        }
        guard status == 0 else { return "?" }
        return String(decoding: bytes.prefix { $0 > 0x20 && $0 < 0x7F }.prefix(40), as: UTF8.self)
    }
}
