import Commands
import Foundation
import Platform
import Trebuchet
import TrebuchetInspector
import TrebuchetTelemetry

/// The options of `serve` for operators: the log, the admin endpoint, the inspector, tracing and shutdown.
struct OperatorOptions: Sendable {
    static let options = [
        OptionSpec(
            "--log-level", "LEVEL",
            "minimum log level: trace (versions, deliveries), debug (calls, streams), info (connections, sign-ins), notice, warning or error (notice)"
        ),
        OptionSpec(
            "--log-format", "FORMAT", "text, or json with one object per line (text)"),
        OptionSpec(
            "--admin", "HOST:PORT",
            "HTTP endpoint with /metrics, /livez, /readyz and /healthz (not the socket of 'trebuchet admin'); loopback only without TLS and a token (off)"
        ),
        OptionSpec(
            "--admin-token-file", "FILE",
            "file whose first line is the bearer token for /metrics of --admin; or TREBUCHET_ADMIN_TOKEN (no token)"
        ),
        OptionSpec("--admin-tls-cert", "FILE", "certificate chain of --admin (that of --tls-cert)"),
        OptionSpec("--admin-tls-key", "FILE", "private key of the chain (PEM)"),
        OptionSpec(
            "--otlp", "URL",
            "export spans to this collector as OTLP over HTTP in JSON: http://localhost:4318 (off)"),
        OptionSpec(
            "--otlp-service", "NAME",
            "service.name of the spans (trebuchet); service.instance.id is --node"),
        OptionSpec(
            "--trace-sample", "RATIO",
            "sampling ratio for calls without a parent trace, 0 to 1 (0.01)"),
        OptionSpec(
            "--inspector", "[[HOST:]PORT]",
            "serve the developer inspector at 127.0.0.1 and print its link; another HOST needs TLS and a token file (off; a free port)"
        ),
        OptionSpec(
            "--inspector-token-file", "FILE",
            "file whose first line is the token of --inspector; or TREBUCHET_INSPECTOR_TOKEN (random per start, in the link)"
        ),
        OptionSpec(
            "--inspector-write", nil,
            "allow the inspector to call methods as any principal and to close connections; requires --inspector"),
        OptionSpec(
            "--drain-delay", "SECONDS",
            "at shutdown, time between an unready /readyz and the goAway to clients (0)"),
        OptionSpec(
            "--drain-timeout", "SECONDS", "at shutdown, time to hand slots over and to end in-flight calls (10)"),
    ]

    /// The address and the credentials of an endpoint.
    struct Admin: Sendable {
        let host: String
        let port: Int
        let tls: TLSServerSettings?
        let token: String?
    }

    /// Nil without a level and a format: then lines are plain text.
    let log: ServerLog?
    let admin: Admin?
    let spans: OTLPExporter?
    private let sampling: Double
    /// The inspector endpoint; nil without one. The server refuses an address that is not loopback without TLS and a token.
    let inspector: Admin?
    private let inspectorWrites: Bool
    let drainDelay: Duration
    let drain: Duration

    /// - Parameter tls: the TLS settings of the client address.
    init(_ arguments: ParsedArguments, tls: TLSServerSettings?) throws {
        let level = try arguments.string("--log-level").map { text throws(UsageError) in
            guard let level = ServerEvent.Level(rawValue: text) else {
                let names = ServerEvent.Level.allCases.map(\.rawValue).joined(separator: ", ")
                throw UsageError("--log-level: '\(text)' is not one of \(names)")
            }
            return level
        }
        let format = try arguments.string("--log-format").map { text throws(UsageError) in
            guard let format = ServerLog.Format(rawValue: text) else {
                throw UsageError("--log-format: '\(text)' is not 'text' or 'json'")
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
                return try OTLPExporter(
                    url: url, service: service ?? "trebuchet", instance: node, log: log ?? Self.commandLog)
            } catch {
                throw UsageError("--otlp: \(error.message)")
            }
        }
        if ratio != nil, spans == nil { throw UsageError("--trace-sample requires --otlp") }
        if service != nil, spans == nil { throw UsageError("--otlp-service requires --otlp") }
        inspector = try Self.inspector(arguments, tls: tls)
        inspectorWrites = arguments.has("--inspector-write")
    }

