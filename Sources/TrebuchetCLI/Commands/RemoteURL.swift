import Commands
import Glibc
import Trebuchet
import TrebuchetServices

/// The address of a server: `ws://127.0.0.1:8080` or `wss://example.com`.
struct RemoteURL {
    static let option = OptionSpec("--url", "URL", "the server (ws://127.0.0.1:8080)")
    /// `--url` and what belongs to `wss:`.
    static let options = [
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

    let host: String
    let port: Int
    let isSecure: Bool

    init(_ text: String) throws(UsageError) {
        let problem = UsageError("'\(text)' is not a server's address; give one such as \(Self.default)")
        isSecure = text.hasPrefix("wss://")
        guard isSecure || text.hasPrefix("ws://") else { throw problem }
        var rest = text.dropFirst(isSecure ? "wss://".count : "ws://".count)
        if let slash = rest.firstIndex(of: "/") {
            guard rest[slash...] == "/" else { throw problem }
            rest = rest[..<slash]
        }
        if rest.hasPrefix("["), let end = rest.firstIndex(of: "]") {
            host = String(rest[rest.index(after: rest.startIndex)..<end])
            rest = rest[rest.index(after: end)...]
        } else {
            let end = rest.firstIndex(of: ":") ?? rest.endIndex
            host = String(rest[..<end])
            rest = rest[end...]
        }
        guard !host.isEmpty else { throw problem }
        if rest.isEmpty {
            port = isSecure ? 443 : 80
        } else {
            guard rest.first == ":", let number = Int(rest.dropFirst()), (1...65535).contains(number) else {
                throw problem
            }
            port = number
        }
    }

    static func trust(_ arguments: ParsedArguments) -> TLSClientSettings {
        if arguments.has("--insecure") { return TLSClientSettings(trust: .insecure) }
        return TLSClientSettings(trust: arguments.string("--ca-file").map { .file($0) } ?? .system)
    }

    private func transport(_ arguments: ParsedArguments) -> TrebuchetTransport {
        let transport: TrebuchetTransport =
            isSecure
            ? .webSocket(host: host, port: port, tls: Self.trust(arguments)) : .webSocket(host: host, port: port)
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
        let credentials = CredentialFile.store(for: url)
        // A file that is no good is an error, not a call by nobody.
        _ = try credentials.load()
        let backend = TrebuchetBackend(
            transport: url.transport(arguments), credentials: credentials, options: TrebuchetClient.Options())
        _ = try await url.connected(backend.client)
        return backend
    }

    private func connected(_ client: TrebuchetClient) async throws -> TrebuchetClient {
        do {
            try await client.connect()
        } catch let error as TransportError where error.code == .refused {
            throw TransportError(
                .refused, "\(error.message); is a server running there? start one with: trebuchet serve", cause: error)
        }
        return client
    }
}
