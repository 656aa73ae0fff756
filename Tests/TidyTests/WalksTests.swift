import Foundation
import Testing

/// Docs/Walks.md against the code.
struct WalksTests {
    private struct Stop {
        let file: String
        let function: String
    }

    private func walks() throws -> [[Stop]] {
        let text = try String(contentsOf: Repository.root.appending(path: "Docs/Walks.md"), encoding: .utf8)
        return text.split(separator: "\n## ").dropFirst().map { section in
            section.matches(of: /\| \d+ \| `([^`]+\.swift)` \| `(\w+)` \|/).map {
                Stop(file: String($0.output.1), function: String($0.output.2))
            }
        }
    }

    @Test("each stop of a walk is a function of a file")
    func stops() throws {
        let files = Dictionary(
            grouping: try Repository.current.get().files.filter { $0.path.hasPrefix("Sources/") }, by: \.name)
        for stop in try walks().joined() {
            let found = files[stop.file] ?? []
            #expect(found.count == 1, "\(stop.file)")
            let names = found.flatMap(\.code).flatMap { $0.matches(of: /\bfunc (\w+)/).map { String($0.output.1) } }
            #expect(names.contains(stop.function), "\(stop.file) has no function \(stop.function)")
        }
    }

    @Test("no walk is longer than 25 stops")
    func length() throws {
        let walks = try walks()
        #expect(walks.count == 2)
        for walk in walks { #expect((10...25).contains(walk.count)) }
    }
}
