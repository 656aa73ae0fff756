import Foundation
import TestSupport
import Testing

/// Docs/Guides/WebTutorial.md: its files and excerpts are those of the examples, and its commands run in an empty folder.
@Suite(.timeLimit(.minutes(5))) struct TutorialTests {
    private struct Block {
        let language: Substring
        let text: String
        /// The path in the line before the block, if the block is a file.
        let file: String?
    }

    private static func blocks() throws -> [Block] {
        let page = try String(contentsOf: Example.root.appending(path: "Docs/Guides/WebTutorial.md"), encoding: .utf8)
        let parts = page.components(separatedBy: "\n```")
        // Text, a block, text, a block …
        return stride(from: 1, to: parts.count, by: 2).map { index in
            let (language, text) = (parts[index].prefix { $0 != "\n" }, parts[index].drop { $0 != "\n" }.dropFirst())
            let last = parts[index - 1].split(separator: "\n").last ?? ""
            let file = last.firstMatch(of: /`((?:todos|chat)\/[^`]+)`[^`]*$/).map { String($0.1) }
            return Block(language: language, text: text + "\n", file: file)
        }
    }

    /// A file of the example, with the paths of the reader's folder.
    private static func example(_ file: String) throws -> String {
        let name = String(file.prefix { $0 != "/" })
        let example = name == "todos" ? Example.todos : Example.chat
        return try String(contentsOf: example.file(String(file.dropFirst(name.count + 1))), encoding: .utf8)
            .replacing("path: \"../..\"", with: "path: \"../Trebuchet\"")
            .replacing("file:../../Web", with: "file:../Trebuchet/Web")
            .replacing(#""\#(name)-web""#, with: #""\#(name)""#)
    }

    /// A shell script in the reader's folder. `swift run` runs the programs that were built with these tests.
    private static func script(_ lines: String, in folder: URL, port: String) -> String {
        """
        set -e; cd '\(folder.path)'
        trebuchet() {
            case $1 in
            serve) exec '\(ServeProcess.tool)' "$@" --port 0 ;;
            call) '\(ServeProcess.tool)' "$@" --url ws://127.0.0.1:\(port) ;;
            *) '\(ServeProcess.tool)' "$@" ;;
            esac
        }
        swift() { exec '\(URL(filePath: ServeProcess.tool).deletingLastPathComponent().path)'/"$2" 0; }
        \(lines)
        """
    }

    private static func run(_ lines: String, in folder: URL, port: String = "") async throws -> String {
        let outcome = try await ChildProcess(
            "/bin/bash", ["-c", script(lines, in: folder, port: port)], error: .merged
        ).finish()
        #expect(outcome.status == 0, "\(lines)\(outcome.output)")
        return outcome.output
    }

    @Test("the files and excerpts of the page equal those of the examples")
    func files() throws {
        let files = try Self.blocks().filter { $0.file != nil }
        #expect(files.count == 1)
        for block in files { #expect(try block.text == Self.example(block.file!), "\(block.file!)") }
        let excerpts = try Self.blocks().filter { $0.file == nil && ["js", "swift", "tsx"].contains($0.language) }
        #expect(excerpts.count == 5)
        let sources = try [
            "todos/public/index.html", "todos/Sources/TodosWeb/main.swift", "chat/web/app.tsx",
        ].map(Self.example)
        for block in excerpts {
            #expect(sources.contains { $0.contains(block.text) }, "\(block.text)")
        }
    }

    @Test("the commands of the page serve the list and the chat")
    func commands() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createSymbolicLink(
            at: folder.appending(path: "Trebuchet"), withDestinationURL: Example.root)
        var server: ChildProcess?
        var port = ""
        var served: [String] = []
        for block in try Self.blocks() {
            if let file = block.file {
                try Data(block.text.utf8).write(to: folder.appending(path: file))
                continue
            }
            guard block.language == "sh" else { continue }
            // The program was built with these tests.
            if block.text.hasPrefix("swift build") { continue }
            guard block.text.contains(/trebuchet serve|swift run/) else {
                let output = try await Self.run(block.text, in: folder, port: port)
                if block.text.contains("addTodo") { #expect(output.contains("Milk")) }
                continue
            }
            server?.signal(SIGKILL)
            _ = await server?.finish()
            let next = try ChildProcess(
                "/bin/bash", ["-c", Self.script("unset XDG_STATE_HOME; " + block.text, in: folder, port: "")],
                error: .merged)
            server = next
            while let line = await next.nextLine() {
                guard let found = line.firstMatch(of: /(?:ws|http):\/\/127\.0\.0\.1:(\d+)/) else { continue }
                port = String(found.1)
                break
            }
            let page = try await Self.run("curl -sSf -m 20 http://127.0.0.1:\(port)/", in: folder)
            let title = try #require(page.firstMatch(of: /<title>(.*)<\/title>/))
            served.append(String(title.1))
            let scripts = page.contains("app.js") ? ["app.js", "trebuchet.js"] : ["trebuchet.js"]
            for script in scripts + ["style.css"] {
                _ = try await Self.run(
                    "curl -sSf -m 20 -o '\(script)' http://127.0.0.1:\(port)/\(script)", in: folder)
            }
        }
        #expect(served == ["To do", "To do", "Chat"])
        server?.signal(SIGTERM)
        #expect(await server?.finish().status == 0)
        // The generated file equals that of the example.
        let written = try String(contentsOf: folder.appending(path: "chat/web/chat.ts"), encoding: .utf8)
        #expect(try written == String(contentsOf: Example.chat.file("web/chat.ts"), encoding: .utf8))
    }
}
