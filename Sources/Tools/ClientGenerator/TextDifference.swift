/// The first difference between a file and its expected content.
package struct TextDifference: Equatable, CustomStringConvertible {
    /// The line, counted from 1.
    package let line: Int
    package let found: String?
    package let expected: String?

    /// Compares two texts; nil if they are equal.
    package init?(_ found: String, expected: String) {
        guard found != expected else { return nil }
        let lines = found.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let other = expected.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let index = zip(lines, other).enumerated().first { $1.0 != $1.1 }?.offset ?? min(lines.count, other.count)
        line = index + 1
        self.found = lines.indices.contains(index) ? lines[index] : nil
        self.expected = other.indices.contains(index) ? other[index] : nil
    }

    package var description: String {
        "line \(line)\n  is:        \(found ?? "(the file ends)")\n  should be: \(expected ?? "(the file ends)")"
    }
}
