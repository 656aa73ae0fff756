import Benchmarks
import Commands
import Platform
import Trebuchet
import TrebuchetServices

@preconcurrency import Glibc

/// `trebuchet`: serves, calls, observes and measures.
package enum CommandLineTool {
    static let commands: [CommandSpec] = [
        ServeCommand.spec, CallCommand.spec, ObserveCommand.spec, SignInCommand.spec, SignInCommand.signOut,
        AccountCommand.sessions, AccountCommand.account,
        TopicCommand.spec, PresenceCommand.spec, CollectionCommand.spec, RulesCommand.spec,
        ConfigCommand.spec, ClusterCommand.spec, AdminCommand.spec, BackupCommand.spec, RestoreCommand.spec,
        StoreCommand.spec, DoctorCommand.spec, InspectCommand.spec, TopCommand.spec,
        GenerateCommand.spec, BenchCommand.spec, version,
    ]

    private static let version = CommandSpec(
        name: "version", summary: "print the version, as --version does",
        run: { _ in Console.print(TrebuchetVersion.line) })

    /// Runs the command that the process arguments name. Exits with 1 after an error and 2 after invalid usage.
    package static func main() async {
        StandardStream.openMissing()
        ServerChild.endWithInput()
        // A server continues without the reader of its log; `Console.print` ends a command whose output has no reader.
        BrokenPipes.ignore()
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard let name = arguments.first else { exitWithUsage("no command given") }
        if ["--help", "-h"].contains(name) || name == "help" && arguments.count == 1 {
            Console.print(help)
            return
        }
        if name == "--version" { return Console.print(TrebuchetVersion.line) }
        if name == "help" { return await main(helpOf: Array(arguments.dropFirst())) }
        let command = command(name)
        if !command.subcommands.isEmpty { return await run(command, Array(arguments.dropFirst())) }
        await run(command, arguments: Array(arguments.dropFirst()))
    }

    /// `trebuchet help serve` and `trebuchet help bench rpc` are `trebuchet serve --help` and `trebuchet bench rpc --help`.
    private static func main(helpOf names: [String]) async {
        let command = command(names[0])
        if command.subcommands.isEmpty {
            Console.print(command.help, terminator: "")
        } else {
            await run(command, names.count > 1 ? [names[1], "--help"] : ["--help"])
        }
    }

    private static func command(_ name: String) -> CommandSpec {
        if let command = commands.first(where: { $0.name == name }) { return command }
        let hint = NearestMatch.find(name, in: commands.map(\.name)).map { "; did you mean '\($0)'?" } ?? ""
        exitWithUsage("unknown command '\(name)'\(hint)")
    }

    /// Runs a subcommand.
    private static func run(_ group: CommandSpec, _ arguments: [String]) async {
        guard let name = arguments.first, name != "--help", name != "-h" else {
            return Console.print(group.help, terminator: "")
        }
        let names = group.subcommands.map { String($0.name.dropFirst(group.name.count + 1)) }
        guard let index = names.firstIndex(of: name) else {
            let hint = NearestMatch.find(name, in: names).map { "; did you mean '\($0)'?" } ?? ""
            Console.error("trebuchet \(group.name): unknown command '\(name)'\(hint)\n\n\(group.help)")
            exit(2)
        }
        await run(group.subcommands[index], arguments: Array(arguments.dropFirst()))
    }

    private static func run(_ command: CommandSpec, arguments: [String]) async {
        do {
            let parsed = try ParsedArguments(arguments, for: command)
            if parsed.wantsHelp { return Console.print(command.help, terminator: "") }
            try await CommandTimeout.$current.withValue(CommandTimeout(parsed, of: command)) {
                try await command.run(parsed)
            }
        } catch let error as UsageError {
            Console.error("trebuchet \(command.name): \(error)")
            exit(2)
        } catch {
            if let problems = ErrorHint.problems(of: error) {
                for problem in problems { Console.error("trebuchet \(command.name): \(problem)") }
                exit(1)
            }
            Console.error("trebuchet \(command.name): \(ErrorHint.text(error, of: command.name))")
            exit(1)
        }
    }

    private static func exitWithUsage(_ problem: String) -> Never {
        Console.error("trebuchet: \(problem)\n\n\(help)")
        exit(2)
    }

    static var help: String {
        return """
            trebuchet: distributed actors whose state streams to every client.

            usage: trebuchet <command> [options]

            commands:
            \(CommandSpec.list(commands))
            Run 'trebuchet <command> --help' for the options of a command.
            """
    }
}
