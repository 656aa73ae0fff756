import Commands
import Foundation
import Trebuchet

/// The options of `serve` that are for who operates it: the log, the address of numbers and health, how it ends.
struct OperatorOptions: Sendable {
    static let options = [
        OptionSpec(
            "--log-level", "LEVEL",
            "log lines from this level on: trace (versions, deliveries), debug (calls, streams), info (connections, sign-ins), notice, warning or error (notice)"
        ),
        OptionSpec(
            "--log-format", "FORMAT", "text or json: an object in each line, with time and level (lines for people)"),
        OptionSpec(
            "--admin", "HOST:PORT",
            "show operators /metrics, /livez, /readyz and /healthz there: an address of this machine, unless there are TLS and a token (off)"
        ),
        OptionSpec(
            "--admin-token-file", "FILE",
            "what /metrics is shown for, as a bearer token: the first line of this file, or TREBUCHET_ADMIN_TOKEN (everybody of this machine)"
        ),
        OptionSpec("--admin-tls-cert", "FILE", "the certificate chain of that address (that of --tls-cert)"),
        OptionSpec("--admin-tls-key", "FILE", "its private key (PEM)"),
        OptionSpec(
            "--otlp", "URL",
            "send spans of calls to this collector, as OTLP over HTTP in JSON: http://localhost:4318 (off)"),
        OptionSpec(
            "--trace-sample", "RATIO",
            "which part of the calls that come without a trace begin one, 0 to 1 (0.01)"),
        OptionSpec(
            "--inspector", "[PORT]",
            "show who develops it the server from inside, in a page at 127.0.0.1 and for the token of the link that is printed (off; a free port)"
        ),
        OptionSpec(
            "--inspector-write", nil,
            "who looks may also call methods, as anybody, and cut connections; goes with --inspector"),
        OptionSpec(
            "--drain-delay", "SECONDS",
            "how long at shutdown /readyz says no before clients are sent away, for load balancers to hear of it (0)"),
        OptionSpec("--drain-timeout", "SECONDS", "how long calls under way may take at shutdown (10)"),
    ]

    struct Admin: Sendable {
        let host: String
        let port: Int
        let tls: TLSServerSettings?
        let token: String?
    }

    /// Nil where neither level nor format were asked for: then lines are for people alone.
    let log: ServerLog?
    let admin: Admin?
    let spans: OTLPExporter?
    private let sampling: Double
    /// The port of the inspector; nil without one.
    let inspector: Int?
    private let inspectorWrites: Bool
    let drainDelay: Duration
    let drain: Duration

    /// - Parameter tls: of the address of clients.
    init(_ arguments: ParsedArguments, tls: TLSServerSettings?) throws {
        let level = try arguments.string("--log-level").map { text throws(UsageError) in
            guard let level = ServerEvent.Level(rawValue: text) else {
                let names = ServerEvent.Level.allCases.map(\.rawValue).joined(separator: ", ")
                throw UsageError("--log-level: '\(text)' is none of \(names)")
            }
            return level
        }
        let format = try arguments.string("--log-format").map { text throws(UsageError) in
            guard let format = ServerLog.Format(rawValue: text) else {
                throw UsageError("--log-format: '\(text)' is neither text nor json")
            }
            return format
        }
        log = level == nil && format == nil ? nil : ServerLog(level: level ?? .notice, format: format ?? .text)
        drain = .seconds(try arguments.double("--drain-timeout", in: 0...3600) ?? 10)
        drainDelay = .seconds(try arguments.double("--drain-delay", in: 0...3600) ?? 0)
        admin = try Self.admin(arguments, tls: tls)
        let ratio = try arguments.double("--trace-sample", in: 0...1)
        sampling = ratio ?? 0.01
        let log = log
        spans = try arguments.string("--otlp").map { url throws(UsageError) in
            do throws(TransportError) {
                return try OTLPExporter(url: url) { line in
                    if let log {
                        log.line(.warning, line)
                    } else {
                        StandardError.write(soon: "trebuchet serve: \(line)")
                    }
                }
            } catch {
                throw UsageError("--otlp: \(error.message)")
            }
        }
        if ratio != nil, spans == nil { throw UsageError("--trace-sample belongs to --otlp") }
        let port = arguments.string("--inspector")
        inspector = try port?.isEmpty == true ? 0 : arguments.int("--inspector", in: 0...65_535)
        inspectorWrites = arguments.has("--inspector-write")
        guard inspector != nil || !inspectorWrites else { throw UsageError("--inspector-write belongs to --inspector") }
    }

    /// Where the server writes lines itself: nowhere, when the log is told all of them.
    var lines: @Sendable (String) -> Void {
        guard log == nil else { return { _ in } }
        return ServerLog.standardError
    }

    /// A line of `serve` itself.
    func say(_ line: String) {
        if let log { log.line(.notice, line) } else { StandardError.write(soon: "trebuchet serve: \(line)") }
    }

    /// Has a server tell its log, and shows it to operators. Returns what is to be said of that.
    func open(on server: TrebuchetServer) throws -> [String] {
        if let log { server.addListener(log) }
        if let spans {
            server.addListener(spans)
            server.sampleTraces(sampling)
        }
        var lines: [String] = []
        if let admin {
            let address = try server.openAdmin(host: admin.host, port: admin.port, tls: admin.tls, token: admin.token)
            let scheme = admin.tls == nil ? "http" : "https"
            lines.append("operators: \(scheme)://\(address)/metrics, and /livez, /readyz there")
        }
        if let inspector {
            lines.append("inspector: \(try server.openInspector(port: inspector, writes: inspectorWrites).link)")
            lines.append(
                "           for a browser, trebuchet inspect --url and trebuchet top --url; who has it sees every state"
                    + (inspectorWrites ? ", and may call every method as anybody" : ""))
        }
        return lines
    }

    private static func admin(_ arguments: ParsedArguments, tls: TLSServerSettings?) throws -> Admin? {
        guard let text = arguments.string("--admin") else {
            let others = ["--admin-token-file", "--admin-tls-cert", "--admin-tls-key"]
            if let option = others.first(where: arguments.has) { throw UsageError("\(option) belongs to --admin") }
            return nil
        }
        guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
            (0...65_535).contains(port), colon > text.startIndex
        else { throw UsageError("--admin: '\(text)' is not HOST:PORT, as 127.0.0.1:9464") }
        let host = String(text[..<colon].drop { $0 == "[" }.prefix { $0 != "]" })
        var tls = tls
        switch (arguments.string("--admin-tls-cert"), arguments.string("--admin-tls-key")) {
        case (let certificate?, let key?):
            tls = TLSServerSettings(certificateChainFile: certificate, privateKeyFile: key)
        case (nil, nil): break
        default: throw UsageError("--admin-tls-cert and --admin-tls-key belong together")
        }
        return Admin(host: host, port: port, tls: tls, token: try token(arguments))
    }

    private static func token(_ arguments: ParsedArguments) throws(UsageError) -> String? {
        guard let path = arguments.string("--admin-token-file") else {
            let token = ProcessInfo.processInfo.environment["TREBUCHET_ADMIN_TOKEN"]
            return token?.isEmpty == false ? token : nil
        }
        guard let bytes = FileManager.default.contents(atPath: path) else {
            throw UsageError("--admin-token-file \(path): it cannot be read")
        }
        let line = String(decoding: bytes.prefix { $0 != 10 && $0 != 13 }, as: UTF8.self)
        guard !line.isEmpty else { throw UsageError("--admin-token-file \(path): its first line is empty") }
        return line
    }
}
