/// The equivalent mutants, as a file of the repository lists them with their reasons.
///
/// An entry is a paragraph: the file and the function, the lines of the diff, and the reason.
///
///     Sources/Transport/Networking/TimerQueue.swift TimerQueue.pop
///     -        if a < b {
///     +        if a <= b {
///     Equal times may come in any order.
public struct EquivalentMutants: Sendable {
    public struct Entry: Sendable {
        public let file: String
        public let function: String
        /// Without surrounding spaces.
        public let before: [String]
        public let after: [String]
        public let reason: String

        /// - Parameter source: the source of the mutant's file.
        func describes(_ mutant: Mutant, in source: String) -> Bool {
            guard file == mutant.file, function == mutant.function else { return false }
            let change = mutant.difference(in: source)
            return before == EquivalentMutants.trimmed(change.before)
                && after == EquivalentMutants.trimmed(change.after)
        }
    }

    public struct MalformedEntry: Error, CustomStringConvertible {
        public let description: String
    }

    public let entries: [Entry]

    public init(_ text: String) throws(MalformedEntry) {
        var entries: [Entry] = []
        var lines: [Substring] = []
        let all: [Substring] = text.split(separator: "\n", omittingEmptySubsequences: false) + [""]
        for line in all {
            if line.hasPrefix("#") { continue }
            if !line.allSatisfy(\.isWhitespace) {
                lines.append(line)
            } else if !lines.isEmpty {
                entries.append(try Self.entry(lines))
                lines = []
            }
        }
        self.entries = entries
    }

    private static func entry(_ lines: [Substring]) throws(MalformedEntry) -> Entry {
        let head = lines[0].split(separator: " ")
        let (before, after) = (lines.filter { $0.hasPrefix("-") }, lines.filter { $0.hasPrefix("+") })
        let reason = lines.dropFirst().filter { !$0.hasPrefix("-") && !$0.hasPrefix("+") }.joined(separator: " ")
        guard head.count == 2, !before.isEmpty, !reason.isEmpty else {
            throw MalformedEntry(
                description:
                    "an entry is a line 'FILE FUNCTION', lines with - and +, and a reason; invalid entry: \(lines[0])")
        }
        return Entry(
            file: String(head[0]), function: String(head[1]), before: trimmed(before.map { $0.dropFirst() }),
            after: trimmed(after.map { $0.dropFirst() }), reason: reason)
    }

    /// - Parameter source: the source of the mutant's file.
    public func entry(for mutant: Mutant, in source: String) -> Entry? {
        entries.first { $0.describes(mutant, in: source) }
    }

    fileprivate static func trimmed(_ lines: [some StringProtocol]) -> [String] {
        lines.map { line in
            String(line.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
        }
    }
}
