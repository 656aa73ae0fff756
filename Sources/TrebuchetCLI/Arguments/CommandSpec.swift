/// One option of a command: `--port PORT`.
struct OptionSpec {
    /// With its dashes: `--port`.
    let name: String
    /// What stands for the value in the help; nil for a flag.
    let value: String?
    let help: String

    init(_ name: String, _ value: String? = nil, _ help: String) {
        self.name = name
        self.value = value
        self.help = help
    }
}

/// A command with what it takes; the help is made of it.
struct CommandSpec: Sendable {
    let name: String
    /// One line for the list of commands.
    let summary: String
    /// Commands within it: `trebuchet bench rpc`. Their names begin with its own.
    var subcommands: [CommandSpec] = []
    /// What comes after the options: `<actor> <method> [json …]`.
    var operands = ""
    /// How many operands it needs, and takes.
    var operandCount = 0...0
    var options: [OptionSpec] = []
    /// More for its own help: examples, what is printed.
    var discussion = ""
    let run: @Sendable (ParsedArguments) async throws -> Void

    var usage: String {
        if !subcommands.isEmpty { return "usage: trebuchet \(name) <command> [options]" }
        return "usage: trebuchet \(name)" + (options.isEmpty ? "" : " [options]")
            + (operands.isEmpty ? "" : " \(operands)")
    }

    /// What stands in `operands` and may not be left out: `<room>` and `<member>`.
    var requiredOperands: [String] { operands.matches(of: /<[^>]*>/).map { String($0.output) } }

    /// The names with their summaries, a line each.
    static func list(_ commands: [CommandSpec]) -> String {
        let width = commands.map(\.name.count).max() ?? 0
        return commands.map { command in
            "  " + command.name + String(repeating: " ", count: width - command.name.count + 3) + command.summary + "\n"
        }.joined()
    }

    var help: String {
        var text = "\(summary)\n\n\(usage)\n"
        if !subcommands.isEmpty { text += "\ncommands:\n" + Self.list(subcommands) }
        let all = options + [OptionSpec("--help", nil, "print this and exit")]
        let heads = all.map { $0.name + ($0.value.map { " " + $0 } ?? "") }
        let width = heads.map(\.count).max() ?? 0
        text += "\noptions:\n"
        for (option, head) in zip(all, heads) {
            text += "  " + head + String(repeating: " ", count: width - head.count + 3) + option.help + "\n"
        }
        if !discussion.isEmpty { text += "\n" + discussion + "\n" }
        return text
    }
}

extension OptionSpec: Sendable {}
