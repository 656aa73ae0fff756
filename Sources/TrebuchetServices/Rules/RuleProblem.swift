/// What is wrong with a file of rules.
public struct RuleProblem: Sendable, Hashable, CustomStringConvertible {
    /// As it was named: `rules.json`.
    public let file: String
    /// From 1 on; nil for the file as a whole.
    public let line: Int?
    /// In characters, from 1 on; nil for what is said of a member.
    public let column: Int?
    /// `collections.todos.update`; nil for text that is no JSON.
    public let member: String?
    /// What is wrong, and what is meant perhaps.
    public let message: String

    /// `rules.json:12: collections.todos.update: 'usr' is no role; did you mean 'user'?`
    public var description: String {
        let place = [line, column].compactMap(\.self).map { ":\($0)" }.joined()
        return "\(file)\(place): \(member.map { $0.isEmpty ? "" : "\($0): " } ?? "")\(message)"
    }
}

/// A file of rules that cannot be used, with all that is wrong with it.
public struct RuleBookError: Error, Sendable, Hashable, CustomStringConvertible {
    /// In the order of their lines; at least one.
    public let problems: [RuleProblem]

    /// A line for each.
    public var description: String { problems.map(\.description).joined(separator: "\n") }
}
