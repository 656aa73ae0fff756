import ClientGenerator
import Foundation
import Testing

/// All actors of this repository, in its sources, examples and tests.
@Suite struct RepositoryTests {
    /// Folders that are generated separately: their actors have equal names.
    static let folders = [
        "Benchmarks", "Sources/Tools/TrebuchetCLI/Demo", "Sources/Services",
        "Tests/Project/DocumentationSnippetTests", "Tests/Fixtures/Interop",
        "Tests/Fixtures/Interop2",
        "Tests/Server/StreamingTests", "Tests/Server/TrebuchetTests", "Tests/Services/TrebuchetServicesTests",
        "Tests/Tools/TrebuchetCLITests",
        "Tests/Transport/ConformanceTests", "Tools/Consistency", "Tests/Server/IntegrationTests",
    ]

    private static func generation(_ folder: String) throws -> Generation {
        let root = Checkout.root.appending(path: folder)
        let paths = FileManager.default.enumerator(atPath: root.path)?.compactMap { $0 as? String } ?? []
        let sources = try paths.filter { $0.hasSuffix(".swift") }.map { path in
            (path: "\(folder)/\(path)", text: try String(contentsOf: root.appending(path: path), encoding: .utf8))
        }
        return Generation(sources)
    }

    @Test("each folder's actors are found", arguments: folders)
    func read(folder: String) throws {
        let generation = try Self.generation(folder)
        #expect(generation.problems.filter { $0.severity == .error }.map(\.description) == [])
        #expect(!generation.model.actors.isEmpty)
    }

    @Test("the generated clients compile under tsc --strict", .enabled(if: Run.exists("tsc")))
    func compiles() throws {
        try withTemporaryFolder { folder in
            let files = try Self.folders.map { name in
                (name.replacing("/", with: "-") + ".ts", try Self.generation(name).typeScript)
            }
            try compile(files, in: folder)
        }
    }

    @Test("targets equal those of the macro's dispatch tables")
    func targets() throws {
        let demo = try Self.generation("Sources/Tools/TrebuchetCLI/Demo").model.actors
        let todos = try #require(demo.first { $0.name == "TodoList" })
        #expect(todos.methods.map(\.target) == ["addTodo(title:)", "toggleTodo(id:)", "removeTodo(id:)"])
        #expect(todos.states.map(\.target) == ["observeState"])
    }
}
