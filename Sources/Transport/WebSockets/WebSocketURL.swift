internal import Networking
package import Transports

/// A `ws:` or `wss:` URL (RFC 6455 §3). `http:` and `https:` are accepted as aliases, as in browsers.
package struct WebSocketURL: Equatable, Sendable, CustomStringConvertible {
    package let isSecure: Bool
    package let host: String
    package let port: Int
    /// Path and query, at least `/`.
    package let target: String
    package let description: String

    package init(_ text: String) throws(TransportError) {
        description = text
        func invalid(_ reason: String) -> TransportError {
            // Hides a user name and password.
            let shown = text.lastIndex(of: "@").map { "…\(text[$0...])" } ?? text
            return TransportError(.addressInvalid, "'\(shown)' is not a WebSocket URL (ws://host:port/path): \(reason)")
        }
        guard let colon = text.firstRange(of: "://") else { throw invalid("no scheme") }
        let scheme = text[..<colon.lowerBound].lowercased()
        switch scheme {
        case "ws", "http": isSecure = false
        case "wss", "https": isSecure = true
        default: throw invalid("the scheme must be ws, wss, http or https")
        }

        let rest = text[colon.upperBound...]
        let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
        guard !rest.contains("#") else { throw invalid("a fragment is not allowed") }
        let path = rest[end...]
        target = path.hasPrefix("/") ? String(path) : "/" + path
        guard target.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw invalid("non-ASCII characters must be percent-encoded")
        }

        let authority = rest[..<end]
        guard !authority.contains("@") else { throw invalid("a user name and a password are not allowed; use a token") }
        var name = authority
        var digits: Substring?
        if authority.hasPrefix("[") {
            guard let bracket = authority.firstIndex(of: "]") else { throw invalid("no closing bracket") }
            name = authority[authority.index(after: authority.startIndex)..<bracket]
            let after = authority[authority.index(after: bracket)...]
            guard after.isEmpty || after.hasPrefix(":") else { throw invalid("unexpected text between host and port") }
            digits = after.isEmpty ? nil : after.dropFirst()
        } else if let colon = authority.lastIndex(of: ":") {
            name = authority[..<colon]
            digits = authority[authority.index(after: colon)...]
        }
        guard !name.isEmpty, name.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { throw invalid("no host") }
        if let digits {
            guard let number = Int(digits), (1...65535).contains(number) else { throw invalid("invalid port") }
            port = number
        } else {
            port = isSecure ? 443 : 80
        }
        host = String(name)
    }

    /// Host and port in the form of the `Host` field (RFC 9110 §7.2).
    package var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
    }
}
