import Foundation
import TestSupport
import Testing

/// Compiler diagnostics for invalid actors.
@Suite(.timeLimit(.minutes(5))) struct CompilerMessageTests {
    private let compiler = SwiftCompiler()

    /// The errors, each with its source location.
    private func errors(in source: String) async throws -> [String] {
        var output = ""
        try await compiler.withFolder { folder in
            let file = folder.appending(path: "App.swift")
            try ("import Trebuchet\n" + source).write(to: file, atomically: true, encoding: .utf8)
            // Compiles to SIL, as a build does: isolation is checked after the types.
            let flags = ["-emit-sil", "-o", folder.appending(path: "App.sil").path]
            output = try await compiler.run("App", [file], flags).output
        }
        return output.split(separator: "\n").map(String.init).filter {
            $0.contains(" error: ") && !$0.contains("`- error: ")
        }
    }

    private static func actor(_ members: String) -> String { "@Trebuchet distributed actor Game {\n\(members)\n}" }

    @Test(
        "a non-Sendable argument or result is diagnosed at the method's declaration",
        arguments: [
            "var box: Box?\ndistributed func put(_ box: Box) { self.box = box }",
            "var boxes: [Box] = []\ndistributed func put(_ boxes: [Box]) async { self.boxes = boxes }",
            "let box = Box()\ndistributed func take() -> Box { box }",
            "let box = Box()\ndistributed func take() async -> Box { box }",
        ])
    func sendable(members: String) async throws {
        let errors = try await errors(in: "final class Box: Codable { var count = 1 }\n" + Self.actor(members))
        let first = try #require(errors.first)
        #expect(first.contains("type 'Box' does not conform to the 'Sendable' protocol"), "\(first)")
        // Every error has a location; an error in the compiler's own code for the method would have none.
        for error in errors { #expect(error.contains("macro expansion @Trebuchet"), "\(error)") }
    }

    @Test(
        "a class as a state is one error, which names the state and the required type",
        arguments: [
            ("", "make the class a struct"), (": Codable", "type 'Board' does not conform to the 'Sendable' protocol"),
        ],
        ["@StreamedState", "@StreamedState(persisted: true)"])
    func classAsState(conformances: (text: String, message: String), attribute: String) async throws {
        let errors = try await errors(
            in: "final class Board\(conformances.text) { var count = 1 }\n"
                + Self.actor("\(attribute) var board: Board = Board()\ndistributed func go() { board.count += 1 }"))
        #expect(errors.count == 1, "\(errors)")
        #expect(errors.first?.contains(conformances.message) == true, "\(errors)")
    }

    @Test("a struct as a state that is not Codable or not Sendable is one error")
    func structAsState() async throws {
        let state = Self.actor("@StreamedState var board: Board = Board()\ndistributed func go() {}")
        let uncodable = try await errors(in: "struct Board: Sendable { var count = 1 }\n" + state)
        #expect(uncodable.count == 1, "\(uncodable)")
        #expect(uncodable.first?.contains("must be Codable and Sendable") == true, "\(uncodable)")
        let box = "final class Box: Codable { var count = 1 }\nstruct Board: Codable { var box = Box() }\n"
        let unsendable = try await errors(in: box + state)
        #expect(unsendable.count == 1, "\(unsendable)")
        #expect(unsendable.first?.contains("type 'Board' does not conform to the 'Sendable' protocol") == true)
    }

    @Test("valid code compiles: generic parameters, many states, values of all kinds")
    func right() async throws {
        let states = (0..<12).map { "@StreamedState var state\($0): [String: Int] = [:]" }
        let members =
            states + [
                "@StreamedState var cards = KeyedCollection<Card>()",
                "@StreamedState(persisted: true) var kept: Int? = nil",
                "distributed func echo<T: Codable & Sendable>(_ value: T) -> T { value }",
                "distributed func first(_ values: [Card]?) -> Card? { values?.first }",
            ]
        let source = "struct Card: Codable, Sendable, Identifiable { var id = 1 }\n"
        #expect(try await errors(in: source + Self.actor(members.joined(separator: "\n"))) == [])
    }
}
