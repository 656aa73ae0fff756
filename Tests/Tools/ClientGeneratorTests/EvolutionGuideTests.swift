import ClientGenerator
import Foundation
import Testing

/// The output of the tools in the guide "Evolution", for the versions of its app.
@Suite struct EvolutionGuideTests {
    private static func page() throws -> String {
        try String(contentsOf: Checkout.root.appending(path: "Docs/Guides/Evolution.md"), encoding: .utf8)
    }

    /// Returns the declarations of one version, as a source of its own.
    private static func generation(_ version: Int) throws -> Generation {
        let path = "Tests/Server/IntegrationTests/EvolutionActors.swift"
        let text = try String(contentsOf: Checkout.root.appending(path: path), encoding: .utf8)
        let rest = try #require(text.components(separatedBy: "enum Version\(version) {\n").last)
        let source = try #require(rest.components(separatedBy: "\n}\n").first)
        var options = Generation.Options()
        options.includesPrivateStreams = true
        let generation = Generation([(path: path, text: source)], options: options)
        #expect(generation.messages == [])
        return generation
    }

    @Test("the guide shows the changes between the versions", arguments: [1, 2])
    func comparison(old: Int) throws {
        let comparison = try SchemaComparison(
            old: Self.generation(old).schema, new: Self.generation(old + 1).schema)
        let lines = comparison.text(.init()).split(separator: "\n").map { "    \($0)\n" }.joined()
        #expect(lines.count > 200)
        #expect(try Self.page().contains(lines), "the page lacks\n\(lines)")
    }

    @Test("the guide shows the deprecated method in TypeScript")
    func deprecated() throws {
        let line =
            "/** @deprecated use add(text:priority:) */\n        addTodo(title: string, options?: CallOptions): Call<void>"
        #expect(try Self.generation(2).typeScript.contains("        \(line)\n"))
        #expect(try Self.page().contains(line.replacing("\n        ", with: "\n")))
    }
}
