/// The tests that a page of Docs names as evidence for its statements.
enum PageTestReferences {
    struct Name: Hashable, CustomStringConvertible {
        let line: Int
        /// Nil for `.function` before the first suite name.
        let suite: String?
        /// Nil for a suite without a function.
        let function: String?

        var description: String { "\(suite ?? "")\(function.map { ".\($0)" } ?? "")" }
    }

    /// `SomeTests` and `SomeTests.function` count anywhere. `.function`, a further test of the suite named before, counts in a column of
    /// tests and in parentheses that contain only names: elsewhere it is Swift.
    static func names(in text: String) -> [Name] {
        var names: [Name] = []
        var suite: String?
        var columns: Set<Int> = []
        for (line, text) in zip(1..., text.split(separator: "\n", omittingEmptySubsequences: false)) {
            let isRow = text.hasPrefix("|")
            let cells = isRow ? text.split(separator: "|", omittingEmptySubsequences: false) : [text]
            if !isRow { columns = [] }
            if isRow, columns.isEmpty {
                columns = Set(cells.indices.filter { ["test", "shown by"].contains(cells[$0].trimmed) })
            }
            for (column, cell) in cells.enumerated() {
                let groups = columns.contains(column) ? [cell.startIndex..<cell.endIndex] : cell.ranges(of: group)
                for match in cell.matches(of: name) {
                    if let named = match.output.1 { suite = String(named) }
                    guard match.output.1 != nil || groups.contains(where: { $0.contains(match.range.lowerBound) })
                    else { continue }
                    names.append(Name(line: line, suite: suite, function: match.output.2.map(String.init)))
                }
            }
        }
        return names
    }

    static func findings(in path: String, _ text: String, files: [SourceText]) -> [Finding] {
        let names = names(in: text)
        let suites = Dictionary(
            uniqueKeysWithValues: Set(names.compactMap(\.suite)).map { suite in
                (suite, Set(files.filter { $0.declares(suite) }.flatMap(\.tests)))
            })
        return names.compactMap { name in
            guard let suite = name.suite, let tests = suites[suite] else {
                return Finding(path: path, line: name.line, message: "\(name): no suite is named before")
            }
            if tests.isEmpty { return Finding(path: path, line: name.line, message: "there is no suite \(suite)") }
            if let function = name.function, !tests.contains(function) {
                return Finding(path: path, line: name.line, message: "there is no test \(name)")
            }
            return nil
        }
    }

    // Regular expressions are not Sendable, so they are created where they are used.
    private static var name: Regex<(Substring, Substring?, Substring?)> { /`(?:(\w+Tests))?(?:\.(\w+))?`/ }
    private static var group: Regex<Substring> { /\((?:`[\w.]+`(?:, )?)+\)/ }
}

extension SourceText {
    /// True if a part of the suite is in the file.
    fileprivate func declares(_ suite: String) -> Bool {
        path.hasPrefix("Tests/") && identifiers.contains(suite)
            && code.contains { line in ["struct", "class", "extension"].contains { line.contains("\($0) \(suite) ") } }
    }

    /// The test functions.
    fileprivate var tests: [String] {
        var tests: [String] = []
        var isTest = false
        for line in code {
            if line.contains("@Test") { isTest = true }
            guard isTest, let function = line.firstMatch(of: /\bfunc (\w+)/) else { continue }
            tests.append(String(function.output.1))
            isTest = false
        }
        return tests
    }
}

extension Substring {
    fileprivate var trimmed: String { split(separator: " ").joined(separator: " ") }
}
