/// A command with its options and operands, from which the help is generated.
package struct CommandSpec: Sendable {
    package let name: String
    /// The line of the command in the list of commands.
    package let summary: String
    /// The subcommands, as in `trebuchet bench rpc`. Their names begin with the name of this command.
    package let subcommands: [CommandSpec]
    /// The operands after the options: `<actor> <method> [json …]`.
    package let operands: String
    /// The minimum and maximum number of operands.
    package let operandCount: ClosedRange<Int>
    package let options: [OptionSpec]
    /// The text after the options in the command's help: examples, output format.
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

    /// The required operands in `operands`, such as `<room>` and `<member>`.
    package var requiredOperands: [String] { operands.matches(of: /<[^>]*>/).map { String($0.output) } }

    /// Returns the names with their summaries, one line each.
    package static func list(_ commands: [CommandSpec]) -> String {
        let width = commands.map(\.name.count).max() ?? 0
        return commands.map { command in
            "  " + command.name + String(repeating: " ", count: width - command.name.count + 3) + command.summary + "\n"
        }.joined()
    }

    package var help: String {
        var text = "\(summary)\n\n\(usage)\n"
        if !subcommands.isEmpty { text += "\ncommands:\n" + Self.list(subcommands) }
        let all = options + [OptionSpec("--help", nil, "print this help and exit")]
        let heads = all.map(\.head)
        let width = heads.map(\.count).max() ?? 0
        text += "\noptions:\n"
        for (option, head) in zip(all, heads) {
            text += "  " + head + String(repeating: " ", count: width - head.count + 3) + option.help + "\n"
        }
        if !discussion.isEmpty { text += "\n" + discussion + "\n" }
        return text
    }
}
