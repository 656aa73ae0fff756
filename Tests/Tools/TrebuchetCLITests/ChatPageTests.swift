import Foundation
import TestSupport
import Testing
import TrebuchetTesting

/// Runs the commands of the chat in Docs/Guides/ChatTutorial.md, each line in a shell, in the order of the page.
@Suite(.timeLimit(.minutes(5))) struct ChatPageTests {
    /// The command lines between two headings, each with the documented output.
    private static func commands() throws -> [(line: String, comment: String)] {
        let root = packageRoot
        let page = try String(contentsOf: root.appendingPathComponent("Docs/Guides/ChatTutorial.md"), encoding: .utf8)
        let start = try #require(page.range(of: "# A chat in ten minutes\n")).upperBound
        let end = try #require(page.range(of: "## A client in Swift\n")).lowerBound
        return page[start..<end].split(separator: "\n").filter { $0.hasPrefix("    ") }.map { line in
            let end = line.range(of: " # ")
            return (
                line[..<(end?.lowerBound ?? line.endIndex)].trimmingCharacters(in: .whitespaces),
                line[(end?.upperBound ?? line.endIndex)...].trimmingCharacters(in: .whitespaces)
            )
        }
    }

    /// A reader's machine: temporary folders instead of the home folder and /tmp, and a free port.
    private final class Reader {
        let folder: URL
        var url = ""
        var port = "0"
        /// The exported variables of the current terminal.
        var exports: [String] = []

        init() throws {
            folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        }

        deinit { try? FileManager.default.removeItem(at: folder) }

        func script(_ line: String) -> String {
            """
            cd '\(folder.path)'; export HOME="$PWD"; unset XDG_STATE_HOME
            \(exports.joined(separator: "\n"))
            trebuchet() {
                case $1 in
                serve) exec '\(ServeProcess.tool)' "$@" --port \(port) ;;
                *) exec '\(ServeProcess.tool)' "$@" --url \(url) ;;
                esac
            }
            \(line)
            """
        }

        func type(_ line: String) throws -> ChildProcess {
            return try ChildProcess("/bin/bash", ["-c", script(line)], error: .merged)
        }
    }

    /// IDs differ in each run.
    private static func withoutIDs(_ text: String) -> String {
        text.replacing(/"(id|peer)":"[a-z0-9]{20,}"/) { "\"\($0.1)\":\"…\"" }
            .replacing(/\([A-Za-z0-9_\-]{22}\)/) { _ in "(…)" }
    }

    /// The next line that meets the condition.
    private static func line(
        of process: ChildProcess, _ isIt: (String) -> Bool
    ) async -> String? {
        while let line = await process.nextLine() { if isIt(line) { return line } }
        return nil
    }

    @Test("each command of the ten-minute chat has the documented output")
    func chat() async throws {
        let lines = try Self.commands()
        let verbs = lines.map { $0.line.split(separator: " ").prefix(3).joined(separator: " ") }
        try #require(
            verbs == [
                "scripts/bootstrap && swift", "alias trebuchet=\"$PWD/.build/debug/trebuchet\"",
                "trebuchet serve --data",
                "trebuchet sign-in", "trebuchet sign-in --email", "export XDG_STATE_HOME=/tmp/bob", "trebuchet sign-in",
                "trebuchet presence join", "trebuchet presence join", "trebuchet topic subscribe",
                "trebuchet topic publish",
                "trebuchet collection watch", "trebuchet collection create", "trebuchet collection update",
                "trebuchet collection list",
            ])
        // The first two commands build the program, which is beside the tests.
        let reader = try Reader()
        var server = try reader.type(lines[2].line)
        let started = try #require(await Self.line(of: server) { $0.hasPrefix("trebuchet serves") })
        reader.url = String(try #require(started.split(separator: " ").first { $0.hasPrefix("ws://") }))
        reader.port = String(reader.url.split(separator: ":").last!)

        // The second terminal: Ada.
        let guest = try await reader.type(lines[3].line).finish()
        #expect(Self.withoutIDs(guest.output) == Self.withoutIDs(lines[3].comment) + "\n")
        let asks = try reader.type(lines[4].line)
        let codeLine = try #require(await Self.line(of: server) { $0.contains("code for ada@example.org: ") })
        try asks.send(String(codeLine.suffix(6)))
        let signedIn = await asks.finish()
        let promised = try #require(lines[4].comment.split(separator: "; type it: ").last)
        #expect(Self.withoutIDs(signedIn.output).hasSuffix(Self.withoutIDs(String(promised)) + "\n"))
        let id = try #require(guest.output.firstMatch(of: /\(.*\)/)).0
        #expect(signedIn.output.contains(id), "Ada keeps the id of the guest")

        // The third: Bob. Each command is typed in the terminal that the page names.
        let ada = reader.exports
        let bob = [lines[5].line.replacingOccurrences(of: "/tmp/bob", with: "\"$PWD/bob\"")]
        reader.exports = bob
        let other = try await reader.type(lines[6].line).finish()
        #expect(Self.withoutIDs(other.output) == Self.withoutIDs(lines[6].comment) + "\n")
        #expect(!other.output.contains(id))

        reader.exports = ada
        let adas = try reader.type(lines[7].line)
        reader.exports = bob
        let bobs = try reader.type(lines[8].line)
        #expect(await Self.line(of: adas) { Self.withoutIDs($0) == Self.withoutIDs(lines[7].comment) } != nil)
        #expect(await Self.line(of: bobs) { $0.contains(#""name":"Ada""#) } != nil)
        bobs.signal(SIGINT)
        #expect(await Self.line(of: adas) { $0 == #"{"peers":[]}"# } != nil, "Control-C leaves the room")
        adas.signal(SIGINT)
        for process in [adas, bobs] { _ = await process.finish() }

        reader.exports = ada
        let subscriber = try reader.type(lines[9].line)
        reader.exports = bob
        // The subscriber receives only events published after it has joined.
        let script = reader.script(lines[10].line)
        let publisher = Task {
            while !Task.isCancelled {
                let outcome = try await ChildProcess("/bin/bash", ["-c", script], error: .merged).finish()
                #expect(outcome.status == 0, "\(outcome.output)")
            }
        }
        let received = await Self.line(of: subscriber) { $0.contains("tada") }
        publisher.cancel()
        try await publisher.value
        #expect(received.map(Self.withoutIDs) == Self.withoutIDs(lines[9].comment))
        subscriber.signal(SIGINT)

        reader.exports = ada
        let watch = try reader.type(lines[11].line)
        #expect(await watch.nextLine() == lines[11].comment.split(separator: ",").first.map(String.init))
        reader.exports = bob
        for line in lines[12...13] { #expect(try await reader.type(line.line).finish().status == 0) }
        #expect(await Self.line(of: watch) { $0.contains("Hello, Bob") } != nil)
        watch.signal(SIGINT)
        let list = try await reader.type(lines[14].line).finish()
        #expect(list.status == 0 && list.output.contains("Hello, Bob"))

        // Kill the server with `kill -9`, and start it again.
        server.signal(SIGKILL)
        _ = await server.finish()
        server = try reader.type(lines[2].line)
        #expect(await Self.line(of: server) { $0.hasPrefix("trebuchet serves") } != nil)
        #expect(try await reader.type(lines[14].line).finish() == list)
        reader.exports = ada
        let again = try await reader.type("trebuchet sessions").finish()
        #expect(again.status == 0, "Ada is still signed in: \(again.output)")
        server.signal(SIGTERM)
        #expect(await server.finish().status == 0)
    }
}
