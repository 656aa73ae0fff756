import Commands
import Foundation
import Glibc
import Networking
import TestCertificates
import TestSupport
import Testing

@testable import TrebuchetCLI

/// `trebuchet doctor`: its findings of metrics, and of running servers.
@Suite(.timeLimit(.minutes(5))) struct DoctorCommandTests {
    // MARK: Findings

    /// Metrics of a healthy server.
    private static let healthy = [
        "process_start_time_seconds": 100.0, "process_open_fds": 80, "process_max_fds": 100,
        "process_resident_memory_bytes": 1e9, "trebuchet_buffered_bytes": 80, "trebuchet_buffered_limit_bytes": 1e9,
        "trebuchet_time_seconds": 1_000, "trebuchet_store_size_bytes": 1e9, "trebuchet_store_disk_free_bytes": 2e9,
        "trebuchet_calls_waiting": 100, "trebuchet_actors_unloadable": 0, "trebuchet_store_write_failures_total": 0,
        "trebuchet_alarms_failed_total": 0,
    ]

    private func scrape(_ metrics: [String: Double], at time: Double) -> Examination.Scrape {
        let text = metrics.map { "\($0.key) \($0.value)\n" }.joined()
        return Examination.Scrape(page: MetricsPage(text), time: time, uncertainty: 0.5)
    }

    /// Returns a server with these metrics, read twice within 2 s; the second values replace the first.
    private func examination(
        _ first: [String: Double] = [:], _ second: [String: Double] = [:], server: String = "http://one"
    ) -> Examination {
        var examination = Examination(of: server)
        let before = Self.healthy.merging(first) { $1 }
        examination.first = scrape(before, at: 998)
        examination.second = scrape(before.merging(second) { $1 }, at: 1_000)
        return examination
    }

    private func findings(_ examinations: Examination...) -> [String] {
        Diagnosis(examinations).findings.map { "\($0.severity.rawValue) \($0.alert): \($0.problem)" }
    }

    @Test("values at the thresholds are no problem")
    func none() {
        #expect(findings(examination()) == [])
    }

    @Test(
        "values beyond the thresholds are problems, in words",
        arguments: [
            ([:], ["process_start_time_seconds": 101], "critical TrebuchetRestarts: the server has started again"),
            (
                [:], ["trebuchet_store_write_failures_total": 2],
                "critical TrebuchetStoreWritesFail: 2 writes to the store failed in the last 2 s"
            ),
            (
                ["trebuchet_store_write_failures_total": 1], [:],
                "note TrebuchetStoreWritesFail: 1 write to the store failed since the server's start, none now"
            ),
            (
                ["trebuchet_store_disk_free_bytes": 9e8], [:],
                "warning TrebuchetStoreDiskLow: the disk of the store has 858 MiB of free space; the store has 954 MiB"
            ),
            (["trebuchet_store_disk_free_bytes": 1e6], [:], "critical TrebuchetStoreDiskLow: the disk"),
            (["trebuchet_actors_unloadable": 3], [:], "critical TrebuchetActorsUnloadable: the persisted states of 3"),
            (
                ["trebuchet_certificate_expiry_timestamp_seconds{endpoint=\"admin\"}": 1_000 + 10.5 * 86_400], [:],
                "warning TrebuchetCertificateExpires: the certificate for 'admin' expires in 10 days"
            ),
            (
                ["trebuchet_certificate_expiry_timestamp_seconds{endpoint=\"clients\"}": 10], [:],
                "critical TrebuchetCertificateExpires: the certificate for 'clients' has expired"
            ),
            ([:], ["trebuchet_time_seconds": 1_060], "warning TrebuchetClock: its clock is 60 s ahead of that of this"),
            ([:], ["trebuchet_time_seconds": 900], "warning TrebuchetClock: its clock is 100 s behind that of this"),
            (
                [:], ["trebuchet_reactor_longest_turn_seconds{reactor=\"reactor-0\"}": 0.5],
                "warning TrebuchetReactorStalls: reactor-0 was blocked for 500 ms in the last minute"
            ),
            (
                [:], ["trebuchet_reactor_busy_seconds_total{reactor=\"reactor-0\"}": 1.9],
                "warning TrebuchetReactorsBusy: reactor-0 has used 95 % of a core"
            ),
            (
                [:], ["trebuchet_refusals_total{limit=\"connections.total\"}": 1],
                "critical TrebuchetServerFull: the limit 'connections.total' refuses clients"
            ),
            (
                ["trebuchet_refusals_total{limit=\"memory.total\"}": 1], [:],
                "note TrebuchetServerFull: the limit 'memory.total' has refused clients"
            ),
            (
                [:], ["trebuchet_refusals_total{limit=\"calls.perConnection\"}": 10],
                "warning TrebuchetRefusals: the limit 'calls.perConnection' of single clients refuses 5 requests per second"
            ),
            (
                [:], ["trebuchet_requests_refused_total{status=\"429\"}": 10],
                "warning TrebuchetRequestsRefused: 5 connections or requests per second are refused with status 429"
            ),
            (
                ["trebuchet_buffered_bytes": 9e8], [:],
                "critical TrebuchetBufferedMemory: buffered memory for clients is at 90"
            ),
            (["process_resident_memory_bytes": 3.9e9], [:], "critical TrebuchetMemory: the process uses 3.63 GiB"),
            (["process_open_fds": 81], [:], "critical TrebuchetDescriptors: 81 of 100 file descriptors are open"),
            (
                [:], ["trebuchet_errors_total{code=\"internal\"}": 1],
                "warning TrebuchetInternalErrors: 1 call failed with 'internal' in the last 2 s"
            ),
            (["trebuchet_calls_waiting": 101], [:], "warning TrebuchetCallsWaiting: 101 calls wait"),
            (
                [:], ["trebuchet_alarms_failed_total": 1],
                "warning TrebuchetAlarmsFail: 1 attempt to deliver an alarm failed"
            ),
            (
                [:],
                [
                    "trebuchet_store_write_duration_seconds_bucket{le=\"0.25\"}": 90,
                    "trebuchet_store_write_duration_seconds_bucket{le=\"0.5\"}": 100,
                    "trebuchet_store_write_duration_seconds_bucket{le=\"+Inf\"}": 100,
                ], "warning TrebuchetStoreSlow: 1 % of the writes to the store take up to 500 ms"
            ),
            (
                [:],
                [
                    "trebuchet_call_duration_seconds_bucket{type=\"A\",method=\"a\",le=\"1\"}": 30,
                    "trebuchet_call_duration_seconds_bucket{type=\"A\",method=\"a\",le=\"+Inf\"}": 40,
                    "trebuchet_call_duration_seconds_bucket{type=\"A\",method=\"b\",le=\"1\"}": 10,
                    "trebuchet_call_duration_seconds_bucket{type=\"A\",method=\"b\",le=\"+Inf\"}": 10,
                ], "warning TrebuchetSlowCalls: 1 % of the calls take up to more than 10 s"
            ),
        ] as [([String: Double], [String: Double], String)])
    func one(first: [String: Double], second: [String: Double], expected: String) {
        let found = findings(examination(first, second))
        #expect(found.count == 1 && found.first?.hasPrefix(expected) == true, "\(found)")
    }

    @Test("failed checks, and servers that do not respond, are problems; the most severe ones come first")
    func checks() {
        var ill = examination(["trebuchet_calls_waiting": 200])
        ill.failedChecks = Examination.checks(
            "[+] server: ok\n[-] store: the last write failed: a: b\n[-] cluster: the coordination store has lost data: x"
        )
        var silent = Examination(of: "http://two")
        silent.failure = "connecting to two: Connection refused"
        #expect(
            findings(ill, silent) == [
                "critical TrebuchetStoreWritesFail: the check 'store' fails: the last write failed: a: b",
                "critical TrebuchetNodesEndedTogether: the check 'cluster' fails: the coordination store has lost data: x",
                "critical TrebuchetDown: the admin endpoint does not respond as expected: connecting to two: Connection refused",
                "warning TrebuchetCallsWaiting: 200 calls wait for actors to be loaded",
            ])
    }

    @Test("the nodes of a cluster are compared")
    func cluster() {
        func node(_ name: String, nodes: Double, slots: Double, isUp: Double = 1) -> Examination {
            examination(
                [
                    "trebuchet_cluster_nodes": nodes, "trebuchet_cluster_slots": slots,
                    "trebuchet_cluster_engine_up": isUp,
                ], server: name)
        }
        #expect(findings(node("a", nodes: 2, slots: 500), node("b", nodes: 2, slots: 524)) == [])
        #expect(
            findings(node("a", nodes: 2, slots: 500), node("b", nodes: 2, slots: 523)) == [
                "warning TrebuchetSlotsWithoutOwner: 1023 of 1,024 slots have an owner"
            ])
        #expect(
            findings(node("a", nodes: 3, slots: 500)) == [
                "note TrebuchetNodesDisagree: 1 of 3 live nodes were examined"
            ])
        #expect(
            findings(node("a", nodes: 1, slots: 1_024), node("b", nodes: 2, slots: 0)) == [
                "critical TrebuchetNoSlots: the node owns no slots",
                "warning TrebuchetNodesDisagree: the nodes see different numbers of live nodes: 1, 2",
            ])
        var silent = Examination(of: "c")
        silent.failure = "no response"
        #expect(
            findings(node("a", nodes: 1, slots: 1_024), silent).last
                == "warning TrebuchetNodesDisagree: 1 of the 2 examined servers are live nodes; 1 did not respond as a node"
        )
        #expect(
            findings(node("a", nodes: 1, slots: 0, isUp: 0)).first
                == "critical TrebuchetEngineDown: the node does not reach the coordination store")
    }

    @Test("each finding names a section of the runbooks")
    func runbooks() throws {
        let page = try String(contentsOf: packageRoot.appending(path: "Docs/Guides/Runbooks.md"), encoding: .utf8)
        let file = packageRoot.appending(path: "Sources/Tools/TrebuchetCLI/Doctor/Diagnosis.swift")
        let names = try String(contentsOf: file, encoding: .utf8).matches(of: /"(Trebuchet[A-Za-z]+)"/).map(\.output.1)
        #expect(Set(names).count > 20)
        for name in Set(names) { #expect(page.contains("\n### \(name)\n"), "\(name)") }
        #expect(Finding("a", .note, "TrebuchetDown", "b", do: "c").runbook == "Docs/Guides/Runbooks.md#trebuchetdown")
    }

    @Test("labels of the text format are parsed, with escapes; other lines are ignored")
    func parser() throws {
        let page = MetricsPage(
            "# HELP a b\na{x=\"1,}\",y=\"\\\"\\\\\\n\"} 2\na{x=\"z\"} 3 1000\nb 1e3\nc{x=\"1\" 4\nd\n e 5\n")
        #expect(page.all("a").map(\.value) == [2, 3])
        #expect(page.all("a")[0].labels == ["x": "1,}", "y": "\"\\\n"])
        #expect(page.value("b") == 1_000 && page.value("c") == nil && page.value("d") == nil)
        #expect(page.sum("a") { $0["x"] == "z" } == 3)
    }

    // MARK: Running servers

    /// `serve` with an admin endpoint.
    private final class Server {
        struct DidNotStart: Error { let lines: [String] }

        let process: ChildProcess
        private(set) var url = ""
        private(set) var admin = ""

        init(_ arguments: [String]) async throws {
            let all = ["serve", "--examples", "--port", "0", "--admin", "localhost:0"] + arguments
            process = try ChildProcess(ServeProcess.tool, all, error: .merged)
            var lines: [String] = []
            while let line = await process.nextLine() {
                lines.append(line)
                if let found = line.firstMatch(of: /wss?:\/\/\S+/), url.isEmpty { url = String(found.0) }
                if let found = line.firstMatch(of: /^admin endpoint: (https?):\/\/[^\/]+:([0-9]+)\//) {
                    admin = "\(found.1)://localhost:\(found.2)"
                }
                if line.hasPrefix("and: ") { break }
            }
            if url.isEmpty || admin.isEmpty { throw DidNotStart(lines: lines) }
        }

        func stop() async -> Int32 {
            process.signal(SIGTERM)
            return await process.finish().status
        }
    }

    private struct Output: Decodable {
        struct Server: Decodable {
            let url: String
            let version: String?
            let isResponding: Bool
        }
        struct Found: Decodable {
            let server, severity, alert, problem, remedy, runbook: String
        }
        let servers: [Server]
        let findings: [Found]

        /// The names of the findings, without those that a busy machine may cause.
        var alerts: Set<String> {
            Set(findings.map(\.alert)).subtracting([
                "TrebuchetReactorStalls", "TrebuchetReactorsBusy", "TrebuchetSlowCalls", "TrebuchetStoreSlow",
                "TrebuchetStoreDiskLow", "TrebuchetMemory",
            ])
        }
    }

    private func doctor(_ arguments: String...) async throws -> ChildProcess.Outcome {
        try await ChildProcess(
            ServeProcess.tool, ["doctor", "--interval", "0.2", "--timeout", "100"] + arguments, error: .captured
        ).finish()
    }

    private func found(_ outcome: ChildProcess.Outcome) throws -> Output {
        let output = try JSONDecoder().decode(Output.self, from: Data(outcome.output.utf8))
        let hasProblem = output.findings.contains { $0.severity != "note" }
        #expect(outcome.status == (hasProblem ? 1 : 0), "\(outcome)")
        return output
    }

    private func temporaryFolder() throws -> String {
        let folder = NSTemporaryDirectory() + "trebuchet-\(UUID())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        return folder
    }

    @Test("a healthy server has no problem; one whose file was moved cannot write; one that has ended is down")
    func servers() async throws {
        let folder = try temporaryFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let server = try await Server(["--data", folder + "/data.db"])
        let healthy = try found(try await doctor("--json", server.admin + "/"))
        #expect(healthy.alerts.isEmpty, "\(healthy.findings)")
        #expect(healthy.servers.map(\.url) == [server.admin] && healthy.servers[0].isResponding)
        #expect(healthy.servers[0].version == TrebuchetVersion.number)

        rename(folder + "/data.db", folder + "/moved.db")
        let ill = try found(try await doctor("--json", server.admin))
        #expect(ill.alerts == ["TrebuchetStoreWritesFail"], "\(ill.findings)")
        let text = try await doctor(server.admin)
        #expect(text.status == 1 && text.error.contains("trebuchet doctor: "), "\(text)")
        #expect(text.output.hasPrefix("\(server.admin) (version \(TrebuchetVersion.number)):\n"), "\(text)")
        #expect(text.output.contains("  critical: the check 'store' fails: "), "\(text)")
        #expect(text.output.contains("\n    see: Docs/Guides/Runbooks.md#trebuchetstorewritesfail\n"), "\(text)")
        rename(folder + "/moved.db", folder + "/data.db")

        let other = try found(
            try await doctor("--json", server.url.replacing("ws://127.0.0.1", with: "http://localhost")))
        #expect(other.findings.first?.problem.contains("this is not the address of serve --admin") == true)
        _ = await server.stop()
        let ended = try found(try await doctor("--json", server.admin))
        #expect(ended.alerts == ["TrebuchetDown"] && !ended.servers[0].isResponding, "\(ended.findings)")
    }

    @Test("a token and an authority are used, and a certificate that expires soon is a problem")
    func secured() async throws {
        let folder = try temporaryFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let soon = try CertifiedKey.makeAuthority(validFor: .seconds(2 * 86_400))
        func write(_ bytes: Data, _ name: String) throws {
            try bytes.write(to: URL(fileURLWithPath: "\(folder)/\(name)"))
            chmod("\(folder)/\(name)", 0o600)
        }
        try write(Data(soon.certificateText), "soon.pem")
        try write(Data(soon.keyText), "soon.key")
        try write(Data("a-token-of-operators\n".utf8), "token")
        let server = try await Server([
            "--tls-cert", folder + "/soon.pem", "--tls-key", folder + "/soon.key", "--admin-token-file",
            folder + "/token", "--admin-tls-cert", TestCertificate.path("server.pem"), "--admin-tls-key",
            TestCertificate.path("server.key"),
        ])
        #expect(server.admin.hasPrefix("https://"))
        let authority = TestCertificate.path("ca.pem")
        let output = try found(
            try await doctor("--json", "--token-file", folder + "/token", "--ca-file", authority, server.admin))
        let expiring = output.findings.filter { $0.alert == "TrebuchetCertificateExpires" }
        #expect(expiring.contains { $0.problem.contains("'clients' expires in") && $0.severity == "critical" })
        #expect(output.servers[0].version == TrebuchetVersion.number, "\(output)")
        let unknown = try await doctor("--ca-file", authority, server.admin)
        #expect(unknown.status == 1 && unknown.error.contains("pass the token of --admin-token-file"), "\(unknown)")
        let untrusted = try found(try await doctor("--json", "--token-file", folder + "/token", server.admin))
        #expect(untrusted.alerts == ["TrebuchetDown"], "\(untrusted.findings)")
        #expect(await server.stop() == 0)
    }

    @Test("wrong addresses and options are refused")
    func usage() async throws {
        for (arguments, problem) in [
            ([], "<url> is missing"), (["http://192.0.2.1:9464"], "http is allowed only to this machine"),
            (["http://127.0.0.1:9464/other"], "has a path"), (["127.0.0.1:9464"], "is not an https URL"),
            (["http://127.0.0.1:9464", "--interval", "0"], "--interval must be a number between"),
            (["https://a", "--ca-file", "/nonexistent/ca.pem"], "--ca-file /nonexistent/ca.pem: No such file"),
        ] as [([String], String)] {
            let outcome = try await ChildProcess(ServeProcess.tool, ["doctor"] + arguments, error: .captured).finish()
            #expect(outcome.status == 2 && outcome.error.contains(problem), "\(outcome)")
        }
    }
}
