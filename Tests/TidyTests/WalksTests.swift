import Foundation
import Testing

/// Docs/Walks.md against the code.
struct WalksTests {
    private struct Stop {
        /// From the root of the repository.
        let path: String
        let function: String
    }

    /// In the order of the page; each stop has a link to its file.
    private func walks() throws -> [[Stop]] {
        let text = try String(contentsOf: Repository.root.appending(path: "Docs/Walks.md"), encoding: .utf8)
        return text.split(separator: "\n## ").dropFirst().map { section in
            let stops = section.matches(of: /\| \d+ \| \[`([^`\/]+\.swift)`\]\(\.\.\/([^)]+)\) \| `(\w+)` \|/)
            for stop in stops { #expect(stop.output.2.hasSuffix("/\(stop.output.1)")) }
            #expect(stops.count == section.matches(of: /\n\| \d/).count)
            return stops.map { Stop(path: String($0.output.2), function: String($0.output.3)) }
        }
    }

    @Test("each stop of a walk is a function of a file")
    func stops() throws {
        let files = Dictionary(grouping: try Repository.current.get().files, by: \.path)
        for stop in try walks().joined() {
            let found = files[stop.path] ?? []
            #expect(found.count == 1, "\(stop.path)")
            let names = found.flatMap(\.code).flatMap { $0.matches(of: /\bfunc (\w+)/).map { String($0.output.1) } }
            #expect(names.contains(stop.function), "\(stop.path) has no function \(stop.function)")
        }
    }

    @Test("no walk is longer than 25 stops")
    func length() throws {
        let walks = try walks()
        #expect(walks.count == 2)
        for walk in walks { #expect((10...25).contains(walk.count)) }
    }
}
