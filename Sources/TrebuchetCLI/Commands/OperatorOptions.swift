import Commands
import Foundation
import Platform
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
            "--otlp-service", "NAME",
            "what the program is called there, service.name (trebuchet); service.instance.id is the name of --node"),
        OptionSpec(
            "--trace-sample", "RATIO",
            "which part of the calls that come without a trace begin one, 0 to 1 (0.01)"),
        OptionSpec(
            "--inspector", "[[HOST:]PORT]",
            "show who develops it the server from inside, in a page at 127.0.0.1 and for the token of the link that is printed (off; a free port); with HOST at an address that others reach, which needs TLS and a token file"
        ),
        OptionSpec(
            "--inspector-token-file", "FILE",
            "its token: the first line of this file, or TREBUCHET_INSPECTOR_TOKEN (another one for each start, in the link)"
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
    /// Where the inspector is; nil without one. The server ends without TLS and a token where others reach that.
    let inspector: Admin?
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
        let (service, node) = (arguments.string("--otlp-service"), arguments.string("--node"))
        spans = try arguments.string("--otlp").map { url throws(UsageError) in
            do throws(TransportError) {
                return try OTLPExporter(url: url, service: service ?? "trebuchet", instance: node) { line in
                    if let log {
                        log.line(.warning, line)
                    } else {
                        StandardStream.error.write(soon: "trebuchet serve: \(line)")
                    }
                }
            } catch {
                throw UsageError("--otlp: \(error.message)")
            }
        }
        if ratio != nil, spans == nil { throw UsageError("--trace-sample belongs to --otlp") }
        if service != nil, spans == nil { throw UsageError("--otlp-service belongs to --otlp") }
        inspector = try Self.inspector(arguments, tls: tls)
        inspectorWrites = arguments.has("--inspector-write")
    }

    private static func inspector(_ arguments: ParsedArguments, tls: TLSServerSettings?) throws -> Admin? {
        guard let text = arguments.string("--inspector") else {
            let others = ["--inspector-write", "--inspector-token-file"]
            if let option = others.first(where: arguments.has) { throw UsageError("\(option) belongs to --inspector") }
            return nil
        }
        let token = try token("--inspector-token-file", or: "TREBUCHET_INSPECTOR_TOKEN", arguments)
        guard text.contains(":") else {
            let port = try text.isEmpty ? 0 : arguments.int("--inspector", in: 0...65_535) ?? 0
            return Admin(host: "127.0.0.1", port: port, tls: nil, token: token)
        }
        let (host, port) = try place("--inspector", text)
        // At an address of this machine a certificate of another name is none.
        let isOwn = ["127.0.0.1", "localhost", "::1"].contains(host)
        return Admin(host: host, port: port, tls: isOwn ? nil : tls, token: token)
    }

    /// Where the server writes lines itself: nowhere, when the log is told all of them.
    var lines: @Sendable (String) -> Void {
        guard log == nil else { return { _ in } }
        return ServerLog.standardError
    }

    /// A line of `serve` itself.
    func say(_ line: String) { say(.notice, line) }

    func say(_ level: ServerEvent.Level, _ line: String) {
        if let log { log.line(level, line) } else { StandardStream.error.write(soon: "trebuchet serve: \(line)") }
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
            let opened = try server.openInspector(
                host: inspector.host, port: inspector.port, tls: inspector.tls, token: inspector.token,
                writes: inspectorWrites)
            // A token that was given is no business of who reads this.
            lines.append("inspector: \(inspector.token == nil ? opened.link : opened.url)")
            lines.append(
                "           for a browser, trebuchet inspect --url and trebuchet top --url; who has \(inspector.token == nil ? "it" : "the token") sees every state"
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
        let (host, port) = try place("--admin", text)
        var tls = tls
        switch (arguments.string("--admin-tls-cert"), arguments.string("--admin-tls-key")) {
        case (let certificate?, let key?):
            tls = TLSServerSettings(certificateChainFile: certificate, privateKeyFile: key)
        case (nil, nil): break
        default: throw UsageError("--admin-tls-cert and --admin-tls-key belong together")
        }
        return Admin(
            host: host, port: port, tls: tls,
            token: try token("--admin-token-file", or: "TREBUCHET_ADMIN_TOKEN", arguments))
    }

    private static func place(_ option: String, _ text: String) throws(UsageError) -> (host: String, port: Int) {
        guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
            (0...65_535).contains(port), colon > text.startIndex
        else { throw UsageError("\(option): '\(text)' is not HOST:PORT, as 127.0.0.1:9464") }
        return (String(text[..<colon].drop { $0 == "[" }.prefix { $0 != "]" }), port)
    }

    private static func token(
        _ option: String, or variable: String, _ arguments: ParsedArguments
    ) throws(UsageError) -> String? {
        guard let path = arguments.string(option) else {
            let token = ProcessInfo.processInfo.environment[variable]
            return token?.isEmpty == false ? token : nil
        }
        var status = stat()
        guard let file = FileHandle(forReadingAtPath: path), fstat(file.fileDescriptor, &status) == 0,
            let bytes = try? file.read(upToCount: 65_536)
        else { throw UsageError("\(option) \(path): it cannot be read, or is empty") }
        guard status.st_mode & 0o022 == 0 else {
            throw UsageError("\(option) \(path): others may write it, and so choose the token: chmod go-w")
        }
        let line = String(
            decoding: Array(bytes).withoutByteOrderMark.prefix { $0 != 10 && $0 != 13 }, as: UTF8.self
        )
        .trimmingCharacters(in: .whitespaces)
        guard !line.isEmpty else { throw UsageError("\(option) \(path): its first line is empty") }
        return line
    }
}
