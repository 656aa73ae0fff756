import Foundation
import TestCertificates
import TestSupport
import Testing

/// The HTTP content of `trebuchet serve`, requested by an independent client.
@Suite(.timeLimit(.minutes(5))) struct PageCommandTests {
    /// The responses of one server to several requests over one connection: status, type and size of each, or the output of `-w`.
    private func curl(_ url: String, _ paths: [String], _ more: [String] = []) async throws -> [String] {
        let site = url.replacing("ws", with: "http", maxReplacements: 1)
        var arguments = ["-sS", "--path-as-is", "-m", "20", "--cacert", TestCertificate.path("ca.pem")]
        arguments += ["-w", "%{http_code} %{content_type} %{num_connects}\n"] + more
        for path in paths { arguments += ["-o", "/dev/null", site + path] }
        let outcome = try await ChildProcess("/usr/bin/curl", arguments, error: .merged).finish()
        return outcome.output.split(separator: "\n").map(String.init)
    }

    private func body(_ url: String, _ path: String, _ more: [String] = []) async throws -> String {
        let site = url.replacing("ws", with: "http", maxReplacements: 1)
        return try await ChildProcess("/usr/bin/curl", ["-sS", "-m", "20"] + more + [site + path], error: .merged)
            .finish()
            .output
    }

    private static let html = "text/html; charset=utf-8"
    private static let script = "text/javascript; charset=utf-8"

    @Test("serve provides a start page, the browser client and the schema, over one connection")
    func start() async throws {
        let server = try await ServeProcess()
        let answers = try await curl(server.url, ["/", "/trebuchet.js", "/schema.json", "/nothing", "/", "/healthz"])
        #expect(
            answers == [
                "200 \(Self.html) 1", "200 \(Self.script) 0", "200 application/json; charset=utf-8 0",
                "404 text/plain; charset=utf-8 0", "200 \(Self.html) 0", "200 text/plain; charset=utf-8 0",
            ])
        let page = try await body(server.url, "/", ["-i"])
        #expect(page.contains("Content-Security-Policy: default-src 'none'; script-src 'self' 'sha256-"))
        #expect(page.contains("todos.call(\"addTodo(title:)\""))
        let library = try await body(server.url, "/trebuchet.js")
        #expect(library.contains("connect"))
        let schema = try await body(server.url, "/schema.json")
        #expect(schema.contains("\"todos\" : \"TrebuchetCLI.TodoList\"") && schema.contains("addTodo(title:)"))
        #expect(await server.stop() == 0)
    }

    @Test("with --http-calls curl calls an actor as in the guide, without it calls are answered 404")
    func calls() async throws {
        let path = "/call/todos/addTodo(title:)"
        let server = try await ServeProcess(arguments: ["--http-calls"])
        let item = try await body(server.url, path, ["--json", #"["Milk"]"#])
        #expect(item.contains(#""title":"Milk""#), "\(item)")
        let refused = try await body(server.url, path, ["-w", " %{http_code}", "--json", "[]"])
        #expect(refused.hasSuffix(" 400") && refused.contains("takes 1 argument"), "\(refused)")
        #expect(await server.stop() == 0)
        let other = try await ServeProcess()
        let off = try await body(other.url, path, ["-w", " %{http_code}", "--json", #"["Milk"]"#])
        #expect(off.hasSuffix(" 404") && off.contains("--http-calls"), "\(off)")
        await other.stop()
    }

    @Test("a folder replaces the start page; --origins hides the schema, and --schema publishes it")
    func folder() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data("body { }".utf8).write(to: folder.appendingPathComponent("site.css"))
        let options = ["--static", folder.path, "--origins", "https://app.example"]
        let quiet = try await ServeProcess(arguments: options)
        #expect(
            try await curl(quiet.url, ["/site.css", "/", "/schema.json", "/../x"]) == [
                "200 text/css; charset=utf-8 1", "404 text/plain; charset=utf-8 0", "404 text/plain; charset=utf-8 0",
                "404 text/plain; charset=utf-8 0",
            ])
        try Data("mine".utf8).write(to: folder.appendingPathComponent("index.html"))
        try Data("mine too".utf8).write(to: folder.appendingPathComponent("trebuchet.js"))
        #expect(try await body(quiet.url, "/") == "mine")
        #expect(try await body(quiet.url, "/trebuchet.js") == "mine too")
        #expect(await quiet.stop() == 0)
        let open = try await ServeProcess(arguments: options + ["--schema"])
        #expect(try await body(open.url, "/schema.json", ["-H", "X-Forwarded-For: 192.0.2.1"]).contains("\"todos\""))
        #expect(await open.stop() == 0)
        let outcome = try await ChildProcess(
            ServeProcess.tool, ["serve", "--port", "0", "--static", folder.path + "/site.css"], error: .merged
        ).finish()
        #expect(outcome.status == 2 && outcome.output.contains("is not a folder"))
    }

    @Test("pages are served with TLS as well, and large files are complete")
    func tls() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        var large = Data((0..<4_093).map { UInt8(truncatingIfNeeded: $0 &* 13 &+ $0 >> 4) })
        while large.count < 5_000_000 { large += large }
        try large.write(to: folder.appendingPathComponent("large.bin"))
        let server = try await ServeProcess(arguments: [
            "--tls-cert", TestCertificate.path("server.pem"), "--tls-key", TestCertificate.path("server.key"),
            "--static",
            folder.path,
        ])
        #expect(
            try await curl(server.url, ["/", "/trebuchet.js"]) == [
                "404 text/plain; charset=utf-8 1", "200 \(Self.script) 0",
            ])
        let copy = folder.appendingPathComponent("copy").path
        let site = server.url.replacing("ws", with: "http", maxReplacements: 1)
        let outcome = try await ChildProcess(
            "/usr/bin/curl",
            [
                "-sS", "-m", "60", "--limit-rate", "20M", "--cacert", TestCertificate.path("ca.pem"), "-o", copy,
                site + "/large.bin",
            ],
            error: .merged
        ).finish()
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(FileManager.default.contents(atPath: copy) == large)
        #expect(await server.stop() == 0)
    }
}
