internal import Bytes
internal import WebSockets

/// The reason for a failed request, written for the operator.
package struct FetchError: Error, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// The URL of an HTTP request: `https:`, or `http:` to this machine, or to any machine if the caller allows it.
package struct HTTPEndpoint: Sendable, Equatable, CustomStringConvertible {
    package let description: String
    private let parts: WebSocketURL

    var isSecure: Bool { parts.isSecure }
    var host: String { parts.host }
    var port: Int { parts.port }
    var target: String { parts.target }
    /// The value of the `Host` field.
    var authority: String { parts.authority }

    /// Whether the URL has no path and names only the server.
    package var isRoot: Bool { target == "/" }

    /// The URL for logs, without its query, which may contain a key.
    package var withoutQuery: String { Self.withoutQuery(description) }

    /// Returns the URL without its query, user name and password.
    private static func withoutQuery(_ text: String) -> String {
        let address = text.prefix { $0 != "?" && $0 != "#" }
        guard let at = address.lastIndex(of: "@") else { return address.prefix(bytes: 256) }
        return "…" + address[at...].prefix(bytes: 256)
    }

    /// Parses a URL.
    ///
    /// - Parameter allowsPlaintext: accepts `http:` to other machines, for data that is not secret in trusted networks.
    package init(_ text: String, allowsPlaintext: Bool = false) throws(FetchError) {
        let problem = FetchError(
            "'\(Self.withoutQuery(text))' is not an "
                + (allowsPlaintext ? "http or https URL" : "https URL; http is allowed only to this machine"))
        let scheme = text.prefix { $0 != ":" }.lowercased()
        guard scheme == "https" || scheme == "http", text.utf8.count <= 2048 else { throw problem }
        // The forms are the same except for the scheme.
        let rest = text.dropFirst(scheme.count)
        guard let parts = try? WebSocketURL((scheme == "https" ? "wss" : "ws") + rest) else { throw problem }
        guard allowsPlaintext || parts.isSecure || Self.isThisMachine(parts.host) else { throw problem }
        self.parts = parts
        description = text
    }

    private static func isThisMachine(_ host: String) -> Bool {
        ["localhost", "127.0.0.1", "::1"].contains(host.lowercased())
    }
}
