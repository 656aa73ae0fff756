import Commands
import Glibc
import Trebuchet

/// Asks for confirmation before an irreversible action.
enum DestructiveActionPrompt {
    static let option = OptionSpec("--yes", nil, "skip the confirmation; required without a terminal")

    /// The error after a missing confirmation.
    struct Denied: Error, CustomStringConvertible {
        let description = "cancelled; nothing was changed"
    }

    static func requireConfirmation(_ question: String, _ arguments: ParsedArguments) throws {
        try decide(isConfirmed: arguments.has("--yes"), isTerminal: isatty(STDIN_FILENO) != 0) {
            Console.prompt("\(LogLine.of(question)) y/N ")
            return readLine()
        }
    }

    static func decide(isConfirmed: Bool, isTerminal: Bool, _ answer: () -> String?) throws {
        if isConfirmed { return }
        guard isTerminal else {
            throw UsageError("this cannot be undone and standard input is not a terminal; confirm with --yes")
        }
        guard ["y", "yes"].contains(answer()?.lowercased()) else { throw Denied() }
    }
}
