import Foundation
import TestSupport
import Testing

/// The use of shared values in a program's main.swift, whose top-level code selects synchronous forms even after `await`.
@Suite(.timeLimit(.minutes(5))) struct TopLevelScriptTests {
    private let compiler = SwiftCompiler()

    /// The compiler's output for a line at the top level.
    private func output(_ line: String) async throws -> String {
        var output = ""
        try await compiler.withFolder { folder in
            let file = folder.appending(path: "main.swift")
            let source = """
                import SharedState
                import TrebuchetServices

                struct Note: Codable, Identifiable, Equatable, Sendable { var id: String }
                let notes = Shared(CollectionKey<Note>("notes"))
                let auth = Shared(.trebuchetAuth)
                let channel = Shared(.trebuchetTopic(TopicKey<Note>(roomType: "a", topic: "b"), roomId: "c"))
                \(line)
                """
            try source.write(to: file, atomically: true, encoding: .utf8)
            output = try await compiler.run("App", [file], ["-typecheck"]).output
        }
        return output
    }

    @Test(
        "an awaited command at the top level is refused, instead of continuing without waiting",
        arguments: [
            #"try await notes.create(Note(id: "1"))"#, #"try await notes.delete("1")"#,
            #"try await notes.update("1") { $0.id = "2" }"#, #"try await notes.increment("1", "n", by: 1)"#,
            #"try await notes.transaction { try $0.delete("1") }"#, #"try await channel.publish(Note(id: "1"))"#,
            "_ = try await auth.signInAsGuest()", "try await auth.deleteAccount()",
        ])
    func refused(line: String) async throws {
        let output = try await output(line)
        #expect(output.contains("error: ") && output.contains("call it in an async function"), "\(output)")
    }

    @Test(
        "an awaited command in a function, and one with callbacks, compile without a warning",
        arguments: [
            #"func add() async throws { try await notes.create(Note(id: "1")); try await auth.signOut() }; try await add()"#,
            #"notes.create(Note(id: "1"), onError: { print($0) })"#,
            #"@MainActor func tap() { notes.create(Note(id: "1")); auth.signInAsGuest(); channel.publish(Note(id: "1")) }; tap()"#,
            #"try await notes.create(Note(id: "1"), onAttempt: nil).value"#,
        ])
    func allowed(line: String) async throws {
        #expect(try await output(line) == "")
    }
}
