import Commands
import Foundation
import TestSupport
import Testing
import TrebuchetTesting

@testable import TrebuchetCLI

/// `trebuchet admin` as a user runs it, with a server in a separate process.
@Suite(.timeLimit(.minutes(5))) struct AdminCommandTests {
    /// A server with its data in a temporary folder.
    private final class Bench {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("trebuchet-\(UUID())").path
        let server: ServeProcess
        var data: String { folder + "/chat.db" }

        init(_ arguments: [String] = []) async throws {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            server = try await ServeProcess(arguments: ["--data", folder + "/chat.db"] + arguments)
        }

        deinit { try? FileManager.default.removeItem(atPath: folder) }

        func run(_ arguments: [String]) async throws -> ChildProcess.Outcome {
            try await ChildProcess(
                "/usr/bin/env", ["XDG_STATE_HOME=\(folder)", ServeProcess.tool] + arguments, error: .captured
            ).finish()
        }

        func admin(_ arguments: String...) async throws -> ChildProcess.Outcome {
            try await run(["admin"] + arguments + ["--data", data])
        }

        func create(_ collection: String, _ document: String) async throws {
            let done = try await run(["collection", "create", "--url", server.url, collection, document])
            #expect(done.status == 0, "\(done.error)")
        }

        func write(_ text: String, to name: String) throws -> String {
            let path = folder + "/" + name
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            return path
        }
    }

    @Test("documents are listed, exported, removed and imported, and survive a kill -9")
    func documents() async throws {
        let bench = try await Bench()
        let none = try await bench.admin("collections")
        #expect(none.status == 0 && none.output.isEmpty, "\(none.error)")
        for id in ["1", "2"] { try await bench.create("messages", #"{"id":"\#(id)","text":"Hello"}"#) }
        try await bench.create("todos", #"{"id":"a"}"#)
        let table = try await bench.admin("collections").output.split(separator: "\n").map {
            $0.split(separator: " ").prefix(2).joined(separator: " ")
        }
        #expect(table == ["COLLECTION DOCUMENTS", "messages 2", "todos 1"])
        let json = try await bench.admin("collections", "--json", "--limit", "1")
        #expect(
            json.output.hasPrefix(#"{"bytes":"#) && json.output.hasSuffix(#","documents":2,"name":"messages"}"# + "\n"))
        #expect(json.error == "more entries: --after 'messages'\n")
        let list = try await bench.admin("documents", "messages", "--after", "1")
        #expect(
            list.output == """
                ID  CREATOR  FIELDS
                2   -        {"id":"2","text":"Hello"}

                """)

        let exported = try await bench.admin("export")
        #expect(exported.output.split(separator: "\n").count == 3)
        #expect(
            exported.error.contains("2 documents of 'messages'") && exported.error.contains("1 document of 'todos'"))
        let one = try await bench.admin("export", "todos")
        #expect(one.output.hasPrefix(#"{"collection":"todos","document":{"#))
        #expect(one.output == exported.output.split(separator: "\n").last.map { $0 + "\n" })

        let removed = try await bench.admin("remove-document", "messages", "1", "--yes")
        #expect(removed.output == "removed document '1' of collection 'messages'\n")
        let gone = try await bench.admin("remove-document", "messages", "1", "--yes")
        #expect(gone.status == 1 && gone.error.contains("document '1' does not exist in collection 'messages'"))
        #expect(try await bench.admin("remove-collection", "todos", "--yes").status == 0)
        let file = try bench.write(exported.output, to: "all.jsonl")
        #expect(try await bench.admin("import", file).output == "2 created, 0 replaced, 1 skipped\n")
        #expect(try await bench.admin("import", file, "--replace").output == "0 created, 0 replaced, 3 skipped\n")
        await bench.server.kill()

        let next = try await ServeProcess(arguments: ["--data", bench.data])
        let again = try await bench.admin("documents", "messages", "--json")
        #expect(again.output.split(separator: "\n").count == 2, "the stale socket is replaced: \(again.error)")
        #expect(await next.stop() == 0)
        #expect(!FileManager.default.fileExists(atPath: bench.data + ".admin"))
        let ended = try await bench.admin("collections")
        #expect(ended.status == 1 && ended.error.contains("\(bench.data).admin does not exist"), "\(ended.error)")
    }

    @Test(
        "an import ends at the first invalid line with its number and problem; plain documents go into one collection")
    func importing() async throws {
        let bench = try await Bench()
        for (text, line, problem, created) in [
            ("{\"id\":\"1\"}\n\n{\"id\":\"2\"\n{\"id\":\"3\"}\n", 3, "invalid JSON", 1),
            ("{\"id\":\"1\"}\n{\"title\":\"x\"}\n", 2, "a document needs the member 'id'", 1),
            ("{\"id\":\"\"}\n", 1, "an id has 1 to 128 bytes", 0),
            (
                "{\"id\":\"1\"}\n{\"id\":\"2\"}\n{\"id\":\"3\",\"t\":\"\(String(repeating: "x", count: 70_000))\"}\n",
                3, "at most 65536 are allowed", 2
            ),
        ] {
            let file = try bench.write(text, to: "in.jsonl")
            let done = try await bench.admin("import", "--into", "todos", file)
            #expect(done.status == 1)
            #expect(
                done.error.contains("trebuchet admin import: \(file):\(line): ") && done.error.contains(problem),
                "\(done.error)")
            #expect(done.output == "\(created) created, 0 replaced, 0 skipped\n")
            _ = try await bench.admin("remove-collection", "todos", "--yes")
        }
        let plain = try bench.write("{\"id\":\"1\"}\n", to: "plain.jsonl")
        let unnamed = try await bench.admin("import", plain)
        #expect(unnamed.status == 1 && unnamed.error.contains("pass --into COLLECTION for plain documents"))
        let both = try await bench.admin("import", plain, "--replace", "--skip")
        #expect(both.status == 2 && both.error.contains("--replace and --skip cannot be combined"))

        // More than one batch, alternating between two collections.
        let many = (1...1_000).map {
            #"{"collection":"\#($0 % 5 < 3 ? "a" : "b")","document":{"id":"\#($0)","fields":{"id":"\#($0)"},"created":0,"revision":0}}"#
        }
        let file = try bench.write(many.joined(separator: "\n"), to: "many.jsonl")
        #expect(try await bench.admin("import", file).output == "1000 created, 0 replaced, 0 skipped\n")
        // Written by hand: the server fills in missing members.
        let short = try bench.write(
            #"{"collection":"m","document":{"id":"zz","fields":{"text":"Hello"},"creator":"x"}}"#, to: "short.jsonl")
        #expect(try await bench.admin("import", short).output == "1 created, 0 replaced, 0 skipped\n")
        let made = try await bench.admin("export", "m").output
        #expect(made.contains(#""creator":"x""#) && made.contains(#""fields":{"id":"zz","text":"Hello"}"#), "\(made)")
        #expect(
            made.contains(/"createdAt":[1-9]/) && made.contains(/"updatedAt":[1-9]/)
                && made.contains(/"revision":[1-9]/))
        for (text, problem) in [
            (
                #"{"id":"1"}"#,
                "not an exported document, {\"collection\":…,\"document\":{…}}; pass --into COLLECTION"
            ),
            (#"{"document":{"id":"1","fields":{}}}"#, "collection: must be a collection name; or pass --into"),
            (#"{"collection":"m","document":[]}"#, "document: must be an object"),
            (#"{"collection":"m","document":{"fields":{}}}"#, "document.id: must be a string or an integer"),
            (#"{"collection":"m","document":{"id":"1"}}"#, "document.fields: must be an object"),
            (
                #"{"collection":"m","document":{"id":"1","fields":{"id":"2"}}}"#,
                "document.fields.id: must be equal to document.id"
            ),
            (
                #"{"collection":"m","document":{"id":"1","fields":{},"creator":7}}"#,
                "document.creator: must be a string"
            ),
            (
                #"{"collection":"m","document":{"id":"1","fields":{},"createdAt":"x"}}"#,
                "document.createdAt: must be an integer"
            ),
            (
                #"{"collection":"m","document":{"id":"1","field":{}}}"#,
                "document.field: is an unknown member; did you mean 'fields'?"
            ),
        ] {
            let done = try await bench.admin("import", try bench.write(text, to: "bad.jsonl"))
            #expect(done.status == 1 && done.error.contains("/bad.jsonl:1: \(problem)"), "\(done.error)")
        }
        let input = try ChildProcess(ServeProcess.tool, ["admin", "import", "--into", "c", "--data", bench.data])
        try input.send(#"{"id":7,"title":"Milk"}"#)
        #expect(await input.finish().output == "1 created, 0 replaced, 0 skipped\n")
        #expect(try await bench.admin("documents", "c", "--json").output.contains(#""id":"7""#))
        #expect(await bench.server.stop() == 0)
    }

    @Test("accounts and sessions are listed; roles are granted to an address, and take effect in rules immediately")
    func accounts() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("trebuchet-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let mailbox = try Mailbox(in: folder)
        let rules = folder + "/rules.json"
        try Data(#"{"roles":["editor"],"collections":{"news":{"create":"editor"}}}"#.utf8).write(
            to: URL(fileURLWithPath: rules))
        let bench = try await Bench(["--mail-command", mailbox.command, "--rules", rules])
        let url = bench.server.url
        _ = try await bench.run(["sign-in", "--url", url, "--email", "ada@b.c"])
        let signedIn = try await bench.run([
            "sign-in", "--url", url, "--email", "ada@b.c", "--code", try mailbox.code(sentTo: "ada@b.c"),
        ])
        #expect(signedIn.status == 0, "\(signedIn.error)")
        let write = ["collection", "create", "--url", url, "news", #"{"id":"1"}"#]
        #expect(try await bench.run(write).error.contains("only: editor (collections.news.create)"))
        let granted = try await bench.admin("grant", "ada@b.c", "editor")
        #expect(granted.output == "granted role 'editor' to account 'ada@b.c'\n", "\(granted.error)")
        let written = try await bench.run(write)
        #expect(written.status == 0, "\(written.error)")
        let accounts = try await bench.admin("accounts").output.split(separator: "\n").map {
            $0.split(separator: " ").dropFirst().map(String.init)
        }
        #expect(accounts == [["ADDRESS", "ROLES", "SESSIONS", "CONNECTIONS"], ["ada@b.c", "editor", "1", "0"]])
        let again = try await bench.admin("grant", "ada@b.c", "editor")
        #expect(again.status == 1 && again.error.contains("already has role 'editor'"))
        #expect(granted.error.isEmpty)
        let odd = try await bench.admin("grant", "ada@b.c", "editr")
        #expect(odd.status == 0)
        #expect(
            odd.error
                == "trebuchet admin grant: warning: the current rules do not name the role 'editr'; did you mean 'editor'?\n"
        )
        #expect(
            try await bench.admin("revoke", "ada@b.c", "editr").output == "revoked role 'editr' of account 'ada@b.c'\n")
        #expect(try await bench.admin("revoke", "ada@b.c", "editor").status == 0)
        #expect(try await bench.run(["collection", "create", "--url", url, "news", #"{"id":"2"}"#]).status == 1)
        let unknown = try await bench.admin("grant", "eve@b.c", "editor")
        #expect(unknown.status == 1 && unknown.error.contains("account 'eve@b.c' does not exist"))

        let sessions = try await bench.admin("sessions", "ada@b.c", "--json")
        let session = try #require(sessions.output.firstMatch(of: /"name":"([^"]+)"/)).output.1
        let ended = try await bench.run(["admin", "end-session", "--data", bench.data, "--yes", "--", String(session)])
        #expect(ended.status == 0, "\(ended.error)")
        #expect(try await bench.admin("sessions").output.isEmpty)
        #expect(try await bench.admin("remove-account", "ada@b.c", "--yes").status == 0)
        #expect(try await bench.admin("accounts").output.isEmpty)
        #expect(await bench.server.stop() == 0)
    }

    @Test("a member is listed and kicked out of its room")
    func rooms() async throws {
        let bench = try await Bench()
        let ada = try ChildProcess(
            ServeProcess.tool, ["presence", "join", "--url", bench.server.url, "chat", "lobby", #"{"name":"Ada"}"#],
            error: .merged)
        while let line = await ada.nextLine() { if line.contains("peers") { break } }
        #expect(try await bench.admin("rooms").output == "ROOM        MEMBERS\nchat-lobby  1\n")
        let nobody = try await bench.admin("kick", "chat-lobby")
        #expect(nobody.status == 2 && nobody.error.contains("admin kick: <member> is missing\n"), "\(nobody.error)")
        let members = try await bench.admin("members", "chat-lobby", "--json")
        let session = String(try #require(members.output.firstMatch(of: /"session":"([^"]+)"/)).output.1)
        #expect(members.output.contains(#""presence":{"name":"Ada"}"#), "\(members.output) \(members.error)")
        let kicked = try await bench.admin("kick", "chat-lobby", session, "--for", "100")
        #expect(kicked.output == "removed member '\(session)' from room 'chat-lobby' for 100 s\n", "\(kicked.error)")
        while let line = await ada.nextLine() { if line.contains("you were removed from the room") { break } }
        #expect(try await bench.admin("rooms").output.isEmpty)
        ada.signal(SIGINT)
        _ = await ada.finish()
        #expect(await bench.server.stop() == 0)
    }

    @Test("a destructive command asks for confirmation in a terminal, and needs --yes elsewhere")
    func confirmation() async throws {
        let bench = try await Bench()
        try await bench.create("todos", #"{"id":"1"}"#)
        for command in [
            ["remove-document", "todos", "1"], ["remove-collection", "todos"], ["remove-account", "a"],
            ["end-session", "s"],
        ] {
            let done = try await bench.run(["admin"] + command + ["--data", bench.data])
            #expect(done.status == 2 && done.error.contains("confirm with --yes"), "\(command): \(done.error)")
        }
        #expect(try await bench.admin("documents", "todos", "--json").output.isEmpty == false)
        try DestructiveActionPrompt.decide(isConfirmed: true, isTerminal: false) { nil }
        for answer in ["y", "Y", "yes"] {
            try DestructiveActionPrompt.decide(isConfirmed: false, isTerminal: true) { answer }
        }
        for answer in ["n", "", "yesterday", nil] {
            #expect(throws: DestructiveActionPrompt.Denied.self) {
                try DestructiveActionPrompt.decide(isConfirmed: false, isTerminal: true) { answer }
            }
        }
        #expect(await bench.server.stop() == 0)
    }

    @Test("an export escapes characters that a terminal interprets, and can be imported")
    func exportEscapes() async throws {
        let bench = try await Bench()
        let file = try bench.write(
            "{\"collection\":\"m\",\"document\":{\"id\":\"a\",\"fields\":{\"t\":\"\u{9b}31m\u{202e}é\"}}}",
            to: "commands.jsonl")
        #expect(try await bench.admin("import", file).output == "1 created, 0 replaced, 0 skipped\n")
        let exported = try await bench.admin("export").output
        #expect(exported.contains(#""t":"\u009b31m\u202eé""#), "\(exported.debugDescription)")
        let again = try bench.write(exported, to: "again.jsonl")
        #expect(try await bench.admin("import", again, "--replace").output == "0 created, 0 replaced, 1 skipped\n")
        await bench.server.stop()
    }

    @Test("Control-C ends an export and an import with 130, and the server continues")
    func interruption() async throws {
        let bench = try await Bench()
        let text = String(repeating: "x", count: 30_000)
        let documents = (1...100).map { #"{"id":"\#($0)","text":"\#(text)"}"# }.joined(separator: "\n")
        #expect(try await bench.admin("import", "--into", "a", try bench.write(documents, to: "a.jsonl")).status == 0)

        // Unread output waits in the pipe, and then at the server.
        let export = try ChildProcess(ServeProcess.tool, ["admin", "export", "--data", bench.data], error: .captured)
        #expect(await export.nextLine() != nil)
        export.signal(SIGINT)
        let ended = await export.finish()
        #expect(
            ended.status == 130 && ended.error.contains("the export is incomplete"), "\(ended.status) \(ended.error)")
        #expect(ended.output.isEmpty || ended.output.hasSuffix("\n"), "only whole lines are written")

        let input = try ChildProcess(
            ServeProcess.tool, ["admin", "import", "--into", "b", "--data", bench.data], error: .captured)
        for id in 1...250 { try input.send(#"{"id":"\#(id)"}"#) }
        while !(try await bench.admin("documents", "b", "--json")).output.contains("\n") {}
        // Its input stays open: the command does not wait for more of it.
        input.signal(SIGINT)
        #expect(await input.nextLine()?.hasSuffix(" created, 0 replaced, 0 skipped") == true)
        let outcome = await input.finish()
        #expect(outcome.status == 130 && outcome.error.contains("repeat the command to continue"), "\(outcome.error)")
        #expect(try await bench.admin("collections").output.contains("\nb "))
        #expect(await bench.server.stop() == 0)
    }

    @Test("serve opens the requested socket, and fails if its path is in use or impossible")
    func socket() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("trebuchet-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = folder + "/here"
        let server = try await ServeProcess(arguments: ["--admin-socket", path])
        func trebuchet(_ arguments: [String]) async throws -> ChildProcess.Outcome {
            try await ChildProcess(ServeProcess.tool, arguments, error: .captured).finish()
        }
        #expect(try await trebuchet(["admin", "rooms", "--admin-socket", path]).status == 0)
        let second = try await trebuchet(["serve", "--port", "0", "--admin-socket", path])
        #expect(second.status == 1 && second.error.contains("another server listens at \(path)"), "\(second.error)")
        #expect(try await trebuchet(["admin", "rooms"]).status == 2, "the server is not specified")
        #expect(
            try await trebuchet(["serve", "--port", "0", "--services", "none", "--admin-socket", path]).status == 2)
        #expect(await server.stop() == 0)
        #expect(!FileManager.default.fileExists(atPath: path))

        // Without the option an impossible path is no error.
        let long = folder + "/" + String(repeating: "x", count: 100)
        let other = try ChildProcess(ServeProcess.tool, ["serve", "--port", "0", "--data", long], error: .merged)
        var lines: [String] = []
        while let line = await other.nextLine() {
            lines.append(line)
            if line.contains("trebuchet serves") { break }
        }
        #expect(
            lines.contains { $0.contains("continuing without a socket for 'trebuchet admin': the socket path") },
            "\(lines)")
        other.signal(SIGTERM)
        #expect(await other.finish().status == 0)
    }

    @Test("the commands of the page have the documented results, and each shows an example")
    func page() async throws {
        let bench = try await Bench()
        let blocks = try DocumentedPage("Guides/Admin.md").blocks("sh").map {
            $0.split(separator: "\n").map(String.init)
        }
        #expect(blocks.map(\.count) == [4, 6] && blocks[0][1] == "trebuchet serve --data chat.db")
        func run(_ line: String) async throws -> ChildProcess.Outcome {
            var line = line.replacingOccurrences(of: "chat.db", with: bench.data)
                .replacingOccurrences(of: "chat.jsonl", with: bench.folder + "/chat.jsonl")
            for command in ["collection create", "sign-in"] {
                line = line.replacingOccurrences(of: command, with: "\(command) --url \(bench.server.url)")
            }
            line = line.replacingOccurrences(of: "trebuchet ", with: ServeProcess.tool + " ", options: .anchored)
            return try await ChildProcess(
                "/usr/bin/env", ["XDG_STATE_HOME=\(bench.folder)", "/bin/sh", "-c", line], error: .captured
            ).finish()
        }
        for line in blocks[0].dropFirst(2) { #expect(try await run(line).status == 0, "\(line)") }
        var outputs: [String] = []
        for line in blocks[1] {
            let done = try await run(line)
            #expect(done.status == 0, "\(line): \(done.error)")
            outputs.append(done.output)
        }
        #expect(outputs[0].contains("messages    1 "))
        #expect(outputs[1].contains(#"{"id":"1","text":"Hello"}"#) && outputs[2].contains("guest"))
        #expect(outputs[5] == "1 created, 0 replaced, 0 skipped\n")
        for command in AdminCommand.spec.subcommands {
            #expect(command.discussion.contains("trebuchet \(command.name)"), "\(command.name)")
            let help = try await bench.run(command.name.split(separator: " ").map(String.init) + ["--help"])
            #expect(help.status == 0 && help.output.contains(command.discussion))
        }
        #expect(await bench.server.stop() == 0)
    }
}
