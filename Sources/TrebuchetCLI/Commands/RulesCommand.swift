import Commands
import Trebuchet
import TrebuchetServices

/// `trebuchet rules`: looks at a file of rules without a server.
enum RulesCommand {
    static let spec = CommandSpec(
        name: "rules",
        summary: "check a file of rules for collections and rooms, or print the defaults",
        subcommands: [check, show],
        discussion: "trebuchet serve --rules FILE puts such a file in force. See Docs/Rules.md.",
        run: { _ in })

    private static let check = CommandSpec(
        name: "rules check",
        summary: "say what is wrong with a file of rules",
        operands: "<file>",
        operandCount: 1...1,
        discussion: """
            Each problem is a line on standard error, with the file's name, the line and the member; then it exits with 1. What is
            right and hardly meant, as documents that nobody can read, is a warning, and no problem:
              trebuchet rules check rules.json
            """,
        run: { arguments in
            do throws(RuleBookError) {
                let book = try RuleBook(contentsOfFile: arguments.operands[0])
                for warning in book.warnings { Console.error(LogLine.of("warning: \(warning)")) }
                let (collections, rooms) = (book.collectionCount, book.roomCount)
                Console.print(
                    "\(arguments.operands[0]) is right: \(collections) of collections, \(rooms) of rooms, "
                        + "\(book.roles.count) roles")
            } catch {
                for problem in error.problems { Console.error(LogLine.of("\(problem)")) }
                throw FailedCheck(count: error.problems.count)
            }
        })

    private static let show = CommandSpec(
        name: "rules show",
        summary: "print what counts without a file of rules, as such a file",
        discussion: """
            A file to begin with:
              trebuchet rules show > rules.json
            """,
        run: { _ in Console.print(RuleBook.defaults) })

    /// All that is wrong was printed before.
    private struct FailedCheck: Error, CustomStringConvertible {
        let count: Int

        var description: String { count == 1 ? "1 problem" : "\(count) problems" }
    }
}
