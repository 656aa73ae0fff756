import Commands
import Glibc
import Trebuchet
import TrebuchetServices
import WebSockets

/// The address of a server: `ws://127.0.0.1:8080` or `wss://example.com/realtime`.
struct RemoteURL {
    static let option = OptionSpec("--url", "URL", "the server, such as wss://example.com/path (ws://127.0.0.1:8080)")
    /// `--url` with its TLS and timeout options.
    static let options = address + [CommandTimeout.option]
    /// `--url` with its TLS options.
    static let address = [
        option, OptionSpec("--ca-file", "FILE", "trust only the certificate authorities in FILE, with wss"),
        OptionSpec("--insecure", nil, "trust every certificate, with wss; for tests only"),
        OptionSpec("--compression", nil, "offer message compression to the server"),
    ]
    /// The option of commands that can authenticate with a token in place of the signed-in user.
    static let token = OptionSpec(
        "--token", "TOKEN",
        "API key or JSON Web Token; visible to local users, so "
            + "prefer TREBUCHET_TOKEN (the session of 'sign-in')")
    static let `default` = "ws://127.0.0.1:8080"

    /// Returns the given options that name the server, for a suggested command.
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
            throw UsageError("--url: \(error.message); expected a URL such as \(Self.default)")
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

    /// Returns a client that is connected to the server of `--url`, as the user signed in there.
    static func connect(_ arguments: ParsedArguments) async throws -> TrebuchetClient {
        try await connectedBackend(arguments).client
    }

    /// Returns a connected client for a command that takes `--token`: with the credential of `--token` or `TREBUCHET_TOKEN` if
    /// there is one.
    static func connectWithToken(_ arguments: ParsedArguments) async throws -> TrebuchetClient {
        guard let token = arguments.string(token.name) ?? environmentToken else { return try await connect(arguments) }
        var options = TrebuchetClient.Options()
        options.token = { token }
        let url = try RemoteURL(arguments.string(option.name) ?? Self.default)
        return try await url.connected(
            TrebuchetClient(transport: url.transport(arguments), options: options), arguments)
    }

    /// An empty variable counts as missing.
    private static var environmentToken: String? {
        getenv("TREBUCHET_TOKEN").map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Returns a connected backend, which can sign in and out.
    static func connectedBackend(_ arguments: ParsedArguments) async throws -> TrebuchetBackend {
        let url = try RemoteURL(arguments.string(option.name) ?? Self.default)
        let credentials = try CredentialFile.store(for: url)
        // An invalid file is an error; the call must not silently be anonymous.
        _ = try credentials.load()
        do {
            return try await url.connectedBackend(credentials, arguments)
        } catch let error as TransportError where error.code == .token && lacksSignIn(error.cause) {
            // Another server listens at the address of an earlier one, as an app at the default port.
            Console.error(
                "trebuchet: \(url.host):\(url.port) has no sign-in; the session stored for this URL is not used")
            return try await url.connectedBackend(InMemoryCredentialStore(), arguments)
        }
    }

    /// Whether a session could not be renewed because the server has no `auth`, or refuses anonymous connections.
    private static func lacksSignIn(_ error: (any Error)?) -> Bool {
        switch error {
        case let error as TrebuchetError: error.code == .actorNotFound
        case let error as TransportError: (error.cause as? UnexpectedHTTPStatus)?.status == 401
        default: false
        }
    }

    private func connectedBackend(
        _ credentials: any CredentialStore, _ arguments: ParsedArguments
    ) async throws -> TrebuchetBackend {
        let backend = TrebuchetBackend(
            transport: transport(arguments), credentials: credentials, options: TrebuchetClient.Options())
        do {
            _ = try await connected(backend.client, arguments)
            return backend
        } catch {
            await backend.client.close()
            throw error
        }
    }

    private func connected(_ client: TrebuchetClient, _ arguments: ParsedArguments) async throws -> TrebuchetClient {
        let timeout = CommandTimeout.current
        timeout?.start(awaiting: "connection to \(host):\(port)")
        do {
            try await client.connect()
            timeout?.start(awaiting: "response of \(host):\(port)")
        } catch let error as TransportError where error.code == .refused {
            throw TransportError(
                .refused, "\(error.message); is a server running there? start one with: trebuchet serve", cause: error)
        } catch let error as TransportError where error.message.contains("the certificate was rejected") {
            let remedy =
                if error.message.contains("mismatch") {
                    "use a host name of the certificate"
                } else if arguments.has("--ca-file") {
                    "--ca-file must contain the certificate of its authority"
                } else {
                    "to trust its authority, pass its certificate with --ca-file FILE"
                }
            throw TransportError(.tls, "\(error.message); \(remedy)", cause: error)
        }
        return client
    }
}
