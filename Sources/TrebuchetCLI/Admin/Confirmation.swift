import Commands
import Glibc
import Trebuchet

/// Asks before something is done that cannot be undone.
enum Confirmation {
    static let option = OptionSpec("--yes", nil, "do not ask; needed where nobody can be asked")

    struct Denied: Error, CustomStringConvertible {
        let description = "nothing was done"
    }

    static func ask(_ question: String, _ arguments: ParsedArguments) throws {
        try decide(isSure: arguments.has("--yes"), isTerminal: isatty(STDIN_FILENO) != 0) {
            Console.prompt("\(LogLine.of(question)) y/N ")
            return readLine()
        }
    }

    static func decide(isSure: Bool, isTerminal: Bool, _ answer: () -> String?) throws {
        if isSure { return }
        guard isTerminal else { throw UsageError("this cannot be undone and nobody can be asked: say --yes") }
        guard ["y", "yes"].contains(answer()?.lowercased()) else { throw Denied() }
    }
}
