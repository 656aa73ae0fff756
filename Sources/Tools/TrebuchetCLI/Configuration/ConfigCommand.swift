import Commands
import Foundation
import Platform
import Trebuchet

/// `trebuchet config`: checks a configuration file of `serve`, and shows the effective options.
enum ConfigCommand {
    static let spec = CommandSpec(
        name: "config",
        summary: "check a configuration file of serve, or show the options in effect",
        subcommands: [check, show],
        discussion: "Apply a file with 'trebuchet serve --config FILE'. See Docs/Guides/Deployment.md.",
        run: { _ in })

    private static let check = CommandSpec(
        name: "config check",
        summary: "report all problems of a configuration file",
        operands: "<file>",
        operandCount: 1...1,
        discussion: """
            Prints each problem on standard error, with file name, line and column, and exits with 1. Reads no other file. A
            setting that requires an option outside of the file is a warning:
              trebuchet config check /etc/trebuchet/trebuchet.toml
            """,
        run: { arguments in
            let path = arguments.operands[0]
            let file: SettingsFile
            do throws(UsageError) {
                file = try SettingsFile(contentsOfFile: path, of: nil, options: ServeOptions.all)
            } catch {
                Console.error(LogLine.of("\(error)"))
                throw FailedCheck(count: 1)
            }
            guard file.problems.isEmpty else {
                for problem in file.problems { Console.error(LogLine.of("\(problem)")) }
                throw FailedCheck(count: file.problems.count)
            }
            for warning in file.incompleteSettings(of: ServeOptions.all) {
                Console.error(LogLine.of("warning: \(warning)"))
            }
            Console.print("\(LogLine.of(path)) is valid: \(file.settings.count.counted("setting"))")
        })

    private static let show = CommandSpec(
        name: "config show",
        summary: "print the value of each option of serve, and its origin",
        options: [ServeOptions.file],
        discussion: """
            Prints the options of a server that is started in this environment with this file; secrets are hidden:
              trebuchet config show --config /etc/trebuchet/trebuchet.toml
            """,
        run: { arguments in
            let words = arguments.string(ServeOptions.file.name).map { [ServeOptions.file.name, $0] } ?? []
            let environment = ProcessInfo.processInfo.environment
            let configuration = try ServeConfiguration(
                try ParsedArguments(words, for: ServeCommand.spec), environment: environment)
            for warning in configuration.warnings { Console.error(LogLine.of("warning: \(warning)")) }
            for line in lines(of: configuration.arguments, environment) { Console.print(line) }
        })

    /// Returns a table of all options with their values and origins.
    static func lines(of arguments: ParsedArguments, _ environment: [String: String]) -> [String] {
        var table = TextTable(["option", "value", "origin"])
        for option in ServeOptions.all {
            let origin = arguments.origin(of: option.name)
            table.addRow([option.key, arguments.shown(option), origin?.description ?? "default"])
            // An option that names a file with the secret comes before the variable.
            if origin == nil, let variable = ServeConfiguration.secretVariable(of: option, in: environment) {
                table.addRow([String(option.key.dropLast("-file".count)), "********", variable])
            }
        }
        return table.lines
    }
}
