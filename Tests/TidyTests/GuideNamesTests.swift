import Foundation
import Testing

/// The names that the guides write outside of code blocks are those of the public interface. `GuideSnippetTests` compiles the blocks.
@Suite struct GuideNamesTests {
    /// Names of Swift, of Foundation, of other libraries and of apps.
    private static let others: Set<String> = [
        "deactivate", "decodeIfPresent", "gracefulShutdown", "healthStatus", "init", "predefined", "product", "rate",
        "throws",
        "trebuchet", "withObservationTracking", "withValue",
    ]

    @Test("the names of functions and settings in the guides are public")
    func pages() throws {
        let names = try Self.publicNames()
        #expect(names.isSuperset(of: ["withTestServer", "setFaults", "chunkBytes", "callsPerConnectionRate"]))
        let guides = Repository.root.appending(path: "Docs/Guides")
        // The pages of the web client have names of JavaScript.
        let pages = try FileManager.default.contentsOfDirectory(atPath: guides.path)
            .filter { $0.hasSuffix(".md") && !$0.hasPrefix("Web") }.sorted()
        #expect(pages.count > 15)
        for page in pages {
            let text = try String(contentsOf: guides.appending(path: page), encoding: .utf8)
            for name in Self.unknown(in: text, names) { Issue.record("Docs/Guides/\(page): '\(name)' is not public") }
        }
    }

    @Test(
        "a name without a public declaration is found",
        arguments: [
            ("`use()` and `cutAll(.late)`", ["use", "cutAll"]), ("`pieceBytes`", ["pieceBytes"]),
            ("`link.close()`", []),
            ("`chunkBytes`, `once`", []), ("`ATests.all(in:)`", []), ("`observeMoves(since:)`", []),
            ("```swift\nfunc add() {}\n```\nIt calls `add()` and `sub()`.", ["sub"]),
        ])
    func findings(text: String, unknown: [String]) {
        #expect(Self.unknown(in: text, ["close", "chunkBytes"]) == unknown)
    }

    /// Functions, which have a parenthesis, and settings, which are camel case and alone.
    private static func unknown(in page: String, _ names: Set<String>) -> [String] {
        let parts = page.components(separatedBy: "```")
        let blocks = parts.enumerated().filter { $0.offset % 2 == 1 }.map(\.element).joined(separator: "\n")
        let names = names.union(others).union(words(in: blocks[...]).map(String.init))
        return parts.enumerated().filter { $0.offset % 2 == 0 }.flatMap { part in
            part.element.split(separator: "\n").flatMap { line in
                line.split(separator: "`", omittingEmptySubsequences: false).enumerated()
                    .filter { $0.offset % 2 == 1 && !$0.element.contains("Tests") }
                    .flatMap { candidates(in: $0.element) }
            }
        }.filter { !names.contains($0) && !$0.hasPrefix("observe") }
    }

    private static func candidates(in code: Substring) -> [String] {
        let words = words(in: code)
        if words.count == 1, words[0].count == code.count, words[0].contains(where: \.isUppercase), isMember(words[0]) {
            return [String(code)]
        }
        return words.filter { $0.endIndex < code.endIndex && code[$0.endIndex] == "(" && isMember($0) }.map(String.init)
    }

    private static func isMember(_ word: Substring) -> Bool { word.first?.isLowercase == true && !word.contains("_") }

    private static func words(in text: Substring) -> [Substring] {
        text.split { !($0.isLetter || $0.isNumber || $0 == "_") }
    }

    private static func isLabel(_ word: Substring) -> Bool { word.base[word.endIndex...].hasPrefix(":") }

    /// Every word of a public declaration, of a case and of a requirement of a protocol; argument labels; and words in quotes, as keys
    /// of JSON.
    private static func publicNames() throws -> Set<String> {
        var names: Set<String> = []
        for file in try Repository.current.get().files where file.path.hasPrefix("Sources/") {
            var isInProtocol = false
            for (code, line) in zip(file.code, file.lines) {
                let start = code.drop { $0 == " " }
                if start.hasPrefix("public protocol") { isInProtocol = true }
                if code == "}" { isInProtocol = false }
                let words = words(in: code[...])
                let isPublic = isInProtocol || start.hasPrefix("case ") || code.contains("public ")
                names.formUnion((isPublic ? words : words.filter { isLabel($0) }).map(String.init))
                if line.contains("\"") { names.formUnion(line.split(separator: "\"").map(String.init)) }
            }
        }
        return names
    }
}
