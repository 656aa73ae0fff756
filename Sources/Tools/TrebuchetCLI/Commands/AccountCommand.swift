import Commands
import Bytes
@preconcurrency import Glibc
import Platform
import SharedState
import Trebuchet
import TrebuchetServices
import TrebuchetWire

/// `trebuchet sessions` and `account`: manage the account of the signed-in user.
enum AccountCommand {
    static let sessions = CommandSpec(
        name: "sessions", summary: "list or end your sessions at a server", operands: "[end ID | end-others]",
        operandCount: 0...2, options: RemoteURL.options,
        discussion: """
            Prints one JSON line per session, newest first: its id (not secret), the times of sign-in and last renewal, whether
            it is the current one, and its label. An ended session loses its authorization immediately.
            """,
        run: runSessions)

    static let account = CommandSpec(
        name: "account", summary: "delete your account at a server or change its mail address",
        subcommands: [
            CommandSpec(
                name: "account delete", summary: "delete the account and all its sessions",
                options: RemoteURL.options + [
                    OptionSpec("--code", "CODE", "a code that 'sign-in --email' sent to its address"),
                    OptionSpec("--yes", nil, "skip the confirmation"),
                ],
                discussion: """
                    Asks for a code by mail if the last sign-in is older than ten minutes. The documents are retained unless
                    server code deletes them; no later account becomes their creator.
                    """,
                run: runDelete),
            CommandSpec(
                name: "account change-email", summary: "change the mail address of the account", operands: "ADDRESS",
                operandCount: 1...1,
                options: RemoteURL.options + [OptionSpec("--code", "CODE", "a code that was already sent")],
                discussion: """
                    Sends a code to the new address and asks for it. The old address receives a notice.
                    """,
                run: runChange),
        ],
        run: { _ in })

    private static func withAuth(
        _ arguments: ParsedArguments, _ body: (Shared<AuthSession>) async throws -> Void
    ) async throws {
        let backend = try await RemoteURL.connectedBackend(arguments)
        let auth = backend.withCurrent { Shared(.trebuchetAuth) }
        for await value in auth.updates where value.state != .loading { break }
        do {
            try await body(auth)
        } catch AuthError.notSignedIn {
            throw SignInRequired(command: "trebuchet sign-in\(RemoteURL.words(arguments))")
        }
        await backend.client.close()
    }

    private struct SignInRequired: Error, CustomStringConvertible {
        let command: String
        var description: String { "not signed in at this server; run '\(command)'" }
    }

    private static func runSessions(_ arguments: ParsedArguments) async throws {
        let words = arguments.operands
        switch (words.first, words.count) {
        case (nil, 0):
            try await withAuth(arguments) { auth in
                for session in try await auth.sessions() { Console.print(try line(session)) }
            }
        case ("end", 2):
            try await withAuth(arguments) { auth in
                try await auth.endSession(words[1])
                Console.print("ended \(LogLine.of(words[1]))")
            }
        case ("end-others", 1):
            try await withAuth(arguments) { auth in
                let count = try await auth.endOtherSessions()
                Console.print("ended \(count.counted("session"))")
            }
        default: throw UsageError("unknown arguments\nusage: trebuchet sessions [end ID | end-others]")
        }
    }

    private static func line(_ session: SessionInfo) throws -> String {
        var buffer = ByteBuffer()
        try ValueCoder().encode(session, into: &buffer)
        return String(decoding: buffer.bytes, as: UTF8.self)
    }

    private static func runDelete(_ arguments: ParsedArguments) async throws {
        try await withAuth(arguments) { auth in
            guard let user = auth.wrappedValue.user else { throw AuthError.notSignedIn }
            guard arguments.has("--yes") || confirmDeletion(user) else {
                return Console.print("cancelled; nothing was deleted")
            }
            do {
                try await auth.deleteAccount(code: arguments.string("--code"))
            } catch AuthError.notFresh where arguments.string("--code") == nil {
                guard let email = user.email else { throw AuthError.notFresh }
                let sent = try await auth.sendMagicCode(to: email)
                let command = "trebuchet account delete\(RemoteURL.words(arguments)) --code CODE"
                let done: Void? = try await SignInCommand.promptForCode(sent, at: email, else: command) { code in
                    try await auth.deleteAccount(code: code)
                }
                if done == nil { return }
            }
            Console.print("deleted \(SignInCommand.name(of: user))")
        }
    }

    private static func confirmDeletion(_ user: User) -> Bool {
        Console.print("delete \(SignInCommand.name(of: user))? Type yes: ", terminator: "")
        CommandTimeout.current?.stop()
        defer { CommandTimeout.current?.restart() }
        return readLine() == "yes"
    }

    private static func runChange(_ arguments: ParsedArguments) async throws {
        let address = arguments.operands[0]
        try await withAuth(arguments) { auth in
            let user: User?
            if let code = arguments.string("--code") {
                user = try await auth.changeAddress(to: address, code: code)
            } else {
                let sent = try await auth.sendAddressCode(to: address)
                let command = "trebuchet account change-email\(RemoteURL.words(arguments)) \(address) --code CODE"
                user = try await SignInCommand.promptForCode(sent, at: address, else: command) { code in
                    try await auth.changeAddress(to: address, code: code)
                }
            }
            if let user { Console.print("signed in as \(SignInCommand.name(of: user))") }
        }
    }
}
