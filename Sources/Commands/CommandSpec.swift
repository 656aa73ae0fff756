/// One option of a command: `--port PORT`.
package struct OptionSpec: Sendable {
    /// With its dashes: `--port`.
    package let name: String
    /// What stands for the value in the help; nil for a flag. In brackets it may be left out: then the value is empty.
    package let value: String?
    package let help: String

    package init(_ name: String, _ value: String? = nil, _ help: String) {
        self.name = name
        self.value = value
        self.help = help
    }
}

/// A command with what it takes; the help is made of it.
package struct CommandSpec: Sendable {
    package let name: String
    /// One line for the list of commands.
    package let summary: String
    /// Commands within it: `trebuchet bench rpc`. Their names begin with its own.
    package let subcommands: [CommandSpec]
    /// What comes after the options: `<actor> <method> [json …]`.
    package let operands: String
    /// How many operands it needs, and takes.
    package let operandCount: ClosedRange<Int>
    package let options: [OptionSpec]
    /// More for its own help: examples, what is printed.
    package let discussion: String
    package let run: @Sendable (ParsedArguments) async throws -> Void

    package init(
        name: String, summary: String, subcommands: [CommandSpec] = [], operands: String = "",
        operandCount: ClosedRange<Int> = 0...0, options: [OptionSpec] = [], discussion: String = "",
        run: @escaping @Sendable (ParsedArguments) async throws -> Void
    ) {
        self.name = name
        self.summary = summary
        self.subcommands = subcommands
        self.operands = operands
        self.operandCount = operandCount
        self.options = options
        self.discussion = discussion
        self.run = run
    }

    package var usage: String {
        if !subcommands.isEmpty { return "usage: trebuchet \(name) <command> [options]" }
        return "usage: trebuchet \(name)" + (options.isEmpty ? "" : " [options]")
            + (operands.isEmpty ? "" : " \(operands)")
    }

    /// What stands in `operands` and may not be left out: `<room>` and `<member>`.
    package var requiredOperands: [String] { operands.matches(of: /<[^>]*>/).map { String($0.output) } }

    /// The names with their summaries, a line each.
    package static func list(_ commands: [CommandSpec]) -> String {
        let width = commands.map(\.name.count).max() ?? 0
        return commands.map { command in
            "  " + command.name + String(repeating: " ", count: width - command.name.count + 3) + command.summary + "\n"
        }.joined()
    }

    package var help: String {
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