    private static func inspector(_ arguments: ParsedArguments, tls: TLSServerSettings?) throws -> Admin? {
        guard let text = arguments.string("--inspector") else {
            let others = ["--inspector-write", "--inspector-token-file"]
            if let option = others.first(where: arguments.has) { throw UsageError("\(option) requires --inspector") }
            return nil
        }
        let token = try ConfigurationFile.secret("--inspector-token-file", or: "TREBUCHET_INSPECTOR_TOKEN", arguments)
        guard text.contains(":") else {
            let port = try text.isEmpty ? 0 : arguments.int("--inspector", in: 0...65_535) ?? 0
            return Admin(host: "127.0.0.1", port: port, tls: nil, token: token)
        }
        let (host, port) = try parseEndpoint("--inspector", text)
        // At a loopback address the certificate, which has another name, would be invalid.
        let isOwn = ["127.0.0.1", "localhost", "::1"].contains(host)
        return Admin(host: host, port: port, tls: isOwn ? nil : tls, token: token)
    }

    /// Writes lines of `serve` itself as plain text.
    private static let commandLog: any ServerEventHandler = ConsoleLog(prefix: "trebuchet serve: ")

    /// The log of the server.
    var serverLog: any ServerEventHandler { log ?? ConsoleLog() }

    /// The log of `serve` itself and of the services.
    var commandLog: any ServerEventHandler { log ?? Self.commandLog }

    /// Logs a line of `serve` itself.
    func logNotice(_ line: String) { logLine(.notice, line) }

    func logLine(_ level: ServerEvent.Level, _ line: String) { commandLog.handle(.logMessage(level, LogLine.of(line))) }

    /// Adds the listeners and opens the endpoints of a server. Returns the lines to print about them.
    func open(on server: TrebuchetServer) throws -> [String] {
        if let spans {
            server.addEventHandler(spans)
            server.setTraceSamplingRatio(sampling)
        }
        var lines: [String] = []
        if let admin {
            let address = try server.openAdmin(host: admin.host, port: admin.port, tls: admin.tls, token: admin.token)
            let scheme = admin.tls == nil ? "http" : "https"
            lines.append("admin endpoint: \(scheme)://\(address)/metrics, and /livez, /readyz there")
        }
        if let inspector {
            let opened = try server.openInspector(
                host: inspector.host, port: inspector.port, tls: inspector.tls, token: inspector.token,
                writes: inspectorWrites)
            // A token that the operator has given is not printed.
            lines.append("inspector: \(inspector.token == nil ? opened.urlWithToken : opened.url)")
            lines.append(
                "           for a browser, trebuchet inspect --url and trebuchet top --url; \(inspector.token == nil ? "it" : "the token") gives access to every state"
                    + (inspectorWrites ? " and to every method as any principal" : ""))
        }
        return lines
    }

    private static func admin(_ arguments: ParsedArguments, tls: TLSServerSettings?) throws -> Admin? {
        guard let text = arguments.string("--admin") else {
            let others = ["--admin-token-file", "--admin-tls-cert", "--admin-tls-key"]
            if let option = others.first(where: arguments.has) { throw UsageError("\(option) requires --admin") }
            return nil
        }
        let (host, port) = try parseEndpoint("--admin", text)
        var tls = tls
        switch (arguments.string("--admin-tls-cert"), arguments.string("--admin-tls-key")) {
        case (let certificate?, let key?):
            tls = TLSServerSettings(certificateChainFile: certificate, privateKeyFile: key)
        case (nil, nil): break
        default: throw UsageError("--admin-tls-cert and --admin-tls-key require each other")
        }
        return Admin(
            host: host, port: port, tls: tls,
            token: try ConfigurationFile.secret("--admin-token-file", or: "TREBUCHET_ADMIN_TOKEN", arguments))
    }

    private static func parseEndpoint(_ option: String, _ text: String) throws(UsageError) -> (host: String, port: Int)
    {
        guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
            (0...65_535).contains(port), colon > text.startIndex
        else { throw UsageError("\(option): '\(text)' is not HOST:PORT, such as 127.0.0.1:9464") }
        return (HostName.withoutBrackets(text[..<colon]), port)
    }
}

/// The host of an option such as `--host` or `--admin`.
enum HostName {
    /// Returns the host without the brackets that URLs have around IPv6 addresses: `::` for `[::]`.
    static func withoutBrackets(_ text: some StringProtocol) -> String {
        guard text.hasPrefix("["), text.hasSuffix("]") else { return String(text) }
        return String(text.dropFirst().dropLast())
    }
}
