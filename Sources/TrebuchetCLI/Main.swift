@preconcurrency import Glibc

/// `trebuchet`: serves, calls, observes and measures.
@main
enum Main {
    static let commands: [CommandSpec] = [ServeCommand.spec, CallCommand.spec, ObserveCommand.spec, BenchCommand.spec]

    static func main() async {
        // Lines appear as they are printed, also in a pipe.
        Console.flushEachLine()
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard let name = arguments.first else { exitWithUsage("no command given") }
        if ["--help", "-h", "help"].contains(name) {
            print(help)
            return
        }
        guard let command = commands.first(where: { $0.name == name }) else {
            let hint = NearestMatch.find(name, in: commands.map(\.name)).map { "; did you mean '\($0)'?" } ?? ""
            exitWithUsage("unknown command '\(name)'\(hint)")
        }
        do {
            let parsed = try ParsedArguments(Array(arguments.dropFirst()), for: command)
            if parsed.wantsHelp { return print(command.help, terminator: "") }
            try await command.run(parsed)
        } catch let error as UsageError {
            Console.error("trebuchet \(command.name): \(error)")
            exit(2)
        } catch {
            Console.error("trebuchet \(command.name): \(error)")
            exit(1)
        }
    }

    private static func exitWithUsage(_ problem: String) -> Never {
        Console.error("trebuchet: \(problem)\n\n\(help)")
        exit(2)
    }

    static var help: String {
        let width = commands.map(\.name.count).max() ?? 0
        let lines = commands.map { command in
            "  " + command.name + String(repeating: " ", count: width - command.name.count + 3) + command.summary
        }
        return """
            trebuchet: distributed actors whose state streams to every client.

            usage: trebuchet <command> [options]

            commands:
            \(lines.joined(separator: "\n"))

            trebuchet <command> --help tells more about each.
            """
    }
}

enum Console {
    /// Prints a line to standard error.
    static func error(_ line: String) {
        var text = line + "\n"
        text.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }

    /// Lines leave as they are printed, also into a pipe.
    static func flushEachLine() {
        setvbuf(stdout, nil, _IOLBF, 0)
    }
}
