internal import Bytes
internal import WebSockets

/// Why nothing was fetched; for the operator.
package struct FetchError: Error, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// An `https:` URL, or an `http:` one of this machine itself, or of any where that will do.
package struct HTTPAddress: Sendable, Equatable, CustomStringConvertible {
    package let description: String
    private let parts: WebSocketURL

    var isSecure: Bool { parts.isSecure }
    var host: String { parts.host }
    var port: Int { parts.port }
    var target: String { parts.target }
    /// As the `Host` field wants it.
    var authority: String { parts.authority }

    /// Whether it names no page, but the server alone.
    package var isRoot: Bool { target == "/" }

    /// For logs: without its query, which may have a key in it.
    package var shown: String { Self.shown(description) }

    /// Without a query, and without a name and password.
    private static func shown(_ text: String) -> String {
        let address = text.prefix { $0 != "?" && $0 != "#" }
        guard let at = address.lastIndex(of: "@") else { return address.prefix(bytes: 256) }
        return "…" + address[at...].prefix(bytes: 256)
    }

    /// - Parameter plainAnywhere: takes `http:` of other machines: for what is no secret, in networks that are one's own.
    package init(_ text: String, plainAnywhere: Bool = false) throws(FetchError) {
        let problem = FetchError(
            "'\(Self.shown(text))' is no "
                + (plainAnywhere ? "http or https URL" : "https URL; http is for this machine itself"))
        let scheme = text.prefix { $0 != ":" }.lowercased()
        guard scheme == "https" || scheme == "http", text.utf8.count <= 2048 else { throw problem }
        // Of the same form, but for the scheme.
        let rest = text.dropFirst(scheme.count)
        guard let parts = try? WebSocketURL((scheme == "https" ? "wss" : "ws") + rest) else { throw problem }
        guard plainAnywhere || parts.isSecure || Self.isThisMachine(parts.host) else { throw problem }
        self.parts = parts
        description = text
    }

    private static func isThisMachine(_ host: String) -> Bool {
        ["localhost", "127.0.0.1", "::1"].contains(host.lowercased())
    }
}
