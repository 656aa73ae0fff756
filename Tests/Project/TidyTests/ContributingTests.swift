import Foundation
import TestSupport
import Testing

/// CONTRIBUTING.md: its examples match the code, and its commands work.
@Suite struct ContributingTests {
    private let page = try? String(contentsOf: Repository.root.appending(path: "CONTRIBUTING.md"), encoding: .utf8)
    private let repository: Repository

    init() throws { repository = try Repository.current.get() }

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Repository.root.appending(path: path), encoding: .utf8)
    }

    @Test("the test shown on the page is in the file named before it")
    func code() throws {
        let parts = try #require(page).components(separatedBy: "```swift\n")
        #expect(parts.count == 2)
        let file = try #require(parts[0].matches(of: /`((?:Sources|Tests)\/[\w\/]+\.swift)`/).last).1
        let piece = try #require(parts[1].components(separatedBy: "```").first)
        #expect(try text(String(file)).contains(piece), "not in \(file):\n\(piece)")
    }

    @Test("the patch is the whole change: after its removal by the page's command, the code has none of it")
    func patch() async throws {
        let page = try #require(page)
        let command = try #require(page.firstMatch(of: /\n    (sed .*git apply -R)\n/)).1
        let rest = try #require(page.components(separatedBy: "```diff\n").dropFirst().first)
        let patch = rest.components(separatedBy: "```")[0]
        let file = String(try #require(patch.firstMatch(of: /\+\+\+ b\/(\S+)\n/)).1)
        let folder = FileManager.default.temporaryDirectory.appending(path: "ContributingTests-\(UUID())")
        let copy = folder.appending(path: file)
        try FileManager.default.createDirectory(
            at: copy.deletingLastPathComponent(), withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try page.write(to: folder.appending(path: "CONTRIBUTING.md"), atomically: true, encoding: .utf8)
        try text(file).write(to: copy, atomically: true, encoding: .utf8)

        let outcome = try await ChildProcess(
            "/usr/bin/env", ["-C", folder.path, "bash", "-o", "pipefail", "-c", String(command)], error: .merged
        ).finish()
        #expect(outcome.status == 0, "\(outcome.output)")
        let before = try String(contentsOf: copy, encoding: .utf8)
        let added = patch.split(separator: "\n").filter { $0.hasPrefix("+ ") }.joined(separator: "\n")
        let names = added.matches(of: /\b(?:let|var) (\w+)/).map { String($0.1) }
        #expect(names.count == 3)
        let left = SourceText(path: file, before).identifiers.intersection(names)
        #expect(left.isEmpty, "\(left) in \(file)")
        #expect(!before.contains(/--time\b/))
    }

    @Test("scripts, tests, options and files named on the page exist")
    func names() throws {
        let page = try #require(page)
        for script in Set(page.matches(of: /scripts\/[\w-]+/).map { String($0.output) }) {
            let path = Repository.root.appending(path: script).path
            #expect(FileManager.default.isExecutableFile(atPath: path), "\(script)")
        }
        for path in page.matches(of: /\]\(([^)h][^)]*)\)|`((?:Sources|Tests|Docs|\.github)\/[^`]+)`/) {
            let path = String(path.1 ?? path.2 ?? "")
            #expect(FileManager.default.fileExists(atPath: Repository.root.appending(path: path).path), "\(path)")
        }
        for filter in page.matches(of: /--filter (\w+)(?:\.(\w+))?/) {
            let suite = repository.files.filter { $0.path.hasSuffix("/\(filter.1).swift") }
            #expect(!suite.isEmpty, "\(filter.1)")
            if let test = filter.2 { #expect(suite.contains { $0.identifiers.contains(String(test)) }, "\(test)") }
        }
        for list in page.matches(of: /TREBUCHET_TESTS=(\S+)/) {
            for name in list.1.split(separator: ",") {
                #expect(repository.manifest.target(String(name)) != nil, "\(name)")
            }
        }
        let words = try #require(page.firstMatch(of: /grep -rn "(.*)" Sources/)).1
        let sources = repository.files.filter { $0.path.hasPrefix("Sources/") }
        #expect(sources.count { $0.lines.contains { $0.contains(words) } } == 1)
        #expect(
            PageTestReferences.findings(in: "CONTRIBUTING.md", page, files: repository.files).map(\.description) == [])
    }

    @Test("the workflows call existing scripts, and the package index documents the libraries")
    func settings() throws {
        for workflow in ["test", "nightly"] {
            let scripts = try text(".github/workflows/\(workflow).yml").matches(of: /scripts\/[\w-]+/).map {
                String($0.output)
            }
            #expect(!scripts.isEmpty)
            for script in scripts {
                let path = Repository.root.appending(path: script).path
                #expect(FileManager.default.isExecutableFile(atPath: path), "\(script)")
            }
        }
        let documented = try text(".spi.yml").matches(of: /- (\w+)\n/).map { String($0.1) }
        let libraries = try text("Package.swift").matches(of: /\.library\(name: "(\w+)"/).map { String($0.1) }
        #expect(documented.sorted() == libraries.sorted())
    }
}
