/// A problem in a rules file.
public struct RuleProblem: Sendable, Hashable, CustomStringConvertible {
    /// The name of the file, as it was given: `rules.json`.
    public let file: String
    /// The line, from 1; nil for the file as a whole.
    public let line: Int?
    /// The column in characters, from 1; nil for a problem of a member.
    public let column: Int?
    /// The member, as `collections.todos.update`; nil for a syntax error.
    public let member: String?
    /// The description of the problem, with a suggestion if there is one.
    public let message: String

    /// The text form: `rules.json:12: collections.todos.update: 'usr' is no role; did you mean 'user'?`
    public var description: String {
        let position = [line, column].compactMap(\.self).map { ":\($0)" }.joined()
        return "\(file)\(position): \(member.map { $0.isEmpty ? "" : "\($0): " } ?? "")\(message)"
    }
}

/// An invalid rules file, with all of its problems.
public struct RulesFileError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The problems in the order of their lines; at least one.
    public let problems: [RuleProblem]

    /// The text form, with one line for each problem.
    public var description: String { problems.map(\.description).joined(separator: "\n") }
}
