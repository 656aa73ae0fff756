import Foundation
import FoundationNetworking
import Glibc
import TestCertificates
import TestSupport
import Testing

/// A server from an operator's point of view: its log, its metrics and its shutdown.
@Suite(.timeLimit(.minutes(5))) struct OperatorTests {
    /// `serve` with an admin endpoint, whose output and log are merged.
    private final class Server {
        struct DidNotStart: Error {}

        let process: ChildProcess
        private(set) var url = ""
        private(set) var admin = ""

        convenience init(_ arguments: String...) async throws { try await self.init(arguments) }

        /// - Parameter script: a shell script that starts it; receives the command as arguments.
        init(_ arguments: [String], startedBy script: String? = nil) async throws {
            let all = ["serve", "--examples", "--port", "0", "--admin", "127.0.0.1:0"] + arguments
            process =
                if let script {
                    try ChildProcess("/bin/sh", ["-c", script, "sh", ServeProcess.tool] + all, error: .merged)
                } else {
                    try ChildProcess(ServeProcess.tool, all, error: .merged)
                }
            while let line = await process.nextLine() {
                if let found = line.firstMatch(of: /wss?:\/\/\S+/), url.isEmpty { url = String(found.0) }
                if let found = line.firstMatch(of: /^admin endpoint: (https?:\/\/[^\/]+)/) { admin = String(found.1) }
                if line.hasPrefix("and: ") { break }
            }
            if url.isEmpty || admin.isEmpty { throw DidNotStart() }
        }

        /// The status and the text of a response.
        func get(_ path: String) async throws -> (status: Int, text: String) {
            let (data, answer) = try await URLSession.shared.data(from: URL(string: admin + path)!)
            return ((answer as? HTTPURLResponse)?.statusCode ?? 0, String(decoding: data, as: UTF8.self))
        }

        /// Stops the server and returns the rest of its output.
        func stop() async -> ChildProcess.Outcome {
            process.signal(SIGTERM)
            return await process.finish()
        }
    }

    private func trebuchet(_ arguments: String...) async throws -> ChildProcess.Outcome {
        try await ChildProcess(ServeProcess.tool, arguments, error: .captured).finish()
    }

    /// The state of the pipe at a server's standard error.
    enum Reader: String, CaseIterable {
        /// A full pipe that is not read.
        case stopped = "exec 3<>\"$FIFO\"; head -c 65536 /dev/zero >&3; exec \"$@\" 2>&3"
        /// A pipe whose reader has exited.
        case gone = "exec 3<>\"$FIFO\"; exec 4>\"$FIFO\"; exec 3>&-; exec \"$@\" 2>&4 4>&-"
    }

    @Test(
        "an unread or closed log pipe blocks neither clients nor the server's shutdown",
        arguments: Reader.allCases, [[], ["--log-level", "debug"]])
    func unread(reader: Reader, options: [String]) async throws {
        let folder = NSTemporaryDirectory() + "trebuchet-\(UUID())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let start = "FIFO='\(folder)/log'; mkfifo \"$FIFO\"; "
        let server = try await Server(["--services", "none"] + options, startedBy: start + reader.rawValue)
        let page = try #require(URL(string: server.url.replacing("ws://", with: "http://")))
        // Each request makes at least one log line.
        for _ in 0..<20 {
            var request = URLRequest(url: page)
            request.setValue("https://elsewhere.example", forHTTPHeaderField: "Origin")
            let (_, answer) = try await URLSession.shared.data(for: request)
            #expect((answer as? HTTPURLResponse)?.statusCode == 403)
            #expect(try await server.get("/livez").status == 200)
        }
        #expect(await server.stop().status == 0)
    }

    @Test(
        "an unread or closed pipe for codes blocks neither sign-ins nor the shutdown",
        arguments: Reader.allCases)
    func unreadCodes(reader: Reader) async throws {
        let folder = NSTemporaryDirectory() + "trebuchet-\(UUID())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let start = "FIFO='\(folder)/log'; mkfifo \"$FIFO\"; "
        let server = try await Server(["--services", "auth"], startedBy: start + reader.rawValue)
        for name in ["ada", "bob", "cyd"] {
            let sent = try await ChildProcess(
                "/usr/bin/env",
                [
                    "XDG_STATE_HOME=\(folder)", ServeProcess.tool, "sign-in", "--url", server.url, "--email",
                    "\(name)@b.c",
                ],
                error: .captured
            ).finish()
            #expect(sent.status == 0 && sent.output.contains("a code was sent"), "\(sent.error)")
        }
        #expect(try await trebuchet("call", "--url", server.url, "counter", "increment()").status == 0)
        #expect(await server.stop().status == 0)
    }

    @Test(
        "each line of a JSON log is JSON, and a refused sign-in has a reason in the log that its client does not receive"
    )
    func log() async throws {
        let folder = NSTemporaryDirectory() + "trebuchet-\(UUID())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let mailbox = try Mailbox(in: folder)
        let server = try await Server(
            "--log-level", "debug", "--log-format", "json", "--mail-command", mailbox.command)
        let state = "XDG_STATE_HOME=\(folder)"
        func signIn(_ arguments: String...) async throws -> ChildProcess.Outcome {
            try await ChildProcess(
                "/usr/bin/env", [state, ServeProcess.tool, "sign-in", "--url", server.url] + arguments, error: .captured
            ).finish()
        }
        #expect(try await signIn("--email", "ada@b.c").status == 0)
        let code = try mailbox.code(sentTo: "ada@b.c")
        let wrong = code == "123456" ? "123457" : "123456"
        let refused = try await signIn("--email", "ada@b.c", "--code", wrong)
        #expect(refused.status != 0)
        #expect(try await signIn("--email", "ada@b.c", "--code", code).status == 0)
        #expect(try await trebuchet("call", "--url", server.url, "counter", "add(_:)", "41907").status == 0)
        let output = await server.stop().output
        let lines = output.split(separator: "\n")
        let objects = lines.compactMap { line in
            try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        }
        #expect(objects.count == lines.count && !lines.isEmpty, "\(output)")
        let messages = objects.compactMap { $0["message"] as? String }
        #expect(messages.contains { $0.contains("to sign in as ada@b.c") && $0.contains("refused") }, "\(messages)")
        #expect(objects.contains { $0["method"] as? String == "add(_:)" && $0["seconds"] is Double })
        #expect(messages.contains("signed in"))
        // Whole numbers only: a time in milliseconds may contain the digits of a code.
        let numbers = Set(output.split { !$0.isNumber }.map(String.init))
        for secret in [code, wrong, "41907"] { #expect(!numbers.contains(secret), "\(secret)") }
    }

    @Test("readiness ends first, and clients are served until the delay has passed")
    func drainDelay() async throws {
        let server = try await Server("--drain-delay", "3600")
        #expect(try await server.get("/readyz").status == 200)
        server.process.signal(SIGTERM)
        #expect(try await eventually { try await server.get("/readyz").status == 503 })
        #expect(try await trebuchet("call", "--url", server.url, "counter", "increment()").output == "1\n")
        #expect(try await server.get("/healthz").status == 200)
        // A second signal ends it immediately, as always.
        server.process.signal(SIGTERM)
        #expect(await server.process.finish().status == 143)
    }

    @Test("calls start traces, and the collector has their spans when the server has exited")
    func traces() async throws {
        let collector = try Collector()
        defer { collector.stop() }
        let server = try await Server("--otlp", collector.url, "--trace-sample", "1", "--log-level", "debug")
        for _ in 0..<3 {
            #expect(try await trebuchet("call", "--url", server.url, "counter", "add(_:)", "41907").status == 0)
        }
        #expect(try await trebuchet("call", "--url", server.url, "counter", "add(_:)", #""no number""#).status != 0)
        let outcome = await server.stop()
        #expect(outcome.status == 0)
        let spans = collector.spans.filter { $0["kind"] as? Int == 2 }
        #expect(spans.count == 4, "\(outcome.output)")
        #expect(spans.allSatisfy { $0["name"] as? String == "TrebuchetCLI.Counter/add(_:)" })
        #expect(Set(spans.compactMap { $0["traceId"] as? String }).count == 4)
        #expect(spans.map { Collector.attributes($0)["error.type"] } == [nil, nil, nil, "invalidArguments"])
        for span in spans {
            let trace = try #require(span["traceId"] as? String)
            #expect(outcome.output.contains("trace=\(trace)"))
            // Whole words only: a time in nanoseconds may contain these digits.
            #expect(!"\(span)".split { !$0.isLetter && !$0.isNumber }.contains("41907"))
        }
    }

    @Test("a collector that never responds delays neither a server's service nor its shutdown")
    func silentCollector() async throws {
        let collector = try Collector(.silent)
        defer { collector.stop() }
        let server = try await Server("--otlp", collector.url, "--trace-sample", "1")
        #expect(try await trebuchet("call", "--url", server.url, "counter", "increment()").output == "1\n")
        #expect(await eventually { !collector.requests.isEmpty })
        #expect(try await trebuchet("call", "--url", server.url, "counter", "increment()").output == "2\n")
        let began = ContinuousClock.now
        let outcome = await server.stop()
        #expect(outcome.status == 0 && ContinuousClock.now - began < .seconds(60))
        #expect(outcome.output.contains("2 spans were not sent to \(collector.url)/v1/traces"), "\(outcome.output)")
    }

    @Test(
        "options that would expose metrics publicly, or have no effect, end serve with a reason",
        arguments: [
            (["--admin", "0.0.0.0:0"], "TLS and a token"),
            (["--admin", "127.0.0.1"], "is not HOST:PORT"),
            (["--admin-token-file", "/nowhere"], "requires --admin"),
            (["--admin", "127.0.0.1:0", "--admin-token-file", "/nowhere"], "/nowhere: No such file or directory"),
            (["--admin", "127.0.0.1:0", "--admin-tls-cert", "a.pem"], "require each other"),
            (["--inspector", "0.0.0.0:0"], "TLS and a token"),
            (["--inspector", "example.com:0"], "TLS and a token"),
            (["--inspector", "127.0.0.1:x"], "is not HOST:PORT"),
            (["--inspector-token-file", "/nowhere"], "requires --inspector"),
            (["--inspector-write"], "requires --inspector"),
            (["--otlp", "localhost:4318"], "is not an http or https URL"),
            (["--otlp", "http://ada:pass@localhost:4318"], "'…@localhost:4318' is not an http or https URL"),
            (["--otlp", "http://localhost:4318", "--trace-sample", "2"], "--trace-sample"),
            (["--trace-sample", "1"], "requires --otlp"), (["--otlp-service", "a"], "requires --otlp"),
            (["--log-level", "loud"], "not one of trace, debug"),
            (["--log-format", "xml"], "is not 'text' or 'json'"),
        ])
    func refused(arguments: [String], reason: String) async throws {
        let outcome = try await ChildProcess(
            ServeProcess.tool, ["serve", "--port", "0"] + arguments, error: .captured
        ).finish()
        #expect(outcome.status != 0)
        #expect(outcome.error.contains(reason), "\(outcome.error)")
    }

    @Test(
        "a token file writable by other users is refused", arguments: ["admin", "inspector"], [0o620, 0o602, 0o666])
    func tokenFiles(option: String, mode: Int) async throws {
        let file = NSTemporaryDirectory() + "trebuchet-\(UUID())"
        defer { try? FileManager.default.removeItem(atPath: file) }
        try "0123456789abcdef\n".write(toFile: file, atomically: true, encoding: .utf8)
        #expect(chmod(file, mode_t(mode)) == 0)
        let outcome = try await ChildProcess(
            ServeProcess.tool,
            ["serve", "--port", "0", "--\(option)", "127.0.0.1:0", "--\(option)-token-file", file],
            error: .captured
        ).finish()
        #expect(outcome.status != 0)
        #expect(outcome.error.contains("writable by other users"), "\(outcome.error)")
    }

    @Test("a public inspector needs TLS and a token file, and does not print the token")
    func publicInspector() async throws {
        let folder = NSTemporaryDirectory() + "trebuchet-\(UUID())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try "a-token-for-who-looks\n".write(toFile: folder + "/token", atomically: true, encoding: .utf8)
        let tls = [
            "--tls-cert", TestCertificate.path("server.pem"), "--tls-key", TestCertificate.path("server.key"),
        ]
        let withoutToken = try await ChildProcess(
            ServeProcess.tool, ["serve", "--port", "0", "--inspector", "0.0.0.0:0"] + tls, error: .captured
        ).finish()
        #expect(withoutToken.status != 0 && withoutToken.error.contains("TLS and a token"), "\(withoutToken)")
        let server = try ChildProcess(
            ServeProcess.tool,
            ["serve", "--examples", "--port", "0", "--inspector", "0.0.0.0:0"] + tls
                + ["--inspector-token-file", folder + "/token"])
        var port = ""
        while let line = await server.nextLine() {
            if let found = line.firstMatch(of: /^inspector: https:\/\/0\.0\.0\.0:(\d+)\/$/) { port = String(found.1) }
            #expect(!line.contains("a-token"))
            if line.hasPrefix("and: ") { break }
        }
        try #require(!port.isEmpty)
        func look(_ token: String) async throws -> ChildProcess.Outcome {
            try await ChildProcess(
                "/usr/bin/env",
                [
                    "SSL_CERT_FILE=\(TestCertificate.path("ca.pem"))", ServeProcess.tool, "inspect", "actors", "--url",
                    "https://localhost:\(port)/", "--token", token,
                ], error: .captured
            ).finish()
        }
        let seen = try await look("a-token-for-who-looks")
        #expect(seen.status == 0 && seen.output.contains("todos"), "\(seen)")
        let guessed = try await look("a-token-for-nobody")
        #expect(guessed.status != 0 && guessed.error.contains("401"), "\(guessed)")
        server.signal(SIGTERM)
        #expect(await server.finish().status == 0)
    }

    @Test(
        "when clients have exhausted the descriptors, the admin endpoint still responds, and this is logged and counted"
    )
    func descriptors() async throws {
        let server = try await Server(
            ["--services", "none", "--log-level", "warning"], startedBy: "ulimit -n 96; exec \"$@\"")
        let port = try #require(server.url.split(separator: ":").last.flatMap { UInt16($0) })
        let peers = (0..<150).map { _ in Self.connect(port) }
        let isCounted = try await eventually {
            // A new connection each time.
            let configuration = URLSessionConfiguration.ephemeral
            let session = URLSession(configuration: configuration)
            defer { session.invalidateAndCancel() }
            let (data, answer) = try await session.data(from: URL(string: server.admin + "/metrics")!)
            #expect((answer as? HTTPURLResponse)?.statusCode == 200)
            let counted = String(decoding: data, as: UTF8.self)
                .firstMatch(of: /trebuchet_refusals_total\{limit="openFiles"\} (\d+)/)
            return counted.flatMap { Int($0.1) } ?? 0 > 1
        }
        #expect(isCounted)
        #expect(try await server.get("/livez").status == 200)
        for peer in peers { close(peer) }
        // The waiting connections were accepted, and have closed.
        #expect(try await trebuchet("call", "--url", server.url, "counter", "increment()").status == 0)
        let said = await server.stop().output
        #expect(said.contains("limit=openFiles"), "\(said)")
    }

    /// An idle connection.
    private static func connect(_ port: UInt16) -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = port.bigEndian
        inet_pton(AF_INET, "127.0.0.1", &name.sin_addr)
        _ = withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        return descriptor
    }

    @Test(
        "Prometheus scrapes a server, and promtool reports no problem",
        .enabled(
            if: ["prometheus", "promtool"].allSatisfy { access("/usr/bin/\($0)", X_OK) == 0 },
            "there is no Prometheus: scripts/bootstrap --prometheus"))
    func prometheus() async throws {
        let folder = NSTemporaryDirectory() + "trebuchet-\(UUID())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try "a-token-for-prometheus\n".write(toFile: folder + "/token", atomically: true, encoding: .utf8)
        let server = try await Server("--admin-token-file", folder + "/token")
        #expect(try await server.get("/metrics").status == 401)
        for _ in 0..<3 {
            #expect(try await trebuchet("call", "--url", server.url, "counter", "increment()").status == 0)
        }
        let checked = try await ChildProcess(
            "/bin/bash",
            [
                "-o", "pipefail", "-c",
                "curl -sf -H 'Authorization: Bearer a-token-for-prometheus' \(server.admin)/metrics | promtool check metrics",
            ], error: .captured
        ).finish()
        #expect(checked.status == 0 && checked.error.isEmpty, "\(checked)")

        let port = freePorts(1)[0]
        let configuration = """
            global: {scrape_interval: 1s}
            scrape_configs:
              - job_name: trebuchet
                authorization: {credentials_file: \(folder)/token}
                static_configs: [{targets: ["\(server.admin.dropFirst("http://".count))"]}]
            """
        try configuration.write(toFile: folder + "/prometheus.yml", atomically: true, encoding: .utf8)
        let prometheus = try ChildProcess(
            "/usr/bin/prometheus",
            [
                "--config.file=\(folder)/prometheus.yml", "--storage.tsdb.path=\(folder)/data",
                "--web.listen-address=127.0.0.1:\(port)",
            ], error: .captured)
        func value(_ query: String) async -> String? {
            var url = URLComponents(string: "http://127.0.0.1:\(port)/api/v1/query")!
            url.queryItems = [URLQueryItem(name: "query", value: query)]
            guard let (data, _) = try? await URLSession.shared.data(from: url.url!) else { return nil }
            return String(decoding: data, as: UTF8.self).firstMatch(of: /"value":\[[0-9.]+,"([^"]*)"\]/).map {
                String($0.1)
            }
        }
        let calls = #"trebuchet_call_duration_seconds_count{type="TrebuchetCLI.Counter",method="increment()"}"#
        #expect(await eventually { await value(calls) == "3" })
        #expect(await value("up") == "1")
        #expect(await value("trebuchet_ready") == "1")
        #expect(
            await value(#"histogram_quantile(1, trebuchet_call_duration_seconds_bucket{method="increment()"}) < 10"#)
                != nil)
        prometheus.signal(SIGTERM)
        _ = await prometheus.finish()
        #expect(await server.stop().status == 0)
    }
}
