import TestSupport
import Testing

/// Compiler diagnostics of invalid wrappers.
@Suite(.timeLimit(.minutes(5))) struct SharedMessageTests {
    private let compiler = SwiftCompiler()

    private func errors(in source: String) async throws -> [String] {
        try await compiler.errors(in: "import SharedState\n" + source)
    }

    @Test("a non-optional value without an initial one is an error with advice")
    func initialValue() async throws {
        for wrapper in ["Shared", "SharedReader"] {
            let errors = try await errors(in: "func f() { @\(wrapper)(.inMemory(\"n\")) var n: Int }")
            #expect(errors.count == 1, "\(errors)")
            let advice = "add an initial value: '@\(wrapper)(…) var name = value', or make it optional"
            #expect(errors.first?.contains(advice) == true, "\(errors)")
        }
        #expect(try await errors(in: "func f() { @Shared(.inMemory(\"n\")) var n: Int? }") == [])
    }

    @Test("a wrapper can load another key without diagnostics")
    func loadKey() async throws {
        let source =
            "func f() async throws { @Shared(.inMemory(\"n\")) var n = 1; try await $n.load(.inMemory(\"o\")) }"
        #expect(try await errors(in: source) == [])
    }
}
