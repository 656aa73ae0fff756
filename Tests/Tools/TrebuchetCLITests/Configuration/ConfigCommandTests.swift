import Commands
import Foundation
import Glibc
import TestSupport
import Testing

@testable import TrebuchetCLI

/// Configuration files, variables and the version, with the executable as a user runs it.
@Suite(.timeLimit(.minutes(5))) struct ConfigCommandTests {
    private final class Folder {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("trebuchet-\(UUID())").path

        init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }
        deinit { try? FileManager.default.removeItem(atPath: path) }

        var file: String { path + "/trebuchet.toml" }
        func write(_ text: String, to name: String = "trebuchet.toml") throws {
            try Data(text.utf8).write(to: URL(fileURLWithPath: "\(path)/\(name)"))
        }
    }

    private func trebuchet(
        _ arguments: String..., environment: [String] = []
    ) async throws -> ChildProcess.Outcome {
        try await ChildProcess("/usr/bin/env", environment + [ServeProcess.tool] + arguments, error: .captured).finish()
    }

    @Test("the version is printed on standard output, and is that of the packages")
    func version() async throws {
        for arguments in ["--version", "version"] {
            let outcome = try await trebuchet(arguments)
            #expect(outcome.status == 0 && outcome.error.isEmpty)
            #expect(
                outcome.output.wholeMatch(of: /trebuchet \d+\.\d+\.\d+\S* \(Swift \d+\.\d+, linux \w+\)\n/) != nil,
                "\(outcome.output)")
            #expect(outcome.output.hasPrefix("trebuchet \(TrebuchetVersion.number) "))
        }
        #expect(try await trebuchet("version", "1").status == 2)
        // Packages are named by this file.
        let file = try String(contentsOf: packageRoot.appending(path: "VERSION"), encoding: .utf8)
        #expect(file.trimmingCharacters(in: .whitespacesAndNewlines) == TrebuchetVersion.number)
    }

    @Test("config check reports all problems of a file with their places, and exits with 0, 1 or 2")
    func check() async throws {
        let folder = try Folder()
        try folder.write("port = 9090\nstandby = true\n")
        let right = try await trebuchet("config", "check", folder.file)
        #expect(right.status == 0 && right.output == "\(folder.file) is valid: 2 settings\n")
        #expect(right.error.hasPrefix("warning: \(folder.file):2:1: standby requires --data"), "\(right.error)")
        try folder.write("prot = 9090\nhost = localhost\norigins = [\n  'https://app.example',\n")
        let wrong = try await trebuchet("config", "check", folder.file)
        #expect(wrong.status == 1 && wrong.output.isEmpty)
        #expect(
            wrong.error == """
                \(folder.file):1:1: unknown key 'prot'; did you mean 'port'?
                \(folder.file):2:8: 'localhost' is not a value: write strings in quotation marks, decimal numbers, true or false
                \(folder.file):3:11: the array is not closed
                trebuchet config check: 3 problems

                """)
        let missing = try await trebuchet("config", "check", folder.path + "/none.toml")
        #expect(missing.status == 1)
        #expect(missing.error.hasPrefix("\(folder.path)/none.toml: No such file or directory\n"), "\(missing.error)")
        #expect(
            try await trebuchet("config", "check", folder.path).error.hasPrefix("\(folder.path): not a regular file"))
        #expect(try await trebuchet("config", "check").status == 2)
        let unknown = try await trebuchet("config", "chek", folder.file)
        #expect(unknown.status == 2 && unknown.error.contains("did you mean 'check'?"))
    }

    @Test("config show prints the options that a server would have, and where they come from")
    func show() async throws {
        let folder = try Folder()
        try folder.write("# listens here\nport = 9090\n")
        let shown = try await trebuchet(
            "config", "show", "--config", folder.file,
            environment: ["TREBUCHET_HOST=::1", "TREBUCHET_SMTP_PASSWORD=a-password"])
        #expect(shown.status == 0 && shown.error.isEmpty)
        let rows = shown.output.split(separator: "\n").map { $0.split(separator: /[ ]{2,}/).joined(separator: "|") }
        for row in [
            "port|9090|\(folder.file):2", "host|::1|TREBUCHET_HOST", "reactors|one per core|default",
            "smtp-password|********|TREBUCHET_SMTP_PASSWORD",
        ] { #expect(rows.contains(row), "\(row) in \(rows)") }
        #expect(!shown.output.contains("a-password"))
        try folder.write("prot = 1\nhots = ''\n")
        let wrong = try await trebuchet("config", "show", environment: ["TREBUCHET_CONFIG=\(folder.file)"])
        #expect(wrong.status == 1 && wrong.output.isEmpty)
        #expect(wrong.error.split(separator: "\n").count == 2, "\(wrong.error)")
        #expect(wrong.error.hasPrefix("trebuchet config show: \(folder.file):1:1: unknown key 'prot'"))
    }

    @Test("serve has options from a file, from variables and from its command line, in this precedence")
    func serve() async throws {
        let folder = try Folder()
        let ports = freePorts(2)
        let (one, two) = (ports[0], ports[1])
        try folder.write("port = \(one)\nservices = ['rooms']\nexamples = true\n")
        for (arguments, environment, start) in [
            ([], [], "trebuchet serves todos, counter, game, rooms on ws://127.0.0.1:\(one) "),
            (
                ["--examples=false"], ["TREBUCHET_SERVICES=auth", "TREBUCHET_PORT=\(two)"],
                "trebuchet serves auth on ws://127.0.0.1:\(two) "
            ),
            (
                ["--port", "\(two)", "--services", "none"], ["TREBUCHET_EXAMPLES=false", "TREBUCHET_PORT=\(one)"],
                "trebuchet serves nothing on ws://127.0.0.1:\(two) "
            ),
        ] as [([String], [String], String)] {
            let server = try ChildProcess(
                "/usr/bin/env", environment + [ServeProcess.tool, "serve", "--config", folder.file] + arguments)
            let line = await server.nextLine() ?? ""
            #expect(line.hasPrefix(start) && line.hasSuffix("; version \(TrebuchetVersion.number))"), "\(line)")
            server.signal(SIGTERM)
            #expect(await server.finish().status == 0)
        }
    }

    @Test("serve does not start with an invalid file or variable, and creates no store")
    func refused() async throws {
        let folder = try Folder()
        let data = folder.path + "/chat.db"
        try folder.write("data = '\(data)'\nport = 'x'\nhots = 1\n")
        let wrong = try await trebuchet("serve", "--config", folder.file)
        #expect(wrong.status == 1 && wrong.output.isEmpty)
        #expect(
            wrong.error == """
                trebuchet serve: \(folder.file):2:8: port must be a whole number, without quotation marks
                trebuchet serve: \(folder.file):3:1: unknown key 'hots'; did you mean 'host'?

                """)
        try folder.write("data = '\(data)'\ntls-cert = '\(folder.path)/none.pem'\n")
        let incomplete = try await trebuchet("serve", "--config", folder.file)
        #expect(incomplete.status == 2)
        #expect(
            incomplete.error == "trebuchet serve: --tls-cert and --tls-key require each other (--tls-cert comes from "
                + "\(folder.file):2)\n")
        let variable = try await trebuchet("serve", environment: ["TREBUCHET_PORT=x"])
        #expect(variable.status == 2 && variable.error.contains("(--port comes from TREBUCHET_PORT)"))
        #expect(!FileManager.default.fileExists(atPath: data))
    }

    @Test("SIGHUP applies a changed file or says that a restart is necessary, and an invalid file changes nothing")
    func hangUp() async throws {
        let folder = try Folder()
        let (first, second) = (folder.path + "/first.json", folder.path + "/second.json")
        try folder.write(#"{"collections":{"*":{"create":"nobody"}}}"#, to: "first.json")
        try folder.write("{}", to: "second.json")
        try folder.write("port = 0\nrules = '\(first)'\n")
        let server = try ChildProcess(
            "/usr/bin/env", ["TREBUCHET_ADMN=x", ServeProcess.tool, "serve", "--config", folder.file], error: .merged)
        func line(_ text: String) async -> String? {
            while let line = await server.nextLine() { if line.contains(text) { return line } }
            return nil
        }
        #expect(await line("warning")?.contains("did you mean TREBUCHET_ADMIN?") == true)
        let start = try #require(await line("trebuchet serves"))
        let url = String(try #require(start.firstMatch(of: /ws:\/\/[0-9.:]+/)).output)
        func create() async throws -> Int32 {
            try await trebuchet("collection", "create", "--url", url, "todos", #"{"id":"1"}"#).status
        }
        #expect(try await create() == 1)

        let message = "trebuchet serve: configuration not reloaded; the current one stays active: \(folder.file)"
        try folder.write("port = 0\nrules = '\(second)'\nprot = 1\n")
        server.signal(SIGHUP)
        #expect(await line("not reloaded") == message + ":3:1: unknown key 'prot'; did you mean 'port'?")
        // The rules of the current configuration are read again.
        #expect(await line("rules") == "trebuchet serve: rules reloaded")
        #expect(try await create() == 1)

        try folder.write("port = 0\nrules = '\(folder.path)/none.json'\n")
        server.signal(SIGHUP)
        #expect(
            await line("rules")?.hasPrefix("trebuchet serve: rules not changed; the current value stays active:")
                == true)
        #expect(try await create() == 1)

        try folder.write("port = 0\nrules = '\(second)'\ndrain-timeout = 7\n")
        server.signal(SIGHUP)
        #expect(
            await line("configuration")
                == "trebuchet serve: configuration: drain-timeout changed from 10 to 7 (\(folder.file):3), which takes "
                + "effect after a restart")
        #expect(
            await line("configuration")
                == "trebuchet serve: configuration: rules changed from \(first) to \(second) (\(folder.file):2), which "
                + "takes effect now")
        #expect(try await create() == 0)
        server.signal(SIGTERM)
        #expect(await server.finish().status == 0)
    }
}
