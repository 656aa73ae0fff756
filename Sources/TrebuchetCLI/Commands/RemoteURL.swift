import Commands
import Glibc
import Trebuchet
import TrebuchetServices
import WebSockets

/// The address of a server: `ws://127.0.0.1:8080` or `wss://example.com/realtime`.
struct RemoteURL {
    static let option = OptionSpec("--url", "URL", "the server, as wss://example.com/path (ws://127.0.0.1:8080)")
    /// `--url` and what belongs to it.
    static let options = address + [CommandTimeout.option]
    /// `--url` and what belongs to `wss:`.
    static let address = [
        option, OptionSpec("--ca-file", "FILE", "trust the certificate authorities in FILE alone, with wss"),
        OptionSpec("--insecure", nil, "trust any certificate, with wss; for tests alone"),
        OptionSpec("--compression", nil, "offer the server to compress messages"),
    ]
    /// For commands that call as whoever holds a token, beside who is signed in.
    static let token = OptionSpec(
        "--token", "TOKEN",
        "the credential to connect with, as an API key or a JSON Web Token; others on the machine can see it here, so "
            + "rather set TREBUCHET_TOKEN (who is signed in)")
    static let `default` = "ws://127.0.0.1:8080"

    /// The options that name the server, as they were given: what stands in a command that is shown to be run next.
    static func words(_ arguments: ParsedArguments) -> String {
        ["--url", "--ca-file"].map { name in
            guard let value = arguments.string(name) else { return "" }
            let isPlain = value.allSatisfy { $0.isLetter || $0.isNumber || ":/.-_~%".contains($0) }
            return
                " \(name) \(isPlain ? value : "'\(value.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''"))'")"
        }.joined() + (arguments.has("--insecure") ? " --insecure" : "")
    }

    private let url: WebSocketURL

    var host: String { url.host }
    var port: Int { url.port }
    var isSecure: Bool { url.isSecure }
    /// The path and the query, at least `/`.
    var target: String { url.target }

    init(_ text: String) throws(UsageError) {
        do throws(TransportError) {
            url = try WebSocketURL(text)
        } catch {
            throw UsageError("--url: \(error.message); give one such as \(Self.default)")
        }
    }

    static func trust(_ arguments: ParsedArguments) -> TLSClientSettings {
        if arguments.has("--insecure") { return TLSClientSettings(trust: .insecure) }
        return TLSClientSettings(trust: arguments.string("--ca-file").map { .file($0) } ?? .system)
    }

    private func transport(_ arguments: ParsedArguments) -> TrebuchetTransport {
        let transport = TrebuchetTransport.webSocket(url: url.description, tls: Self.trust(arguments))
        return arguments.has("--compression") ? transport.compressed() : transport
    }

    /// A client that is connected to the server that `--url` names, as who was signed in there last.
    static func connect(_ arguments: ParsedArguments) async throws -> TrebuchetClient {
        try await connectedBackend(arguments).client
    }

    /// The same for a command that takes `--token`: with the credential of that, or of `TREBUCHET_TOKEN`, if there is one.
    static func connectWithToken(_ arguments: ParsedArguments) async throws -> TrebuchetClient {
        guard let token = arguments.string(token.name) ?? environmentToken else { return try await connect(arguments) }
        var options = TrebuchetClient.Options()
        options.token = { token }
        let url = try RemoteURL(arguments.string(option.name) ?? Self.default)
        return try await url.connected(TrebuchetClient(transport: url.transport(arguments), options: options))
    }

    /// An empty variable is none.
    private static var environmentToken: String? {
        getenv("TREBUCHET_TOKEN").map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The same with what signs in and out.
    static func connectedBackend(_ arguments: ParsedArguments) async throws -> TrebuchetBackend {
        let url = try RemoteURL(arguments.string(option.name) ?? Self.default)
        let credentials = try CredentialFile.store(for: url)
        // A file that is no good is an error, not a call by nobody.
        _ = try credentials.load()
        let backend = TrebuchetBackend(
            transport: url.transport(arguments), credentials: credentials, options: TrebuchetClient.Options())
        _ = try await url.connected(backend.client)
        return backend
    }

    private func connected(_ client: TrebuchetClient) async throws -> TrebuchetClient {
        let timeout = CommandTimeout.current
        timeout?.start(awaiting: "connection to \(host):\(port)")
        do {
            try await client.connect()
            timeout?.start(awaiting: "answer of \(host):\(port)")
        } catch let error as TransportError where error.code == .refused {
            throw TransportError(
                .refused, "\(error.message); is a server running there? start one with: trebuchet serve", cause: error)
        }
        return client
    }
}
