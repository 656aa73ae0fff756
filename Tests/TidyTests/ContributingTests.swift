import Foundation
import Testing

/// CONTRIBUTING.md: what it shows stands in the code, and what it has one type is there.
@Suite struct ContributingTests {
    private let page = try? String(contentsOf: Repository.root.appending(path: "CONTRIBUTING.md"), encoding: .utf8)
    private let repository: Repository

    init() throws { repository = try Repository.current.get() }

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Repository.root.appending(path: path), encoding: .utf8)
    }

    @Test("each piece of code stands in the file that is named before it")
    func code() throws {
        var file = ""
        let parts = try #require(page).components(separatedBy: "```")
        #expect(parts.count == 7)
        for (index, part) in parts.enumerated() {
            if index % 2 == 0 {
                file = part.matches(of: /`((?:Sources|Tests)\/[\w\/]+\.swift)`/).last.map { String($0.1) } ?? file
            } else {
                #expect(try text(file).contains(part.dropFirst("swift\n".count)), "not in \(file):\n\(part)")
            }
        }
    }

    @Test("scripts, tests, options and files that it names are there")
    func names() throws {
        let page = try #require(page)
        for script in Set(page.matches(of: /scripts\/\w+/).map { String($0.output) }) {
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
        #expect(NamedTests.findings(in: "CONTRIBUTING.md", page, files: repository.files).map(\.description) == [])
    }

    @Test("the workflows call scripts that are there, and the package index documents the libraries")
    func settings() throws {
        for workflow in ["test", "nightly"] {
            let scripts = try text(".github/workflows/\(workflow).yml").matches(of: /scripts\/\w+/).map {
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
