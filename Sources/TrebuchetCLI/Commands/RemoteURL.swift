import Trebuchet

/// The address of a server: `ws://127.0.0.1:8080`.
struct RemoteURL {
    static let option = OptionSpec("--url", "URL", "the server (ws://127.0.0.1:8080)")
    static let `default` = "ws://127.0.0.1:8080"

    let host: String
    let port: Int

    init(_ text: String) throws(UsageError) {
        let problem = UsageError("'\(text)' is not a server's address; give one such as \(Self.default)")
        guard text.hasPrefix("ws://") else { throw problem }
        var rest = text.dropFirst("ws://".count)
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
            port = 80
        } else {
            guard rest.first == ":", let number = Int(rest.dropFirst()), (1...65535).contains(number) else {
                throw problem
            }
            port = number
        }
    }

    /// A client that is connected to the server that `--url` names.
    static func connect(_ arguments: ParsedArguments) async throws -> TrebuchetClient {
        let url = try RemoteURL(arguments.string(option.name) ?? Self.default)
        let client = TrebuchetClient(transport: .webSocket(host: url.host, port: url.port))
        do {
            try await client.connect()
        } catch let error as TransportError where error.code == .refused {
            throw TransportError(
                .refused, "\(error.message)\nis a server running there? start one with: trebuchet serve", cause: error)
        }
        return client
    }
}
