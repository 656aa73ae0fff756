import Foundation
import Glibc
import TestSupport
import Testing

/// The alert rules and the dashboard in Examples/observability, and the files for containers and Kubernetes, checked by scripts in Python.
@Suite(.timeLimit(.minutes(5))) struct AlertRulesTests {
    /// The Python of `scripts/bootstrap --python`.
    private static let path =
        ProcessInfo.processInfo.environment["TREBUCHET_PYTHON"]
        ?? packageRoot.appending(path: ".build/python/bin/python").path

    /// Returns whether this Python has a package, by one of the lists that `scripts/bootstrap` leaves in its folder.
    private static func has(_ package: String, in list: String) -> Bool {
        let file = URL(filePath: path).deletingLastPathComponent().deletingLastPathComponent().appending(path: list)
        return (try? String(contentsOf: file, encoding: .utf8))?.contains(package) == true
    }

    private static let hasYAML = has("PyYAML", in: "requirements.txt")
    private static let hasSchemas = hasYAML && has("kubernetes-validate", in: "requirements-manifests.txt")
    private static let hasPromtool = access("/usr/bin/promtool", X_OK) == 0

    private func check(_ script: String, _ arguments: [String] = []) async throws -> ChildProcess.Outcome {
        let file = packageRoot.appending(path: "scripts/\(script)").path
        return try await ChildProcess(Self.path, ["-B", file] + arguments, error: .merged).finish()
    }

    @Test(
        "alert rules and dashboard use metrics and labels of the server; each alert has tests and a runbook",
        .enabled(
            if: hasYAML && hasPromtool,
            "there is no promtool or no PyYAML: scripts/bootstrap --prometheus --python"))
    func rules() async throws {
        let outcome = try await check("check-alerts", ["--server", ServeProcess.tool])
        #expect(outcome.status == 0 && outcome.output.hasSuffix("\nno problem\n"), "\(outcome.output)")
    }

    @Test(
        "an unknown metric, label or value, and a threshold that the tests do not expect, are reported",
        .enabled(
            if: hasYAML && hasPromtool,
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
        .enabled(if: hasSchemas, "there is no kubernetes-validate: scripts/bootstrap --manifests"))
    func manifests() async throws {
        let outcome = try await check("check-manifests")
        #expect(outcome.status == 0 && outcome.output.contains("\nno problem"), "\(outcome.output)")
    }
}
