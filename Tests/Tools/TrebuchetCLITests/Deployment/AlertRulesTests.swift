import Foundation
import Glibc
import TestSupport
import Testing

/// The alert rules and the dashboard in Examples/observability, and the files for containers and Kubernetes, checked by scripts in Python.
@Suite(.timeLimit(.minutes(5))) struct AlertRulesTests {
    /// The Python with the packages of scripts/python-requirements.txt; nil before `scripts/bootstrap --python`.
    private static let python: String? = {
        let path =
            ProcessInfo.processInfo.environment["TREBUCHET_PYTHON"]
            ?? packageRoot.appending(path: ".build/python/bin/python").path
        let list = URL(filePath: path).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "requirements.txt")
        let packages = try? String(contentsOf: list, encoding: .utf8)
        return packages?.contains("kubernetes-validate") == true ? path : nil
    }()
    private static let hasPromtool = access("/usr/bin/promtool", X_OK) == 0

    private func check(_ script: String, _ arguments: [String] = []) async throws -> ChildProcess.Outcome {
        let path = packageRoot.appending(path: "scripts/\(script)").path
        return try await ChildProcess(try #require(Self.python), ["-B", path] + arguments, error: .merged).finish()
    }

    @Test(
        "alert rules and dashboard use metrics and labels of the server; each alert has tests and a runbook",
        .enabled(
            if: python != nil && hasPromtool,
            "there is no promtool or no PyYAML: scripts/bootstrap --prometheus --python"))
    func rules() async throws {
        let outcome = try await check("check-alerts", ["--server", ServeProcess.tool])
        #expect(outcome.status == 0 && outcome.output.hasSuffix("\nno problem\n"), "\(outcome.output)")
    }

    @Test(
        "an unknown metric, label or value, and a threshold that the tests do not expect, are reported",
        .enabled(
            if: python != nil && hasPromtool,
            "there is no promtool or no PyYAML: scripts/bootstrap --prometheus --python"),
        arguments: [
            (
                "alerts.yml", "trebuchet_ready == 0", "trebuchet_redy == 0",
                "trebuchet_redy is not in Docs/Reference/Metrics.md"
            ),
            ("alerts.yml", "by (job, instance, limit)", "by (job, instance, limits)", "has the label 'limits'"),
            ("alerts.yml", "{code=\"internal\"}", "{code=\"intern\"}", "'intern' is no value of 'code'"),
            (
                "alerts.yml", "trebuchet_calls_waiting > 100", "trebuchet_calls_waiting > 200",
                "alertname: TrebuchetCallsWaiting"
            ),
            ("alerts.yml", "Runbooks.md#trebuchetdown", "Runbooks.md#down", "does not name its section"),
            (
                "dashboard.json", "(trebuchet_actors_unloadable{", "(trebuchet_actors{",
                "no panel shows trebuchet_actors_unloadable"
            ),
        ])
    func findings(file: String, text: String, replacement: String, finding: String) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "trebuchet-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.copyItem(at: packageRoot.appending(path: "Examples/observability"), to: folder)
        let path = folder.appending(path: file)
        let content = try String(contentsOf: path, encoding: .utf8)
        try content.filledIn([text: replacement]).write(to: path, atomically: true, encoding: .utf8)
        let outcome = try await check("check-alerts", ["--folder", folder.path])
        #expect(outcome.status == 1 && outcome.output.contains(finding), "\(outcome.output)")
    }

    @Test(
        "docker-compose.yml, the Dockerfile and the objects of Kubernetes fit their schemas, and run without rights",
        .enabled(if: python != nil, "there is no kubernetes-validate: scripts/bootstrap --python"))
    func manifests() async throws {
        let outcome = try await check("check-manifests")
        #expect(outcome.status == 0 && outcome.output.contains("\nno problem"), "\(outcome.output)")
    }
}
