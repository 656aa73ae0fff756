import Foundation
import TestSupport
import Testing
import TrebuchetServices

/// Rules from a file, with the executable as a user runs it.
@Suite(.timeLimit(.minutes(5))) struct RulesCommandTests {
    private final class Folder {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("trebuchet-\(UUID())").path

        init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }
        deinit { try? FileManager.default.removeItem(atPath: path) }

        var rules: String { path + "/rules.json" }
        func write(_ text: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: rules)) }
    }

    private func trebuchet(_ arguments: [String]) async throws -> ChildProcess.Outcome {
        try await ChildProcess(ServeProcess.tool, arguments, error: .captured).finish()
    }

    private func create(_ url: String, _ collection: String, _ document: String) async throws -> ChildProcess.Outcome {
        try await trebuchet(["collection", "create", "--url", url, collection, document])
    }

    @Test("rules check reports valid and invalid rules, line by line")
    func check() async throws {
        let folder = try Folder()
        try folder.write("{\"roles\": [\"editor\"],\n\"collections\": {\"a\": {\"read\": \"editor\"}, \"*\": {}}}")
        let right = try await trebuchet(["rules", "check", folder.rules])
        #expect(right.status == 0 && right.error.isEmpty)
        #expect(right.output == "\(folder.rules) is valid: collections: 2, rooms: 0, roles: 1\n")
        try folder.write("{\"collections\": {\"a\": {\n\"read\": \"usr\",\n\"reed\": 1}}}")
        let wrong = try await trebuchet(["rules", "check", folder.rules])
        #expect(wrong.status == 1 && wrong.output.isEmpty)
        #expect(
            wrong.error == """
                \(folder.rules):2: collections.a.read: 'usr' is not a role; did you mean 'user'?
                \(folder.rules):3: collections.a: unknown member 'reed'; did you mean 'read'?
                trebuchet rules check: 2 problems

                """)
    }

    @Test("a valid but probably unintended rule is a warning, in the check and at the start of a server")
    func warnings() async throws {
        let folder = try Folder()
        try folder.write("{\"collections\": {\n\"a\": {\"create\": \"user\"},\n\"*\": {\"read\": \"nobody\"}}}")
        let warning =
            "warning: \(folder.rules):2: collections.a: documents can be created (user), but no client can read them "
            + "(collections.*.read)"
        let other =
            "warning: \(folder.rules):3: collections.*: documents can be created (anyone), but no client can read them "
            + "(collections.*.read)"
        let checked = try await trebuchet(["rules", "check", folder.rules])
        #expect(checked.status == 0 && checked.output.contains(" is valid: collections: 2"))
        #expect(checked.error == "\(warning)\n\(other)\n")
        let server = try ChildProcess(
            ServeProcess.tool, ["serve", "--port", "0", "--rules", folder.rules], error: .merged)
        #expect(await server.nextLine() == "trebuchet serve: \(warning)")
        #expect(await server.nextLine() == "trebuchet serve: \(other)")
        server.signal(SIGTERM)
        #expect(await server.finish().status == 0)
    }

    @Test("rules show prints the defaults as a valid file")
    func show() async throws {
        let folder = try Folder()
        let shown = try await trebuchet(["rules", "show"])
        #expect(shown.status == 0 && shown.output == RulesFile.defaults + "\n")
        try folder.write(shown.output)
        #expect(try await trebuchet(["rules", "check", folder.rules]).status == 0)
    }

    @Test("serve does not start with an invalid file, nor with rules for services that it does not host")
    func badFile() async throws {
        let folder = try Folder()
        try folder.write("{\n\"collections\": []}")
        let data = folder.path + "/chat.db"
        let bad = try await trebuchet(["serve", "--port", "0", "--data", data, "--rules", folder.rules])
        #expect(bad.status == 1 && bad.output.isEmpty)
        #expect(bad.error == "trebuchet serve: \(folder.rules):2: collections: must be an object\n")
        #expect(!FileManager.default.fileExists(atPath: data), "no store was created")
        try folder.write("{}")
        let none = try await trebuchet(["serve", "--port", "0", "--services", "auth", "--rules", folder.rules])
        #expect(none.status == 2 && none.error.contains("--rules requires --services with collections or rooms"))
    }

    @Test("serve prints the rules and the socket in force")
    func inForce() async throws {
        let folder = try Folder()
        try folder.write(#"{"collections":{"*":{"create":"user"}}}"#)
        let data = folder.path + "/chat.db"
        for (options, lines) in [
            (
                ["--rules", folder.rules, "--data", data],
                ["rules: \(folder.rules), collections: 1, rooms: 0", "admin socket: \(data).admin, "]
            ),
            (
                ["--admin-socket", folder.path + "/here"],
                ["rules: default, every client", "admin socket: \(folder.path)/here, "]
            ),
        ] {
            let server = try ChildProcess(
                ServeProcess.tool, ["serve", "--port", "0"] + options, error: .captured)
            while let line = await server.nextLine() { if line.hasPrefix("state: ") { break } }
            for line in lines { #expect(await server.nextLine()?.hasPrefix(line) == true, "\(line)") }
            server.signal(SIGTERM)
            #expect(await server.finish().status == 0)
        }
    }

    @Test("SIGHUP does not end a server without files to reload, and the log reports this")
    func nothingToRead() async throws {
        let server = try ChildProcess(ServeProcess.tool, ["serve", "--port", "0"], error: .merged)
        while let line = await server.nextLine(), !line.contains("trebuchet serves") {}
        server.signal(SIGHUP)
        while let line = await server.nextLine(), !line.contains("no certificates or rules") {}
        server.signal(SIGTERM)
        #expect(await server.finish().status == 0)
    }

    @Test("SIGHUP reloads the file; an invalid one leaves the old rules in force, and the log reports the problem")
    func hangUp() async throws {
        let folder = try Folder()
        try folder.write(#"{"collections":{"*":{"create":"nobody"}}}"#)
        let server = try ChildProcess(
            ServeProcess.tool, ["serve", "--port", "0", "--rules", folder.rules], error: .merged)
        func line(_ text: String) async -> String? {
            while let line = await server.nextLine() { if line.contains(text) { return line } }
            return nil
        }
        let first = try #require(await line("trebuchet serves"))
        let url = String(try #require(first.firstMatch(of: /ws:\/\/[0-9.:]+/)).output)
        let refused = try await create(url, "todos", #"{"id":"1"}"#)
        #expect(
            refused.status == 1 && refused.error.contains("only: nobody (collections.*.create)"), "\(refused.error)")

        try folder.write("{\n\n\"collections\": {\"*\": {\"create\": \"anyon\"}}}")
        server.signal(SIGHUP)
        #expect(
            await line("rules not reloaded")
                == "trebuchet serve: rules not reloaded; the current ones stay active: \(folder.rules):3: "
                + "collections.*.create: 'anyon' is not a role; did you mean 'anyone'?")
        #expect(try await create(url, "todos", #"{"id":"1"}"#).status == 1)

        try folder.write("{}")
        server.signal(SIGHUP)
        #expect(await line("rules reloaded") != nil)
        #expect(try await create(url, "todos", #"{"id":"1"}"#).status == 0)
        server.signal(SIGTERM)
        #expect(await server.finish().status == 0)
    }

    @Test("the file and the commands of the page have the documented results")
    func page() async throws {
        let page = try DocumentedPage("Reference/Rules.md")
        let folder = try Folder()
        try folder.write(try #require(page.blocks("json").first))
        let commands = try #require(page.blocks("sh").first).split(separator: "\n").map {
            $0.split(separator: " ").dropFirst().map(String.init)
        }
        #expect(commands.count == 2)
        func filledIn(_ words: [String]) -> [String] {
            words.map { word in
                switch word {
                case "rules.json": folder.rules
                case "chat.db": folder.path + "/chat.db"
                default: word
                }
            }
        }
        let check = try await trebuchet(filledIn(commands[0]))
        #expect(check.status == 0 && check.output.contains("collections: 3, rooms: 2, roles: 1"))
        #expect(check.error.isEmpty, "no warning about excluded users: \(check.error)")
        let mailbox = try Mailbox(in: folder.path)
        let server = try await ServeProcess(
            command: [commands[1][0]],
            arguments: filledIn(Array(commands[1].dropFirst())) + ["--mail-command", mailbox.command])
        func asAda(_ arguments: String...) async throws -> ChildProcess.Outcome {
            let url = ["--url", server.url]
            return try await ChildProcess(
                "/usr/bin/env", ["XDG_STATE_HOME=\(folder.path)", ServeProcess.tool] + arguments + url, error: .captured
            ).finish()
        }
        _ = try await asAda("sign-in", "--email", "ada@b.c")
        _ = try await asAda("sign-in", "--email", "ada@b.c", "--code", try mailbox.code(sentTo: "ada@b.c"))
        for collection in ["messages", "notes-1"] {
            let own = #"{"from":"Ada","id":"ada","text":"Hello"}"#
            let created = try await asAda("collection", "create", collection, own)
            #expect(created.status == 0, "\(collection): \(created.error)")
            let read = try await asAda("collection", "list", collection)
            #expect(read.output == own + "\n", "the creator can read documents of \(collection): \(read.error)")
        }
        let message = #"{"id":"1","from":"Ada","text":"Hello"}"#
        let nobody = try await create(server.url, "messages", message)
        #expect(
            nobody.status == 1 && nobody.error.contains("only: user (collections.messages.create)"), "\(nobody.error)")
        let other = try await create(server.url, "others", message)
        #expect(other.status == 1 && other.error.contains("only: nobody (collections.*.create)"))
        let room = try ChildProcess(
            ServeProcess.tool, ["presence", "join", "--url", server.url, "game", "1", "{}"], error: .merged)
        #expect(await room.nextLine()?.contains("the rules of the server do not allow it") == true)
        room.signal(SIGINT)
        _ = await room.finish()
        #expect(await server.stop() == 0)
    }
}
