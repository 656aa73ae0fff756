import Commands
@preconcurrency import Glibc
import SharedState
import Trebuchet
import TrebuchetServices

/// `trebuchet sign-in` and `sign-out`: who the other commands are at a server.
enum SignInCommand {
    static let spec = CommandSpec(
        name: "sign-in",
        summary: "sign in at a server as a guest, or with a code that comes by mail",
        options: RemoteURL.options + [
            OptionSpec("--email", "ADDRESS", "have a code sent to this address, and ask for it; without it a guest"),
            OptionSpec("--code", "CODE", "the code, if it was sent before"),
        ],
        discussion: """
            A guest who signs in with an address stays the same user, if nobody has signed in with it before. The session is
            kept in ~/.local/state/trebuchet (or $XDG_STATE_HOME/trebuchet), in a file for each server that you alone can
            read; the commands that have --url use it.
            The server must host auth, as 'trebuchet serve' does.
            """,
        run: run)

    static let signOut = CommandSpec(
        name: "sign-out", summary: "end the session at a server", options: RemoteURL.options,
        run: { arguments in
            let backend = try await RemoteURL.connectedBackend(arguments)
            let auth = backend.scope { Shared(.trebuchetAuth) }
            try await auth.signOut()
            Console.print("signed out")
            await backend.client.close()
        })

    private static func run(_ arguments: ParsedArguments) async throws {
        let email = arguments.string("--email")
        if email == nil, arguments.has("--code") { throw UsageError("--code belongs to --email") }
        let backend = try await RemoteURL.connectedBackend(arguments)
        let auth = backend.scope { Shared(.trebuchetAuth) }
        for await value in auth.updates where value.state != .loading { break }
        if email == nil, let user = auth.wrappedValue.user {
            // A new guest would take the place of somebody, who may have no other way back.
            Console.print("already signed in as \(name(of: user)); 'trebuchet sign-out' comes first")
        } else if let user = try await signIn(auth, email: email, arguments) {
            Console.print("signed in as \(name(of: user))")
            // For `trebuchet sessions`; signing in does not fail because of it.
            try? await auth.labelSession("trebuchet at \(hostName)")
        }
        await backend.client.close()
    }

    static func name(of user: User) -> String { "\(user.email ?? "a guest") (\(user.id))" }

    /// Nil when the code has been sent and nobody is there to type it.
    private static func signIn(
        _ auth: Shared<AuthSession>, email: String?, _ arguments: ParsedArguments
    ) async throws -> User? {
        guard let email else { return try await auth.signInAsGuest() }
        if let code = arguments.string("--code") { return try await auth.verifyMagicCode(email: email, code: code) }
        let sent = try await auth.sendMagicCode(to: email)
        let command = "trebuchet sign-in\(RemoteURL.words(arguments)) --email \(email) --code CODE"
        return try await askForCode(sent, at: email, else: command) { code in
            try await auth.verifyMagicCode(email: email, code: code)
        }
    }

    /// Asks for a code that was sent, until it is right or has been tried too often.
    ///
    /// - Parameter command: what there is to do when nobody is there to type it; then nil is returned.
    static func askForCode<Output>(
        _ sent: SendMagicCodeResponse, at email: String, else command: String, _ use: (String) async throws -> Output
    ) async throws -> Output? {
        Console.print("a code was sent to \(email); it is good for \(sent.validSeconds / 60) minutes")
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

    /// As much of it as fits into a label.
    private static var hostName: String {
        var bytes = [UInt8](repeating: 0, count: 256)
        let status = bytes.withUnsafeMutableBytes { bytes in
            bytes.baseAddress.map { gethostname($0, bytes.count - 1) } ?? -1
        }
        guard status == 0 else { return "?" }
        return String(decoding: bytes.prefix { $0 > 0x20 && $0 < 0x7F }.prefix(40), as: UTF8.self)
    }
}
