import Commands
import Platform
import Trebuchet
import TrebuchetServices

/// `trebuchet rules`: checks a rules file without a server.
enum RulesCommand {
    static let spec = CommandSpec(
        name: "rules",
        summary: "check a rules file for collections and rooms, or print the default rules",
        subcommands: [check, show],
        discussion: "Apply a rules file with 'trebuchet serve --rules FILE'. See Docs/Reference/Rules.md.",
        run: { _ in })

    private static let check = CommandSpec(
        name: "rules check",
        summary: "report problems and warnings of a rules file",
        operands: "<file>",
        operandCount: 1...1,
        discussion: """
            Prints each problem on standard error, with file name, line and member, and exits with 1. Valid but probably
            unintended rules, such as documents that no client can read, are warnings:
              trebuchet rules check rules.json
            """,
        run: { arguments in
            do throws(RulesFileError) {
                let file = try RulesFile(contentsOfFile: arguments.operands[0])
                for warning in file.warnings { Console.error(LogLine.of("warning: \(warning)")) }
                let (collections, rooms) = (file.collectionCount, file.roomCount)
                Console.print(
                    "\(arguments.operands[0]) is valid: collections: \(collections), rooms: \(rooms), "
                        + "roles: \(file.roles.count)")
            } catch {
                for problem in error.problems { Console.error(LogLine.of("\(problem)")) }
                throw FailedCheck(count: error.problems.count)
            }
        })

    private static let show = CommandSpec(
        name: "rules show",
        summary: "print the default rules as a file",
        discussion: """
            Creates a file to start from:
              trebuchet rules show > rules.json
            """,
        run: { _ in Console.print(RulesFile.defaults) })
}

/// The error of a check after it has printed all problems.
struct FailedCheck: Error, CustomStringConvertible {
    let count: Int

    var description: String { count.counted("problem") }
}
