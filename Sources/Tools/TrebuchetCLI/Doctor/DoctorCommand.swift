import Commands
import Foundation
import Glibc
import Platform
import Transfers
import Transports
import Trebuchet

/// `trebuchet doctor`: reports the problems of running servers and their remedies.
enum DoctorCommand {
    static let spec = CommandSpec(
        name: "doctor",
        summary: "say what is wrong with running servers, and what to do",
        operands: "<url>…",
        operandCount: 1...100,
        options: [
            OptionSpec(
                "--token-file", "FILE",
                "file whose first line is the token of serve --admin-token-file; or TREBUCHET_ADMIN_TOKEN"),
            OptionSpec("--ca-file", "FILE", "trust only the certificate authorities in FILE, with https"),
            OptionSpec(
                "--interval", "SECONDS", "time between two reads of the metrics, in which counters are compared (2)"),
            OptionSpec("--json", nil, "print one JSON object"),
            CommandTimeout.option,
        ],
        discussion: """
            A URL is the address of serve --admin; several ones are the nodes of a cluster, or servers with different data.
            Reads health checks and metrics: stores, disks, certificates, clocks, reactors, limits, refused connections, calls and
            nodes. Each problem names a section of Docs/Guides/Runbooks.md. Exits with 1 if there is a problem; a note is none.
              trebuchet doctor http://127.0.0.1:9464
              trebuchet doctor --token-file token --ca-file ca.pem https://one:9464 https://two:9464
            """,
        run: run)

    /// The result of the command as JSON.
    private struct Output: Encodable {
        struct Server: Encodable {
            let url: String
            let version: String?
            let isResponding: Bool
        }
        let servers: [Server]
        let findings: [Finding]
    }

    private static func run(_ arguments: ParsedArguments) async throws {
        let token = try ConfigurationFile.secret("--token-file", or: "TREBUCHET_ADMIN_TOKEN", arguments)
        if let token {
            guard token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                throw UsageError("--token-file: the token has characters that a header field cannot have")
            }
        }
        let interval = Duration.seconds(try arguments.double("--interval", in: 0.1...3_600) ?? 2)
        let timeout = Duration.seconds(try arguments.double("--timeout", in: 0.001...86_400) ?? 10)
        let urls = try arguments.operands.map { text throws(UsageError) in try base(text) }
        // Transfers read the variable.
        if let file = arguments.string("--ca-file") {
            guard access(file, R_OK) == 0 else {
                throw UsageError("--ca-file \(file): \(String(cString: strerror(errno)))")
            }
            setenv("SSL_CERT_FILE", file, 1)
        }
        let examinations = try await withThrowingTaskGroup(of: (Int, Examination).self) { group in
            for (index, url) in urls.enumerated() {
                group.addTask {
                    (index, try await Examination.run(url, token: token, interval: interval, timeout: timeout))
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
        let findings = Diagnosis(examinations).findings
        if arguments.has("--json") {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            let servers = examinations.map {
                Output.Server(url: $0.server, version: $0.version, isResponding: $0.failure == nil)
            }
            let json = try encoder.encode(Output(servers: servers, findings: findings))
            Console.print(LogLine.ofJSON(String(decoding: json, as: UTF8.self)))
        } else {
            for line in lines(examinations, findings) { Console.print(line) }
        }
        let problems = findings.filter { $0.severity != .note }.count
        if problems > 0 { throw FailedCheck(count: problems) }
    }

    static func lines(_ examinations: [Examination], _ findings: [Finding]) -> [String] {
        var lines: [String] = []
        for examination in examinations {
            let version = examination.version.map { " (version \($0))" } ?? ""
            let own = findings.filter { $0.server == examination.server }
            lines.append(LogLine.of("\(examination.server)\(version):\(own.isEmpty ? " no problem" : "")"))
            for finding in own {
                lines += [
                    LogLine.of("  \(finding.severity.rawValue): \(finding.problem)"),
                    LogLine.of("    do: \(finding.remedy)"), "    see: \(finding.runbook)",
                ]
            }
        }
        return lines
    }

    /// Returns the URL of an endpoint without a path.
    private static func base(_ text: String) throws(UsageError) -> String {
        var base = text
        for suffix in ["/metrics", "/"] where base.hasSuffix(suffix) { base.removeLast(suffix.count) }
        let endpoint: HTTPEndpoint
        do throws(TransportError) {
            endpoint = try HTTPEndpoint(base)
        } catch {
            throw UsageError("\(error.message); an example is http://127.0.0.1:9464, as serve --admin prints it")
        }
        guard endpoint.isRoot else {
            throw UsageError("'\(LogLine.of(text))' has a path; pass the address of serve --admin only")
        }
        return base
    }
}
