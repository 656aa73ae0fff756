/// Compares two texts line by line: lines only in the first are marked `−`, lines only in the second `+`.
enum TextDiff {
    /// The number of equal lines that are shown around a difference.
    private static let context = 2
    private static let lineLimit = 2_000

    /// A line of the difference.
    private enum Line {
        case same(String)
        case removed(String)
        case added(String)
    }

    /// Returns the difference of two values; nil when their descriptions are equal.
    static func ofValues(expected: Any, actual: Any) -> String? {
        of(ValueText.lines(of: expected), ValueText.lines(of: actual))
    }

    static func of(_ expected: [String], _ actual: [String]) -> String? {
        guard expected != actual else { return nil }
        let lines = align(expected, actual)
        let changes = lines.indices.filter { if case .same = lines[$0] { false } else { true } }
        var shown = Set<Int>()
        for change in changes { shown.formUnion(change - context...change + context) }
        // The first line contains the type of the value.
        shown.insert(0)
        var text: [String] = []
        var hidden = 0
        for (index, line) in lines.enumerated() {
            guard shown.contains(index) else {
                hidden += 1
                continue
            }
            if hidden > 0 { text.append("    … (\(hidden) unchanged)") }
            hidden = 0
            switch line {
            case .same(let line): text.append("    " + line)
            case .removed(let line): text.append("  − " + line)
            case .added(let line): text.append("  + " + line)
            }
        }
        if hidden > 0 { text.append("    … (\(hidden) unchanged)") }
        return text.joined(separator: "\n")
    }

    /// Aligns the texts by their longest common subsequence.
    private static func align(_ old: [String], _ new: [String]) -> [Line] {
        let head = zip(old, new).prefix { $0 == $1 }.count
        let tail = zip(old.dropFirst(head).reversed(), new.dropFirst(head).reversed()).prefix { $0 == $1 }.count
        let left = Array(old[head..<old.count - tail])
        let right = Array(new[head..<new.count - tail])
        var middle: [Line] = []
        if left.count > lineLimit || right.count > lineLimit {
            // The table would be too large: shows all of one text, then all of the other.
            middle = left.map(Line.removed) + right.map(Line.added)
        } else {
            middle = alignAll(left, right)
        }
        return old[..<head].map(Line.same) + middle + old[(old.count - tail)...].map(Line.same)
    }

    private static func alignAll(_ old: [String], _ new: [String]) -> [Line] {
        var lengths = [[Int]](repeating: [Int](repeating: 0, count: new.count + 1), count: old.count + 1)
        for i in old.indices.reversed() {
            for j in new.indices.reversed() {
                lengths[i][j] =
                    old[i] == new[j] ? lengths[i + 1][j + 1] + 1 : max(lengths[i + 1][j], lengths[i][j + 1])
            }
        }
        var (i, j) = (0, 0)
        var lines: [Line] = []
        while i < old.count || j < new.count {
            if i < old.count, j < new.count, old[i] == new[j] {
                lines.append(.same(old[i]))
                (i, j) = (i + 1, j + 1)
            } else if j == new.count || (i < old.count && lengths[i + 1][j] >= lengths[i][j + 1]) {
                lines.append(.removed(old[i]))
                i += 1
            } else {
                lines.append(.added(new[j]))
                j += 1
            }
        }
        return lines
    }
}
