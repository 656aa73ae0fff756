import Foundation
import Testing

/// The names that the guides write outside of code blocks are those of the public interface. `GuideSnippetTests` compiles the blocks.
@Suite struct GuideNamesTests {
    /// Names of Swift, of Foundation, of other libraries and of apps.
    private static let others: Set<String> = [
        "activate", "alarm", "deactivate", "decodeIfPresent", "gracefulShutdown", "healthStatus", "init", "predefined",
        "product", "rate",
        "throws",
        "trebuchet", "withObservationTracking", "withValue",
    ]

    @Test("the names of functions and settings in the guides are public")
    func pages() throws {
        let names = try Names(Repository.current.get().files)
        #expect(names.functions.isSuperset(of: ["withTestServer", "setFaults"]))
        #expect(names.settings.isSuperset(of: ["chunkBytes", "connectionsPerHost"]))
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
        #expect(Self.unknown(in: text, Names(functions: ["close"], settings: ["chunkBytes"])) == unknown)
    }

    /// The functions, which have a parenthesis, and the settings, which are alone and in camel case, that have no such declaration.
    private static func unknown(in page: String, _ names: Names) -> [String] {
        let parts = page.components(separatedBy: "```").enumerated()
        let blocks = parts.filter { $0.offset % 2 == 1 }.map(\.element).joined(separator: "\n")
        let known = others.union(Names.words(in: blocks))
        return parts.filter { $0.offset % 2 == 0 }.flatMap { part in
            part.element.split(separator: "\n").flatMap { line in
                line.split(separator: "`", omittingEmptySubsequences: false).enumerated()
                    .filter { $0.offset % 2 == 1 && !$0.element.contains("Tests") }
                    .flatMap { unknown(inCode: String($0.element), names) }
            }
        }.filter { !known.contains($0) && !$0.hasPrefix("observe") }
    }

    private static func unknown(inCode code: String, _ names: Names) -> [String] {
        let words = Names.slices(of: code).filter { $0.first?.isLowercase == true && !$0.contains("_") }
        if words.count == 1, words[0].count == code.count {
            return code.contains(where: \.isUppercase) && !names.settings.contains(code) ? [code] : []
        }
        return words.filter { code[$0.endIndex...].hasPrefix("(") }.map(String.init).filter {
            !names.functions.contains($0)
        }
    }
}

private struct Names {
    /// What public declarations, cases and requirements of protocols declare.
    var functions: Set<String>
    /// Also argument labels, and keys of JSON.
    var settings: Set<String>

    init(functions: Set<String>, settings: Set<String>) { (self.functions, self.settings) = (functions, settings) }

    init(_ files: [SourceText]) {
        self.init(functions: [], settings: [])
        let keywords: Set<String> = ["func", "var", "let", "case", "macro"]
        for file in files where file.path.hasPrefix("Sources/") {
            var isInProtocol = false
            for (code, line) in zip(file.code, file.lines) {
                if code.hasPrefix("public protocol") { isInProtocol = true }
                if code == "}" { isInProtocol = false }
                let words = Self.slices(of: code).map(String.init)
                if words.first == "case" {
                    functions.formUnion(words)
                } else if isInProtocol || words.contains("public") || words.first == "extension" {
                    for (keyword, name) in zip(words, words.dropFirst()) where keywords.contains(keyword) {
                        functions.insert(name)
                    }
                }
                settings.formUnion(
                    Self.slices(of: code).filter { code[$0.endIndex...].hasPrefix(":") }.map(String.init))
                if line.contains("\"") { settings.formUnion(line.split(separator: "\"").map(String.init)) }
            }
        }
        settings.formUnion(functions)
    }

    static func words(in text: String) -> Set<String> { Set(slices(of: text).map(String.init)) }

    static func slices(of text: String) -> [Substring] {
        text.utf8.split { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): false
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): false
            default: true
            }
        }.map(Substring.init)
    }
}
