import ClientGenerator
import Foundation
import Testing

/// The files in Web/vectors: values of each kind as the wire's coder encodes them, and the client that reads them.
///
/// With `TREBUCHET_WRITE_VECTORS=1` these tests write the files; otherwise they check them.
@Suite struct VectorTests {
    private static let isWriting = ProcessInfo.processInfo.environment["TREBUCHET_WRITE_VECTORS"] == "1"

    @Test("values are encoded as in Web/vectors/values.json")
    func values() throws {
        // Texts in texts, so that each number keeps its digits.
        let rows = try VectorRow.all().map { row in
            "  {\n    \"method\": \(Self.quoted(row.method)),\n    \"json\": \(Self.quoted(row.json)),\n"
                + "    \"value\": \(row.value)\n  }"
        }
        try compare("values.json", with: "[\n\(rows.joined(separator: ",\n"))\n]\n")
    }

    @Test("the client of their types is Web/vectors/vectors.ts")
    func client() throws {
        var options = Generation.Options()
        options.runtime = "../dist/trebuchet.js"
        let path = "Tests/Tools/ClientGeneratorTests/VectorTypes.swift"
        options.command = "trebuchet generate typescript \(path) --runtime \(options.runtime)"
        let text = try String(contentsOf: Checkout.root.appending(path: path), encoding: .utf8)
        let generation = Generation([(path: path, text: text)], options: options)
        #expect(generation.problems.map(\.description) == [])
        try compare("vectors.ts", with: generation.typeScript)
    }

    @Test("the table has a value of each method of the types")
    func complete() throws {
        let path = Checkout.root.appending(path: "Tests/Tools/ClientGeneratorTests/VectorTypes.swift")
        let generation = Generation([(path: "VectorTypes.swift", text: try String(contentsOf: path, encoding: .utf8))])
        let methods = generation.model.actors.flatMap(\.methods).map(\.name)
        #expect(Set(try VectorRow.all().map(\.method)) == Set(methods))
    }

    @Test("the client of their types compiles under tsc --strict", .enabled(if: Run.exists("tsc")))
    func compiles() throws {
        let options = [
            "--noEmit", "--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes", "--noUnusedLocals",
            "--target", "es2022", "--module", "es2022", "--moduleResolution", "node16", "vectors.ts",
        ]
        #expect(try Run("tsc", options, in: Checkout.root.appending(path: "Web/vectors")).output == "")
    }

    @Test("Node reads the values and writes them back", .enabled(if: Run.exists("node") && Run.exists("esbuild")))
    func node() throws {
        let run = try Run("node", ["--test", "test/vectors.test.mjs"], in: Checkout.root.appending(path: "Web"))
        #expect(run.status == 0, "\(run.output)")
    }

    private func compare(_ name: String, with text: String) throws {
        let url = Checkout.root.appending(path: "Web/vectors/\(name)")
        if Self.isWriting { try Data(text.utf8).write(to: url) }
        let found = (try? String(contentsOf: url, encoding: .utf8)) ?? ""
        let difference = TextDifference(found, expected: text)
        #expect(difference == nil, "Web/vectors/\(name) is not up to date; run with TREBUCHET_WRITE_VECTORS=1")
    }

    private static func quoted(_ text: String) -> String {
        let data = (try? JSONEncoder.plain.encode(text)) ?? Data()
        return String(decoding: data, as: UTF8.self)
    }
}

extension JSONEncoder {
    fileprivate static var plain: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        return encoder
    }
}
