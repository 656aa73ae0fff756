internal import Bytes
internal import Networking
internal import TrebuchetWire
public import TrebuchetActors
public import Transports
internal import WebSockets

/// A request of a route, with its whole body.
public struct RouteRequest: Sendable {
    /// A name and a value of the query, decoded.
    public struct QueryItem: Sendable, Equatable {
        /// The text before the first equals sign.
        public let name: String
        /// The text after the first equals sign; empty without one.
        public let value: String
    }

    /// The method as sent by the client: `POST`; `HEAD` for a HEAD of a GET route.
    public let method: String
    /// The path as sent by the client, percent-encoded, without the query.
    public let path: String
    /// The parameters of the route by their names, percent-decoded. A value may contain slashes that were encoded, and is not empty.
    public let parameters: [String: String]
    /// The query in its order, percent-decoded; a plus sign is a space. An item that is not UTF-8 or malformed is omitted.
    public let queryItems: [QueryItem]
    /// The fields of the request. Names compare without case.
    public let headers: HTTPHeaders
    /// The bytes of the body as received, for signatures; decoded from chunks. Empty without a body.
    public let body: [UInt8]
    /// The address of the client; behind one of `AccessPolicy.trustedProxies` that of the proxy's client, with port 0. Nil if the system
    /// no longer knows it.
    public let remoteAddress: SocketAddress?
    /// The caller of an authenticated route; nil for other routes. `Caller.current` is the server while the handler runs.
    public let caller: Caller?
    /// The system of the server's actors. Calls of actors that the handler resolves by name are calls of the server itself
    /// (`Caller.isServer`), which `AccessPolicy.authorize` does not check: check `caller` first.
    public let actorSystem: TrebuchetActorSystem

    /// Returns the first value of a name in the query; nil without one.
    public func query(_ name: String) -> String? { queryItems.first { $0.name == name }?.value }

    /// Decodes the body as JSON. Throws `TrebuchetError` of the code `invalidArguments`, which is answered 400.
    public func json<Value: Decodable>(as type: Value.Type = Value.self) throws(TrebuchetError) -> Value {
        do {
            return try body.withUnsafeBytes { try ValueCoder().decode(type, from: $0) }
        } catch {
            throw TrebuchetError(.invalidArguments, "the body: \(describe(error).prefix(bytes: 512))")
        }
    }

    /// Returns whether a signature is the HMAC with SHA-256 of a message. Takes constant time for signatures of the right length.
    ///
    /// - Parameters:
    ///   - signature: The signature, 64 hexadecimal digits.
    ///   - key: The secret that the sender of the request shares.
    ///   - message: The signed bytes; the body by default.
    public func isSigned(hmacSHA256 signature: String, key: String, message: [UInt8]? = nil) -> Bool {
        let expected = Digest.hmacSHA256(message ?? body, key: Array(key.utf8))
        let digits = Array(signature.utf8)
        guard digits.count == 2 * expected.count else { return false }
        var given: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = Self.hexDigit(digits[index]), let low = Self.hexDigit(digits[index + 1]) else {
                return false
            }
            given.append(high << 4 | low)
        }
        return Digest.areEqual(expected, given)
    }

    private static func hexDigit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }

    /// Returns the items of a query as sent.
    static func items(of query: String?) -> [QueryItem] {
        guard let query else { return [] }
        return query.split(separator: "&").compactMap { item in
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = parts.first.flatMap({ decode($0) }),
                let value = parts.count > 1 ? decode(parts[1]) : ""
            else { return nil }
            return QueryItem(name: name, value: value)
        }
    }

    private static func decode(_ text: Substring) -> String? {
        let bytes = text.utf8.map { $0 == UInt8(ascii: "+") ? 0x20 : $0 }
        return (try? PagePath.decode(bytes[...])).flatMap { String(validating: $0, as: UTF8.self) }
    }
}

/// The JSON of routes, in the form of calls.
enum RouteJSON {
    static func encode(_ value: some Encodable) throws -> [UInt8] {
        var buffer = ByteBuffer()
        try ValueCoder().encode(value, into: &buffer)
        return Array(buffer.bytes)
    }
}
