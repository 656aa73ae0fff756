import Testing

@testable import TrebuchetServices

@Suite struct NamePatternTests {
    @Test(
        "a star matches any characters, including none",
        arguments: [
            ("todos", ["todos"], ["todo", "todos2", ""]), ("*", ["", "a", "a-b"], []),
            ("log-*", ["log-", "log-2025"], ["log", "blog-1"]), ("*-log", ["-log", "a-log"], ["log", "a-logs"]),
            ("a*b", ["ab", "a-b", "abb"], ["a", "b", "ba"]), ("a*a", ["aa", "aba"], ["a"]),
            ("a*b*c", ["abc", "a1b2c"], ["acb", "ac"]), ("**", ["", "x"], []), ("a*b*b", ["abb", "a1b2b"], ["ab"]),
        ])
    func matches(pattern: String, names: [String], others: [String]) {
        let pattern = NamePattern(pattern)
        #expect(names.filter { !pattern.matches($0) } == [])
        #expect(others.filter { pattern.matches($0) } == [])
    }

    @Test("a longer pattern is more specific; an exact name is the most specific")
    func precision() {
        let patterns = ["*", "a*", "a*b", "log-*", "x"].map { NamePattern($0) }
        #expect(patterns.map(\.precision) == patterns.map(\.precision).sorted())
        #expect(Set(patterns.map(\.precision)).count == patterns.count)
        #expect(patterns.map(\.isName) == [false, false, false, false, true])
    }
}
