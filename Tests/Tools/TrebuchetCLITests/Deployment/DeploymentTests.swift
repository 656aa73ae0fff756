import Foundation
import FoundationNetworking
import Glibc
import TestCertificates
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Runs the packaged unit with the options of Docs/Guides/Deployment.md as documented.
@Suite(.timeLimit(.minutes(5))) struct DeploymentTests {
    private static let nginxIsThere: Comment =
        "there is no nginx: apt-get install nginx-light, or name one in TREBUCHET_NGINX (Docs/Internals/Testing.md)"
    private static let verifier = "/usr/bin/systemd-analyze"

    private static var page: DocumentedPage { get throws { try DocumentedPage("Guides/Deployment.md") } }

    /// The unit, with the built program and a temporary file.
    private static func unit(data: String) throws -> ServiceUnit {
        try ServiceUnit.ofPage(data: data, rules: data + ".rules.json")
    }

    private func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("trebuchet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder.path)
    }

    @Test(
        "systemd-analyze verify reports no problem in the unit",
        .enabled(if: access(verifier, X_OK) == 0, "there is no systemd-analyze: apt-get install systemd"))
    func verify() async throws {
        try await withFolder { folder in
            let unit = try Self.unit(data: folder + "/data.db")
            let file = folder + "/trebuchet@.service"
            try unit.text.write(toFile: file, atomically: true, encoding: .utf8)
            let outcome = try await ChildProcess(Self.verifier, ["verify", "--man=no", file], error: .merged).finish()
            // It also checks units of the system, some of which may be missing on this machine.
            let findings = outcome.output.split(separator: "\n").filter { $0.contains("trebuchet@") }
            #expect(findings.isEmpty, "\(outcome.output)")

            let spoiled = unit.text.replacingOccurrences(of: "LimitNOFILE=", with: "LimitNOFILES=")
            try spoiled.write(toFile: file, atomically: true, encoding: .utf8)
            let other = try await ChildProcess(Self.verifier, ["verify", "--man=no", file], error: .merged).finish()
            #expect(other.output.contains("LimitNOFILES"), "a wrong setting is reported: \(other.output)")
        }
    }

    @Test("the packaged backup service copies the data beside the server; systemd accepts it and its timer")
    func backup() async throws {
        try await withFolder { folder in
            let server = try await ServeProcess(arguments: ["--data", folder + "/trebuchet.db"])
            let packaged = packageRoot.appending(path: "Packaging/trebuchet-backup.service")
            let service = ServiceUnit(try String(contentsOf: packaged, encoding: .utf8))
            let defaults = try #require(service["Environment"]?.firstMatch(of: /"TREBUCHET_BACKUP_OPTIONS=([^"]*)"/))
            let options = try String(defaults.output.1).filledIn(["/var/lib/trebuchet": folder])
            try FileManager.default.createDirectory(atPath: folder + "/backups", withIntermediateDirectories: true)
            let unit = ServiceUnit(
                try service.text.filledIn([
                    "/usr/bin/trebuchet": ServeProcess.tool, "$TREBUCHET_BACKUP_OPTIONS": options,
                    "EnvironmentFile=": "EnvironmentFile=-",
                ]))
            let outcome = try await unit.start(instance: "", error: .captured).finish()
            #expect(outcome.status == 0 && outcome.output.hasPrefix(folder + "/backups/trebuchet-"), "\(outcome)")
            let kept = try FileManager.default.contentsOfDirectory(atPath: folder + "/backups")
            #expect(kept.count == 1)
            #expect(await server.stop() == 0)
            guard access(Self.verifier, X_OK) == 0 else { return }
            let timer = packageRoot.appending(path: "Packaging/trebuchet-backup.timer")
            let files = [folder + "/trebuchet-backup.service", folder + "/trebuchet-backup.timer"]
            try unit.text.write(toFile: files[0], atomically: true, encoding: .utf8)
            try FileManager.default.copyItem(atPath: timer.path, toPath: files[1])
            let verified = try await ChildProcess(Self.verifier, ["verify", "--man=no"] + files, error: .merged)
                .finish()
            #expect(!verified.output.contains("trebuchet-backup"), "\(verified.output)")
        }
    }

    @Test("the service of the unit passes its health check and drains at SIGTERM; the standby takes over")
    func standby() async throws {
        try await withFolder { folder in
            let unit = try Self.unit(data: folder + "/data.db")
            #expect(unit["KillSignal"] == "SIGTERM")
            #expect(Int(unit["TimeoutStopSec"] ?? "").map { $0 > 10 } == true, "longer than the drain time of serve")
            let ports = freePorts(2)
            let first = try unit.start(instance: "\(ports[0])", error: .captured)
            #expect(await first.nextLine()?.contains("on ws://127.0.0.1:\(ports[0]) ") == true)
            #expect(await health(ports[0]) == "ok")
            // The access restrictions are in force.
            #expect(await first.nextLine()?.hasPrefix("state: persisted in ") == true)
            #expect(await first.nextLine()?.hasPrefix("rules: \(folder)/data.db.rules.json, collections: 1,") == true)
            #expect(await first.nextLine()?.hasPrefix("admin socket: \(folder)/data.db.admin,") == true)
            let open = try #require(try Self.page.blocks("sh").first)
            #expect(open.contains("--services auth,rooms,collections") && !open.contains("--examples"))

            let second = try unit.start(instance: "\(ports[1])", error: .merged)
            var line = await second.nextLine()
            while let text = line, !text.contains("standing by: ") { line = await second.nextLine() }
            #expect(line?.contains("is in use by process \(first.processID)") == true, "\(line ?? "ended")")
            #expect(await health(ports[1]) == nil, "the standby does not listen")

            // The first process is killed, as in a crash.
            first.signal(SIGKILL)
            _ = await first.finish()
            line = await second.nextLine()
            while let text = line, !text.contains("on ws://") { line = await second.nextLine() }
            #expect(line?.contains("on ws://127.0.0.1:\(ports[1]) ") == true, "\(line ?? "ended")")
            #expect(await health(ports[1]) == "ok")

            let third = try unit.start(instance: "\(ports[0])", error: .merged)
            line = await third.nextLine()
            while let text = line, !text.contains("standing by: ") { line = await third.nextLine() }
            third.signal(SIGTERM)
            #expect(await third.finish().status == 0, "the standby drains as well")
            second.signal(SIGTERM)
            #expect(await second.finish().status == 0)
        }
    }

    @Test("the configuration file of the page is the example, has no problems, and starts a server")
    func configuration() async throws {
        let example = packageRoot.appending(path: "Examples/deployment/trebuchet.toml")
        let text = try String(contentsOf: example, encoding: .utf8)
        #expect(try Self.page.blocks("toml") == [text])
        let check = try await ChildProcess(
            ServeProcess.tool, ["config", "check", example.path], error: .captured
        ).finish()
        #expect(check.status == 0 && check.error.isEmpty, "\(check)")
        try await withFolder { folder in
            try "{}".write(toFile: folder + "/rules.json", atomically: true, encoding: .utf8)
            try text.filledIn(["/var/lib/trebuchet/": folder + "/", "/etc/trebuchet/": folder + "/"])
                .write(toFile: folder + "/trebuchet.toml", atomically: true, encoding: .utf8)
            let port = freePorts(1)[0]
            let server = try ChildProcess(
                ServeProcess.tool, ["serve", "--config", folder + "/trebuchet.toml", "--port", "\(port)"],
                error: .captured)
            let start = await server.nextLine() ?? ""
            #expect(start.hasPrefix("trebuchet serves auth, rooms, collections on ws://127.0.0.1:\(port) "), "\(start)")
            #expect(await health(port) == "ok")
            #expect(await server.nextLine() == "state: persisted in \(folder)/trebuchet.db")
            #expect(await server.nextLine() == "rules: \(folder)/rules.json, collections: 0, rooms: 0")
            server.signal(SIGTERM)
            #expect(await server.finish().status == 0)
        }
    }

    @Test("the custom program on the page is the one compiled here")
    func ownProgram() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "OwnServerExample.swift")
        func lines(_ text: String) -> [Substring] {
            text.split(separator: "\n").map { $0.drop { $0 == " " } }.filter { !$0.isEmpty }
        }
        let compiled = lines(try String(contentsOf: file, encoding: .utf8))
        let shown = lines(try #require(try Self.page.blocks("swift").first))
        #expect(shown.count > 5)
        for line in shown { #expect(compiled.contains(line), "\(line)") }
    }

    @Test("--standby requires a file")
    func standbyOfNothing() async throws {
        let outcome = try await ChildProcess(ServeProcess.tool, ["serve", "--standby"], error: .captured).finish()
        #expect(outcome.status == 2)
        #expect(outcome.error.contains("--standby requires --data"))
    }

    @Test(
        "clients behind nginx call and observe without losses while one process takes over from the other",
        .enabled(if: NginxProcess.program != nil, nginxIsThere))
    func rollingRestart() async throws {
        try await withFolder { folder in
            let site = try await Site(folder)
            let callers = TodoCallers()
            let client = site.client()
            try await client.connect()
            let run = Task { await callers.run(client, count: 3) }
            let observer = Task { try await callers.observe(client) }

            for round in 0..<3 {
                let before = callers.answered.count
                #expect(await eventually { callers.answered.count >= before + 10 })
                #expect(try await site.restart(round % 2) == 0)
            }
            let before = callers.answered.count
            #expect(await eventually { callers.answered.count >= before + 10 })
            callers.stop()
            await run.value
            #expect(callers.failures == [], "\(site.log)")
            #expect(
                try await observer.value == callers.answered, "the observer sees exactly the acknowledged titles")
            await client.close()

            let fresh = try await ChildProcess(
                ServeProcess.tool,
                ["observe", "--url", site.url, "--ca-file", TestCertificate.path("ca.pem"), "todos", "observeState"]
                    + ["--count", "1"]
            ).finish()
            #expect(TodoCallers.titles(Array(fresh.output.utf8)) == callers.answered.sorted())
            await site.stop()
        }
    }

    @Test(
        "nginx forwards health checks, and a client's X-Forwarded-For has no effect",
        .enabled(if: NginxProcess.program != nil, nginxIsThere))
    func headers() async throws {
        try await withFolder { folder in
            let site = try await Site(folder)
            func answer(_ headers: String...) async throws -> String {
                let outcome = try await ChildProcess(
                    "/usr/bin/curl",
                    ["-sS", "--cacert", TestCertificate.path("ca.pem"), "-w", "%{http_code}"]
                        + headers.flatMap { ["-H", $0] } + ["https://127.0.0.1:\(site.port)/healthz"],
                    error: .merged
                ).finish()
                return outcome.output.split(separator: "\n").joined(separator: " ")
            }
            #expect(try await answer() == "ok 200")
            #expect(try await answer("X-Forwarded-For: nonsense") == "ok 200")
            #expect(try await answer("Origin: https://app.example") == "ok 200")
            #expect(try await answer("Origin: https://other.example").hasSuffix("403"))
            await site.stop()
        }
    }

    /// The first line of the response of `/healthz`; nil without a listener.
    private func health(_ port: Int) async -> String? {
        guard let url = URL(string: "http://127.0.0.1:\(port)/healthz") else { return nil }
        return try? await URLSession.shared.data(from: url).0.split(separator: UInt8(ascii: "\n")).first.map {
            String(decoding: $0, as: UTF8.self)
        }
    }
}
