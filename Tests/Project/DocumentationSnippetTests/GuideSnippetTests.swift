import Foundation
import TestSupport
import Testing

/// The Swift code of the guides is compiled: it occurs in a source of the tests or the examples.
@Suite struct GuideSnippetTests {
    private static let root = packageRoot
    private static let guides = root.appending(path: "Docs/Guides")
    /// Pages that other tests compile: `TutorialStepTests` and `ChatExample`.
    private static let otherwiseCompiled = ["ChatTutorial.md", "GettingStarted.md"]
    private static let pages =
        (try? FileManager.default.contentsOfDirectory(atPath: guides.path))?
        .filter { $0.hasSuffix(".md") && !otherwiseCompiled.contains($0) }.sorted() ?? []

    /// The lines of all sources that may have the code of a page, one text for each file.
    private static let sources: [String] = {
        let folders = [
            "Tests/Project/DocumentationSnippetTests", "Tests/Server/IntegrationTests", "Tests/Tools/TrebuchetCLITests",
            "Examples",
        ]
        var files: [URL] = []
        for folder in folders.map({ root.appending(path: $0) }) {
            let paths = (try? FileManager.default.subpathsOfDirectory(atPath: folder.path)) ?? []
            files += paths.filter { $0.hasSuffix(".swift") && !$0.contains(".build") }.map {
                folder.appending(path: $0)
            }
        }
        return files.compactMap { try? String(contentsOf: $0, encoding: .utf8) }.map { text($0.split(separator: "\n")) }
    }()

    /// A source may have another indentation and access level, and may discard a value that a page only shows.
    private static func text(_ lines: some Sequence<Substring>) -> String {
        let lines = lines.map { line in
            var line = line.trimmingCharacters(in: .whitespaces)
            for prefix in ["fileprivate ", "private ", "_ = "] {
                line = line.replacingOccurrences(of: prefix, with: "")
            }
            return line
        }
        return "\n" + lines.filter { !$0.isEmpty }.joined(separator: "\n") + "\n"
    }

    /// The parts of a page's code that belong together: without imports, split at empty lines, at the end of a declaration and
    /// at lines that omit code.
    private static func parts(of block: String) -> [[Substring]] {
        var parts: [[Substring]] = [[]]
        for line in block.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.isEmpty || line.contains("…") {
                parts.append([])
            } else if !["import ", "public import ", "// import "].contains(where: { line.hasPrefix($0) }) {
                parts[parts.count - 1].append(line)
                if line == "}" { parts.append([]) }
            }
        }
        return parts.filter { !$0.isEmpty }
    }

    @Test("the Swift code of a guide is compiled", arguments: pages)
    func page(_ name: String) throws {
        let page = try String(contentsOf: Self.guides.appending(path: name), encoding: .utf8)
        for block in page.components(separatedBy: "```swift\n").dropFirst() {
            for part in Self.parts(of: block.components(separatedBy: "```")[0]) {
                let part = Self.text(part)
                #expect(Self.sources.contains { $0.contains(part) }, "no source has this code of \(name):\(part)")
            }
        }
    }

    @Test("the comparison finds a changed line")
    func changed() throws {
        #expect(Self.pages.count > 15)
        let block = "import Trebuchet\n\nlet a = 1\n    let b = 2\n…\nlet c = 3\n}\nlet d = 4\n"
        #expect(
            Self.parts(of: block).map { Self.text($0) } == [
                "\nlet a = 1\nlet b = 2\n", "\nlet c = 3\n}\n", "\nlet d = 4\n",
            ])
        #expect(Self.sources.contains { $0.contains("\nlet temperature = StateRelay(20)\n") })
        #expect(!Self.sources.contains { $0.contains("\nlet temperature = StateRelay(\(20 + 1))\n") })
    }
}
