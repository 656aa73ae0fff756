internal import Bytes
internal import CCurl
package import Transports

/// The URL of an HTTP request: `https:`, or `http:` to this machine, or to any machine if the caller allows it.
package struct HTTPEndpoint: Sendable, Equatable, CustomStringConvertible {
    /// The URL as it was given.
    package let description: String
    /// True when the URL has no path and no query, so that it names only the server.
    package let isRoot: Bool
    /// True for `https:`.
    package let isSecure: Bool

    /// The URL for logs, without its query, which may contain a key.
    package var withoutQuery: String { Self.withoutQuery(description) }

    /// Returns the URL without its query, user name and password.
    private static func withoutQuery(_ text: String) -> String {
        let address = text.prefix { $0 != "?" && $0 != "#" }
        guard let at = address.lastIndex(of: "@") else { return address.prefix(bytes: 256) }
        return "…" + address[at...].prefix(bytes: 256)
    }

    /// Parses a URL as libcurl does, which uses it later. A user name, a password and a fragment are not allowed.
    ///
    /// - Parameter allowsPlaintext: accepts `http:` to other machines, for data that is not secret in trusted networks.
    package init(_ text: String, allowsPlaintext: Bool = false) throws(TransportError) {
        let problem = TransportError(
            .addressInvalid,
            "'\(Self.withoutQuery(text))' is not an "
                + (allowsPlaintext ? "http or https URL" : "https URL; http is allowed only to this machine"))
        guard text.utf8.count <= 2048, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), !text.contains("#"),
            let url = curl_url()
        else { throw problem }
        defer { curl_url_cleanup(url) }
        guard curl_url_set(url, CURLUPART_URL, text, UInt32(CURLU_DISALLOW_USER)) == CURLUE_OK,
            let scheme = Self.part(CURLUPART_SCHEME, of: url), let host = Self.part(CURLUPART_HOST, of: url),
            Self.part(CURLUPART_PORT, of: url) != "0",
            scheme == "https" || scheme == "http" && (allowsPlaintext || Self.isThisMachine(host))
        else { throw problem }
        isRoot = Self.part(CURLUPART_PATH, of: url) ?? "/" == "/" && Self.part(CURLUPART_QUERY, of: url) == nil
        isSecure = scheme == "https"
        description = text
    }

    private static func part(_ part: CURLUPart, of url: OpaquePointer) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(url, part, &text, 0) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }

    private static func isThisMachine(_ host: String) -> Bool {
        ["localhost", "127.0.0.1", "[::1]"].contains(host.lowercased())
    }
}
