internal import Platform
package import Transports

/// Where a server is, and who asks there.
package struct RedisURL: Equatable, Sendable {
    package struct Endpoint: Hashable, Sendable, CustomStringConvertible {
        package let host: String
        package let port: Int

        package init(host: String, port: Int) {
            self.host = host
            self.port = port
        }

        package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
    }

    package enum Kind: Equatable, Sendable {
        case server
        /// The endpoints are those of sentinels, which know where the server of that name is.
        case sentinels(masterName: String)
        /// The endpoints are some of a cluster's nodes.
        case cluster
    }

    package let kind: Kind
    /// At least one.
    package let endpoints: [Endpoint]
    package let isSecure: Bool
    /// Nil for the default user.
    package let user: String?
    package let password: String?
    package let database: Int

    private static let forms =
        "redis://[user:password@]host[:port][/database], redis+sentinel://host,host/name, redis+cluster://host,host,"
        + " or the same with rediss for TLS"

    /// The message of an error never holds the password.
    package init(_ text: String) throws(TransportError) {
        func invalid(_ why: String) -> TransportError {
            TransportError(.addressInvalid, "this is no address of a Redis server (\(Self.forms)): \(why)")
        }
        guard text.utf8.count <= 4_096, let separator = text.firstRange(of: "://") else { throw invalid("no scheme") }
        let scheme = text[..<separator.lowerBound].lowercased()
        var rest = text[separator.upperBound...]
        guard !rest.contains("?"), !rest.contains("#") else { throw invalid("a query or a fragment is not allowed") }
        var (user, password): (String?, String?)
        if let at = rest.lastIndex(of: "@") {
            let parts = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = Self.decoded(parts[0]), let secret = parts.count == 2 ? Self.decoded(parts[1]) : nil else {
                throw invalid("before the @ stand a user, a colon, and a password, percent-encoded")
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
                    throw invalid("behind the / stands the number of a database")
                }
                database = number
            }
        case "redis+sentinel", "rediss+sentinel", "sentinel":
            guard let name = Self.decoded(path), !name.isEmpty else {
                throw invalid("behind the / stands the name under which the sentinels know the server")
            }
            kind = .sentinels(masterName: name)
            standardPort = 26_379
        case "redis+cluster", "rediss+cluster":
            guard path.isEmpty else { throw invalid("a cluster has no databases") }
            kind = .cluster
            standardPort = 6_379
        default: throw invalid("an unknown scheme")
        }
        var endpoints: [Endpoint] = []
        for part in rest[..<slash].split(separator: ",", omittingEmptySubsequences: false) {
            guard let endpoint = Self.endpoint(part, standardPort) else {
                throw invalid("'\(part)' is no host with a port")
            }
            endpoints.append(endpoint)
        }
        guard kind != .server || endpoints.count == 1 else { throw invalid("one server has one host") }
        self.endpoints = endpoints
        isSecure = scheme.hasPrefix("rediss")
        (self.user, self.password, self.database) = (user, password, database)
    }

    /// `host`, `host:port`, `[::1]:port`.
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
