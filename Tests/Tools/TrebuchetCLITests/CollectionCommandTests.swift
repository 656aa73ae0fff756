import Foundation
import TestSupport
import Testing
import TrebuchetTesting

/// The commands of collections, each in a separate process.
@Suite(.timeLimit(.minutes(5))) struct CollectionCommandTests {
    private func run(_ server: ServeProcess, _ command: String, _ arguments: [String]) async throws -> (
        status: Int32, output: String
    ) {
        let done = try await ChildProcess(
            ServeProcess.tool, ["collection", command, "--url", server.url, "todos"] + arguments, error: .merged
        ).finish()
        return (done.status, done.output)
    }

    @Test("documents are created, changed, watched, listed and deleted, and acknowledged writes survive kill -9")
    func documents() async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).db")
        defer { for end in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: file.path + end) } }
        let options = ["--services", "collections", "--data", file.path]
        let server = try await ServeProcess(arguments: options)
        #expect(try await run(server, "create", [#"{"id":"1","done":true}"#]) == (0, ""))
        let again = try await run(server, "create", [#"{"id":"1"}"#])
        #expect(again.status == 1 && again.output.contains("document '1' already exists"))
        let watch = try ChildProcess(
            ServeProcess.tool,
            ["collection", "watch", "--url", server.url, "todos", "--where", "done=false", "--count", "2"])
        #expect(await watch.nextLine() == "[]")
        #expect(try await run(server, "update", ["1", #"{"done":false}"#]).status == 0)
        let watched = await watch.finish()
        #expect(watched.status == 0 && watched.output.contains(#""done":false"#))
        #expect(try await run(server, "create", [#"{"id":"2","done":true}"#]).status == 0)
        await server.kill()

        let next = try await ServeProcess(arguments: options)
        let list = try await run(next, "list", ["--order", "-done"])
        let lines = list.output.split(separator: "\n")
        #expect(list.status == 0 && lines.count == 2)
        #expect(lines.first?.contains(#""id":"2""#) == true && lines.last?.contains(#""done":false"#) == true)
        let page = try await run(next, "get", ["--order", "-done", "--limit", "1"]).output.split(separator: "\n")
        #expect(page.count == 2 && page.first?.contains(#""id":"2""#) == true)
        let cursor = try #require(page.first { $0.hasPrefix("--after ") }).split(separator: " ")[1]
        let rest = try await run(next, "get", ["--order", "-done", "--limit", "1", "--after", String(cursor)])
        #expect(rest.status == 0 && rest.output.contains(#""id":"1""#) && !rest.output.contains("--after"))
        #expect(try await run(next, "list", ["--where", #"id in "1","2","3""#, "--count"]) == (0, "2\n"))
        #expect(try await run(next, "list", ["--where", "done!=false", "--where", "id^=2", "--count"]) == (0, "1\n"))
        #expect(try await run(next, "list", ["--where", "done = false", "--count"]) == (0, "1\n"))
        let slip = try await run(next, "list", ["--where", #"id~="1""#])
        #expect(slip.status == 2 && slip.output.contains("'~=' is not an operator"), "\(slip.output)")
        #expect(try await run(next, "list", ["--order", "-done,id"]).output.hasPrefix(#"{"done":true"#))
        #expect(try await run(next, "delete", ["1"]).status == 0)
        #expect(try await run(next, "list", ["--where", "done=false"]) == (0, ""))
        #expect(await next.stop() == 0)
    }

    @Test(
        "long-running commands report a lost connection and the reconnection on standard error",
        arguments: [
            ["collection", "watch", "todos"], ["presence", "join", "chat", "lobby"],
            ["topic", "subscribe", "chat", "lobby", "emoji"], ["observe", "counter", "observeState"],
        ])
    func lostConnection(arguments: [String]) async throws {
        let server = try await ServeProcess()
        let command = try ChildProcess(ServeProcess.tool, arguments + ["--url", server.url], error: .merged)
        // The command is connected once it has printed a line.
        _ = await command.nextLine()
        let name = arguments[0] == "observe" ? "observe" : "\(arguments[0]) \(arguments[1])"
        func wait(for text: String) async -> Bool {
            while let line = await command.nextLine() {
                if line.hasPrefix("trebuchet \(name): \(text)") { return true }
            }
            return false
        }
        let port = String(server.url.split(separator: ":").last ?? "")
        await server.kill()
        #expect(await wait(for: "connection lost"))
        let next = try ChildProcess(ServeProcess.tool, ["serve", "--port", port, "--examples"])
        _ = await next.nextLine()
        #expect(await wait(for: "reconnected"))
        command.signal(SIGKILL)
        _ = await command.finish()
        next.signal(SIGTERM)
        #expect(await next.finish().status == 0)
    }

    @Test("links, increments, conditions, merges and expiry have their options")
    func commands() async throws {
        let server = try await ServeProcess(arguments: ["--services", "collections"])
        #expect(try await run(server, "create", [#"{"id":"1","place":{"city":"Bonn"},"state":"open"}"#]) == (0, ""))
        #expect(try await run(server, "increment", ["1", "votes"]) == (0, ""))
        #expect(try await run(server, "increment", ["1", "votes", "-3"]) == (0, ""))
        #expect(try await run(server, "link", ["1", "tags", #""x""#]) == (0, ""))
        #expect(try await run(server, "link", ["1", "tags", #""1""#, "--in", "todos"]) == (0, ""))
        #expect(try await run(server, "unlink", ["1", "tags", #""x""#]) == (0, ""))
        #expect(try await run(server, "update", ["1", #"{"place":{"zip":"5"}}"#, "--merge"]) == (0, ""))
        #expect(try await run(server, "update", ["1", #"{"state":"mine"}"#, "--if", #"state="open""#]) == (0, ""))
        for (arguments, message) in [
            (["update", "1", #"{"state":"x"}"#, "--if", #"state="open""#], "the condition does not hold"),
            (["delete", "1", "--if", "votes=7"], "the condition does not hold"),
            (["link", "1", "tags", #""9""#, "--in", "todos"], "link target '9' does not exist in collection 'todos'"),
            (["link", "1", "state", #""9""#], "is not an array"), (["increment", "1", "state"], "is not a number"),
        ] {
            let done = try await run(server, arguments[0], Array(arguments.dropFirst()))
            #expect(done.status == 1 && done.output.contains(message), "\(arguments): \(done.output)")
        }
        #expect(try await run(server, "create", [#"{"id":"2"}"#, "--expires-in", "0.001"]) == (0, ""))
        #expect(try await run(server, "create", [#"{"id":"3"}"#]) == (0, ""))
        #expect(try await run(server, "expire", ["3", "3600"]) == (0, ""))
        #expect(try await run(server, "expire", ["3", "never"]) == (0, ""))
        #expect(try await run(server, "expire", ["3", "soon"]).status == 2)
        #expect(try await run(server, "expire", ["9", "1"]).output.contains("document '9' does not exist"))
        #expect(try await run(server, "expire", ["3", "0.001"]) == (0, ""))
        let made = try await run(server, "create", [#"{"title":"Milk"}"#])
        let id = made.output.trimmingCharacters(in: .newlines)
        #expect(made.status == 0 && id.count == 26, "\(made.output)")
        #expect(try await run(server, "list", ["--where", "title^=Milk"]).output.contains(#""id":"\#(id)""#))
        #expect(try await run(server, "delete", [id]).status == 0)
        let list = try await run(server, "list", [])
        #expect(
            list.output == #"{"id":"1","place":{"city":"Bonn","zip":"5"},"state":"mine","tags":["1"],"votes":-2}"#
                + "\n")
        #expect(await server.stop() == 0)
    }

    @Test("an invalid document is a usage error")
    func wrongUse() async throws {
        for arguments in [
            ["create", "todos", "[1]"], ["create", "todos", "{\"id\":[]}"], ["list", "todos", "--where", "done"],
        ] {
            let done = try await ChildProcess(ServeProcess.tool, ["collection"] + arguments, error: .captured).finish()
            #expect(done.status == 2, "\(arguments): \(done.error)")
        }
    }
}
