import Foundation
import TestSupport
import Testing

@Suite struct NamedTestsTests {
    @Test("every test named on a page of Docs exists")
    func pages() throws {
        let folder = packageRoot.appending(path: "Docs")
        let files = try Repository.current.get().files
        var counts: [String: Int] = [:]
        for page in try FileManager.default.subpathsOfDirectory(atPath: folder.path) where page.hasSuffix(".md") {
            let text = try String(contentsOf: folder.appending(path: page), encoding: .utf8)
            counts[(page as NSString).lastPathComponent] = PageTestReferences.names(in: text).count
            for finding in PageTestReferences.findings(in: "Docs/\(page)", text, files: files) {
                Issue.record("\(finding)")
            }
        }
        for page in ["Conformance", "Persistence", "Services", "SharedState", "Streaming", "ThreatModel"] {
            #expect(counts["\(page).md", default: 0] >= 15, "\(page)")
        }
    }

    @Test(
        "names of tests are found in text, in columns of tests and in parentheses",
        arguments: [
            ("`ATests`", ["ATests"]),
            ("It holds: `ATests.one`.", ["ATests.one"]),
            ("(`ATests.one`, `.two`), and (`.three`)", ["ATests.one", "ATests.two", "ATests.three"]),
            ("`.one`, with `ATests.two`, `.three` (or `.four` so)", ["ATests.two"]),
            ("| what | test |\n|---|---|\n| `.a` | `ATests.b`, `.c` |", ["ATests.b", "ATests.c"]),
            ("| what | shown by |\n|---|---|\n| `.a` | `.c` |", [".c"]),
            ("| what | limit |\n|---|---|\n| `.a` | `.c` |", []),
            ("| what | test |\n|---|---|\n\n| what | limit |\n|---|---|\n| `.a` | `.c` |", []),
            ("`swift test --filter ATests`, ATests.two, `Tests/ATests`", []),
        ])
    func names(text: String, expected: [String]) {
        #expect(PageTestReferences.names(in: text).map(\.description) == expected)
    }

    @Test(
        "a name without its test is found",
        arguments: [
            ("`ATests.one`", true), ("`ATests`", true), ("`ATests.two`", true), ("`ATests.three`", true),
            ("`ATests.five`", true), ("`ATests.helper`", false), ("`ATests.four`", false), ("`BTests`", false),
            ("(`.one`)", false),
        ])
    func findings(text: String, isThere: Bool) {
        let suite = SourceText(
            path: "Tests/Base/ATests/ATests.swift",
            """
            @Suite struct ATests {
                @Test("one thing holds")
                func one() {}
                @Test("two things hold") func two() {}
                @Test(
                    "three things hold",
                    arguments: [1])
                func three(a: Int) {
                }
                func helper() {}
                // @Test func four() {}
            }
            """)
        let more = SourceText(
            path: "Tests/Base/ATests/ATests+more.swift", "extension ATests {\n    @Test func five() {}\n}")
        #expect(PageTestReferences.findings(in: "Docs/A.md", text, files: [suite, more]).isEmpty == isThere)
    }
}
