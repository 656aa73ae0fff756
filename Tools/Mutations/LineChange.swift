/// The source lines that a mutant changes, and their replacements.
public struct LineChange: Equatable, Sendable {
    /// The number of the first changed line, from 1.
    public let line: Int
    public let before: [String]
    public let after: [String]
    /// Up to two lines around it.
    private let leading: [String]
    private let trailing: [String]

    init(of source: String, _ change: Range<Int>, _ replacement: String) {
        let bytes = Array(source.utf8)
        let changed = bytes[..<change.lowerBound] + Array(replacement.utf8) + bytes[change.upperBound...]
        let old = Self.lines(bytes)
        var new = Self.lines(Array(changed))
        var first = 0
        while first < min(old.count, new.count), old[first] == new[first] { first += 1 }
        var last = 0
        while last < min(old.count, new.count) - first, old[old.count - 1 - last] == new[new.count - 1 - last] {
            last += 1
        }
        line = first + 1
        before = Array(old[first..<(old.count - last)])
        new = Array(new[first..<(new.count - last)])
        // A line without remaining text is removed.
        after = new.filter { line in line.contains { !$0.isWhitespace } }
        leading = Array(old[max(0, first - 2)..<first])
        trailing = Array(old[(old.count - last)..<min(old.count, old.count - last + 2)])
    }

    private static func lines(_ bytes: [UInt8]) -> [String] {
        String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// Formatted like `diff -u`.
    public func unified(file: String) -> String {
        let from = line - leading.count
        let (old, new) = (leading.count + before.count + trailing.count, leading.count + after.count + trailing.count)
        let head = ["--- a/\(file)", "+++ b/\(file)", "@@ -\(from),\(old) +\(from),\(new) @@"]
        let body =
            leading.map { " " + $0 } + before.map { "-" + $0 } + after.map { "+" + $0 } + trailing.map { " " + $0 }
        return (head + body).joined(separator: "\n")
    }
}
