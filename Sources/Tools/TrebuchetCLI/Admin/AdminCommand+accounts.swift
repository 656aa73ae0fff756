import Commands
import Bytes
import Trebuchet
import TrebuchetServices
import TrebuchetWire

/// The `admin` commands for accounts, their sessions and roles.
extension AdminCommand {
    private static func date(_ milliseconds: Int64) -> String {
        var text = ByteBuffer()
        ISO8601.append(seconds: milliseconds / 1000, milliseconds: nil, to: &text)
        return String(decoding: text.bytes, as: UTF8.self)
    }

    static let accounts = CommandSpec(
        name: "admin accounts", summary: "list accounts", options: AdminListing<AccountSummary>.options,
        discussion: "  trebuchet admin accounts --data chat.db",
        run: { arguments in
            try await AdminListing(
                columns: ["ACCOUNT", "ADDRESS", "ROLES", "SESSIONS", "CONNECTIONS"],
                page: { .accounts(after: $0, limit: $1) },
                entries: { if case .accounts(let found) = $0 { found } else { nil } }, name: { $0.id },
                cells: { account in
                    [
                        account.id, account.email ?? "guest",
                        account.roles.isEmpty ? "-" : account.roles.joined(separator: ","), "\(account.sessions)",
                        "\(account.connections)",
                    ]
                }
            ).print(arguments)
        })

    static let sessions = CommandSpec(
        name: "admin sessions", summary: "list the sessions of one account or all", operands: "[account]",
        operandCount: 0...1, options: AdminListing<SessionSummary>.options,
        discussion: "  trebuchet admin sessions ada@example.org --data chat.db",
        run: { arguments in
            let account = arguments.operands.first
            try await AdminListing(
                columns: ["SESSION", "ACCOUNT", "RENEWED", "ENDS", "CONNECTIONS", "LABEL"],
                page: { .sessions(account: account, after: $0, limit: $1) },
                entries: { if case .sessions(let found) = $0 { found } else { nil } }, name: { $0.name },
                cells: { session in
                    [
                        session.name, session.account, date(session.renewedAt), date(session.expiry),
                        "\(session.connections)", session.label ?? "-",
                    ]
                }
            ).print(arguments)
        })

    static let grant = CommandSpec(
        name: "admin grant", summary: "grant a role to an account", operands: "<account> <role>", operandCount: 2...2,
        options: AdminClient.options,
        discussion: """
            Identify the account by its id or mail address. The role takes effect immediately, also for open connections.
            A role that the current rules do not name is granted with a warning, because custom actors may use it.
              trebuchet admin grant ada@example.org editor --data chat.db
            """,
        run: { arguments in
            let (account, role) = (arguments.operands[0], arguments.operands[1])
            let answer = try await AdminClient(arguments).request(
                .setRole(role: role, account: account, isGranted: true))
            guard case .granted(let isNew, let warning) = answer else { throw AdminClient.unexpected(answer) }
            if let warning { Console.error("trebuchet admin grant: warning: \(LogLine.of(warning))") }
            try done(.done(isNew), else: "account '\(account)' already has role '\(role)'")
            Console.print("granted role '\(role)' to account '\(account)'")
        })

    static let revoke = CommandSpec(
        name: "admin revoke", summary: "revoke a role of an account", operands: "<account> <role>", operandCount: 2...2,
        options: AdminClient.options,
        discussion: "  trebuchet admin revoke ada@example.org editor --data chat.db",
        run: { arguments in
            let (account, role) = (arguments.operands[0], arguments.operands[1])
            let answer = try await AdminClient(arguments).request(
                .setRole(role: role, account: account, isGranted: false))
            try done(answer, else: "account '\(account)' does not have role '\(role)'")
            Console.print("revoked role '\(role)' of account '\(account)'")
        })

    static let removeAccount = CommandSpec(
        name: "admin remove-account", summary: "remove an account and end its sessions; its documents are retained",
        operands: "<account>", operandCount: 1...1, options: AdminClient.options + [DestructiveActionPrompt.option],
        discussion: "  trebuchet admin remove-account ada@example.org --data chat.db",
        run: { arguments in
            let account = arguments.operands[0]
            try DestructiveActionPrompt.requireConfirmation(
                "remove account '\(account)' and end its sessions?", arguments)
            let answer = try await AdminClient(arguments).request(.removeAccount(name: account))
            try done(answer, else: "account '\(account)' does not exist; 'trebuchet admin accounts' lists them")
            Console.print("removed account '\(account)'")
        })

    static let endSession = CommandSpec(
        name: "admin end-session", summary: "end a session and sign out its connections", operands: "<session>",
        operandCount: 1...1, options: AdminClient.options + [DestructiveActionPrompt.option],
        discussion: "  trebuchet admin end-session 3vQ0b2cX --data chat.db --yes",
        run: { arguments in
            let session = arguments.operands[0]
            try DestructiveActionPrompt.requireConfirmation("end session '\(session)'?", arguments)
            let answer = try await AdminClient(arguments).request(.endSession(name: session))
            try done(answer, else: "session '\(session)' does not exist; 'trebuchet admin sessions' lists them")
            Console.print("ended session '\(session)'")
        })
}
