import Commands
import Foundation
import Platform
import Trebuchet
import TrebuchetInspector
import TrebuchetTelemetry

/// The options of `serve` for operators: the log, the admin endpoint, the inspector, tracing and shutdown.
struct OperatorOptions: Sendable {
    static let options: [OptionSpec] = [
        OptionSpec(
            "--log-level", "LEVEL",
            "minimum log level: 'trace' (versions, deliveries), 'debug' (calls, streams), 'info' (connections, sign-ins), "
                + "'notice', 'warning' or 'error'",
            default: "notice", form: .choice(ServerEvent.Level.allCases.map(\.rawValue))),
        OptionSpec(
            "--log-format", "FORMAT", "'text', or 'json' with one object per line", default: "text",
            form: .choice(ServerLog.Format.allCases.map(\.rawValue))),
        OptionSpec(
            "--admin", "HOST:PORT",
            "HTTP endpoint with '/metrics', '/livez', '/readyz' and '/healthz' (not the socket of 'trebuchet admin'); loopback "
                + "only without TLS and a token",
            default: "off", check: { text throws(UsageError) in _ = try parseEndpoint("--admin", text) }),
        OptionSpec(
            "--admin-token-file", "FILE",
            "file whose first line is the bearer token for '/metrics' of --admin; or TREBUCHET_ADMIN_TOKEN",
            default: "no token", requires: "--admin", secretVariable: "TREBUCHET_ADMIN_TOKEN"),
        OptionSpec(
            "--admin-tls-cert", "FILE", "certificate chain of --admin", default: "the chain of --tls-cert",
            requires: "--admin"),
        OptionSpec("--admin-tls-key", "FILE", "private key of the chain (PEM)", requires: "--admin"),
        OptionSpec(
            "--otlp", "URL",
            "export spans to this collector as OTLP over HTTP in JSON, such as 'http://localhost:4318'",
            default: "off", check: { url throws(UsageError) in _ = try exporter(url) },
            mask: { url in
                let address = url.prefix { $0 != "?" }
                return address.count == url.count ? url : "\(address)?********"
            }),
        OptionSpec(
            "--otlp-service", "NAME", "'service.name' of the spans; 'service.instance.id' is --node",
            default: "trebuchet", requires: "--otlp"),
        OptionSpec(
            "--trace-sample", "RATIO", "sampling ratio for calls without a parent trace, 0 to 1; SIGHUP reads it again",
            default: "0.01", form: .number(0...1), requires: "--otlp"),
        OptionSpec(
            "--inspector", "[[HOST:]PORT]",
            "serve the developer inspector at 127.0.0.1 and print its link, by default at a free port; another HOST needs TLS "
                + "and a token file",
            default: "off",
            check: { text throws(UsageError) in
                if text.contains(":") { _ = try parseEndpoint("--inspector", text) }
                guard text.isEmpty || text.contains(":") || Int(text).map({ (0...65_535).contains($0) }) == true else {
                    throw UsageError("--inspector must be a number between 0 and 65535, not '\(text)'")
                }
            }),
        OptionSpec(
            "--inspector-token-file", "FILE",
            "file whose first line is the token of --inspector; or TREBUCHET_INSPECTOR_TOKEN",
            default: "random per start, in the link", requires: "--inspector",
            secretVariable: "TREBUCHET_INSPECTOR_TOKEN"),
        OptionSpec(
            "--inspector-write", nil,
            "allow the inspector to call methods as any principal and to close connections", requires: "--inspector"),
        OptionSpec(
            "--drain-delay", "SECONDS",
            "at shutdown, time between an unready '/readyz' and the goAway to clients", default: "0",
            form: .number(0...3_600)),
        OptionSpec(
            "--drain-timeout", "SECONDS", "at shutdown, time to hand slots over and to end in-flight calls",
            default: "10", form: .number(0...3_600)),
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
        let level = arguments.string("--log-level").flatMap { ServerEvent.Level(rawValue: $0) }
        let format = arguments.string("--log-format").flatMap { ServerLog.Format(rawValue: $0) }
        log = level == nil && format == nil ? nil : ServerLog(level: level ?? .notice, format: format ?? .text)
        drain = .seconds(try arguments.double("--drain-timeout") ?? 0)
        drainDelay = .seconds(try arguments.double("--drain-delay") ?? 0)
        admin = try Self.admin(arguments, tls: tls)
        sampling = try arguments.double("--trace-sample") ?? 0
        let log = log
        let (service, node) = (arguments.effective("--otlp-service") ?? "", arguments.string("--node"))
        spans = try arguments.string("--otlp").map { url throws(UsageError) in
            try Self.exporter(url, service: service, instance: node, log: log ?? Self.commandLog)
        }
        inspector = try Self.inspector(arguments, tls: tls)
        inspectorWrites = arguments.has("--inspector-write")
    }

    private static func exporter(
        _ url: String, service: String = "", instance: String? = nil, log: any ServerEventHandler = commandLog
    ) throws(UsageError) -> OTLPExporter {
        do throws(TransportError) {
            return try OTLPExporter(url: url, service: service, instance: instance, log: log)
        } catch {
            throw UsageError("--otlp: \(error.message)")
        }
    }

    private static func inspector(_ arguments: ParsedArguments, tls: TLSServerSettings?) throws -> Admin? {
        guard let text = arguments.string("--inspector") else { return nil }
        let token = try ConfigurationFile.secret("--inspector-token-file", or: "TREBUCHET_INSPECTOR_TOKEN", arguments)
        guard text.contains(":") else {
            return Admin(host: "127.0.0.1", port: Int(text) ?? 0, tls: nil, token: token)
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
        guard let text = arguments.string("--admin") else { return nil }
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
