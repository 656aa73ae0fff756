internal import Platform
package import Transports

/// The address of a server, and the credentials of the client.
package struct RedisURL: Equatable, Sendable {
    /// A host with a port.
    package struct Endpoint: Hashable, Sendable, CustomStringConvertible {
        package let host: String
        package let port: Int

        package init(host: String, port: Int) {
            self.host = host
            self.port = port
        }

        package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
    }

    /// The kind of servers at the endpoints.
    package enum Kind: Equatable, Sendable {
        case server
        /// The endpoints of sentinels, which know the address of the server with that name.
        case sentinels(masterName: String)
        /// The endpoints of some nodes of a cluster.
        case cluster
    }

    package let kind: Kind
    /// The endpoints, at least one.
    package let endpoints: [Endpoint]
    package let isSecure: Bool
    /// The user; nil for the default user.
    package let user: String?
    package let password: String?
    package let database: Int

    private static let forms =
        "redis://[user:password@]host[:port][/database], redis+sentinel://host,host/name, redis+cluster://host,host,"
        + " or the same with rediss for TLS"

    /// Parses a URL. An error message never contains the password.
    package init(_ text: String) throws(TransportError) {
        func invalid(_ reason: String) -> TransportError {
            TransportError(.addressInvalid, "invalid address of a Redis server (\(Self.forms)): \(reason)")
        }
        guard text.utf8.count <= 4_096, let separator = text.firstRange(of: "://") else { throw invalid("no scheme") }
        let scheme = text[..<separator.lowerBound].lowercased()
        var rest = text[separator.upperBound...]
        guard !rest.contains("?"), !rest.contains("#") else { throw invalid("a query or a fragment is not allowed") }
        var (user, password): (String?, String?)
        if let at = rest.lastIndex(of: "@") {
            let parts = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = Self.decoded(parts[0]), let secret = parts.count == 2 ? Self.decoded(parts[1]) : nil else {
                throw invalid("expected user:password before the @, percent-encoded")
            }
            user = name.isEmpty || name.isSameBytes(as: "default") ? nil : name
            password = secret
            rest = rest[rest.index(after: at)...]
        }
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        let path = rest[slash...].dropFirst()
        var database = 0
        let standardPort: Int
        switch scheme {
        case "redis", "rediss":
            kind = .server
            standardPort = 6_379
            if !path.isEmpty {
                guard let number = Int(path), (0...65_535).contains(number) else {
                    throw invalid("expected the number of a database after the /")
                }
                database = number
            }
        case "redis+sentinel", "rediss+sentinel", "sentinel":
            guard let name = Self.decoded(path), !name.isEmpty else {
                throw invalid("expected the service name of the sentinels after the /")
            }
            kind = .sentinels(masterName: name)
            standardPort = 26_379
        case "redis+cluster", "rediss+cluster":
            guard path.isEmpty else { throw invalid("a cluster does not support databases") }
            kind = .cluster
            standardPort = 6_379
        default: throw invalid("unknown scheme")
        }
        var endpoints: [Endpoint] = []
        for part in rest[..<slash].split(separator: ",", omittingEmptySubsequences: false) {
            guard let endpoint = Self.endpoint(part, standardPort) else {
                throw invalid("'\(part)' is not a host with a port")
            }
            endpoints.append(endpoint)
        }
        guard kind != .server || endpoints.count == 1 else { throw invalid("a single server requires one host") }
        self.endpoints = endpoints
        isSecure = scheme.hasPrefix("rediss")
        (self.user, self.password, self.database) = (user, password, database)
    }

    /// Parses an endpoint: `host`, `host:port` or `[::1]:port`.
    package static func endpoint(_ text: Substring, _ standardPort: Int) -> Endpoint? {
        var name = text
        var digits: Substring?
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            name = text[text.index(after: text.startIndex)..<end]
            let after = text[text.index(after: end)...]
            guard after.isEmpty || after.hasPrefix(":") else { return nil }
            digits = after.isEmpty ? nil : after.dropFirst()
        } else if let colon = text.lastIndex(of: ":") {
            name = text[..<colon]
            digits = text[text.index(after: colon)...]
        }
        guard !name.isEmpty, name.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
        guard let digits else { return Endpoint(host: String(name), port: standardPort) }
        guard let port = Int(digits), (1...65_535).contains(port) else { return nil }
        return Endpoint(host: String(name), port: port)
    }

    private static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = String(decoding: rest.prefix(2), as: UTF8.self)
            guard digits.utf8.count == 2, let value = UInt8(digits, radix: 16) else { return nil }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
