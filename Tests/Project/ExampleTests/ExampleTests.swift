import Foundation
import Glibc
import Testing
import TestSupport

/// The examples without a page, as their READMEs run them. `BrowserTests` opens those with one.
@Suite(.timeLimit(.minutes(5))) struct ExampleTests {
    /// A server of an example, on a free port.
    private struct Server {
        let process: ChildProcess
        let port: String

        init(_ program: String, _ arguments: String...) async throws {
            process = try ChildProcess(ServeProcess.built(program), ["0"] + arguments)
            let line = try #require(await process.nextLine())
            port = String(try #require(line.firstMatch(of: /^serves \w+ on port (\d+)$/)).1)
        }

        func end(_ signal: Int32 = SIGTERM) async -> Int32 {
            process.signal(signal)
            return await process.finish().status
        }
    }

    private func run(_ program: String, _ arguments: String...) async throws -> ChildProcess.Outcome {
        try await ChildProcess(ServeProcess.built(program), arguments, error: .captured).finish()
    }

    private func withFile(_ body: (String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "trebuchet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder.appending(path: "todos.db").path)
    }

    @Test("todos: one client sees others' additions and completions, and they survive a server restart")
    func todos() async throws {
        try await withFile { file in
            let server = try await Server("TodoServer", file)
            let watch = try ChildProcess(ServeProcess.built("TodoClient"), ["--port", server.port, "watch"])
            #expect(await watch.nextLine() == "nothing to do")
            #expect(try await run("TodoClient", "--port", server.port, "add", "Milk", "and", "bread").status == 0)
            #expect(await watch.nextLine() == "to do:")
            #expect(await watch.nextLine() == "1. [ ] Milk and bread")
            #expect(try await run("TodoClient", "--port", server.port, "done", "1").status == 0)
            #expect(await watch.nextLine() == "to do:")
            #expect(await watch.nextLine() == "1. [x] Milk and bread")
            let wrong = try await run("TodoClient", "--port", server.port, "done", "7")
            #expect(wrong.status == 1 && wrong.error == "TodoClient: there is no number 7\n")
            #expect(await server.end(SIGKILL) == -SIGKILL)

            let again = try await Server("TodoServer", file)
            let other = try ChildProcess(ServeProcess.built("TodoClient"), ["--port", again.port, "watch"])
            #expect(await other.nextLine() == "to do:")
            #expect(await other.nextLine() == "1. [x] Milk and bread")
            #expect(await again.end() == 0)
        }
    }

    @Test("game: two bots play a match to its end with the same result, and a third is rejected")
    func game() async throws {
        let server = try await Server("GameServer", "5")
        let port = server.port
        async let first = run("GamePlayer", "ada", "--bot", "--port", port)
        async let second = run("GamePlayer", "bob", "--bot", "--port", port)
        let (ada, bob) = try await (first, second)
        #expect(ada.status == 0 && bob.status == 0, "\(ada.error)\(bob.error)")
        #expect(ada.output == bob.output)
        let lines = ada.output.split(separator: "\n")
        #expect(["ada against bob", "bob against ada"].contains(lines.first))
        #expect(lines.dropFirst().dropLast().allSatisfy { $0.contains(/^(ada|bob) crashed at tick \d+$/) })
        #expect(["ada won", "bob won", "nobody won"].contains(lines.last), "\(ada.output)")
        let third = try await run("GamePlayer", "eve", "--bot", "--port", port)
        #expect(third.status == 1 && third.error.contains("full"), "\(third.error)")
        #expect(await server.end() == 0)
    }

    @Test("observed-client: the view shows another client's changes, and ends after the requested number")
    func observedClient() async throws {
        try await withFile { file in
            let server = try await Server("TodoServer", file)
            let view = try ChildProcess(ServeProcess.built("ObservedClient"), ["--port", server.port, "--until", "2"])
            while let line = await view.nextLine(), line != "0 of 0 to do" { #expect(line == "loading …") }
            _ = try await run("TodoClient", "--port", server.port, "add", "Milk")
            #expect(await view.nextLine() == "1 of 1 to do")
            #expect(await view.nextLine() == "  • Milk")
            _ = try await run("TodoClient", "--port", server.port, "done", "1")
            #expect(await view.nextLine() == "0 of 1 to do")
            #expect(await view.nextLine() == "  ✓ Milk")
            _ = try await run("TodoClient", "--port", server.port, "add", "Bread")
            let rest = await view.finish()
            #expect(rest.output == "1 of 2 to do\n  ✓ Milk\n  • Bread\n")
            #expect(rest.status == 0)
            #expect(await server.end() == 0)
        }
    }
}
