/// The mapping of stream names on one connection. A server's `s12` is a UUID for a client of version 1 or 2. Names that such a
/// client brings from an earlier connection stay unchanged.
struct LegacyStreamNames {
    /// The first 24 characters of all UUIDs of this connection, which no earlier connection had.
    private let prefix: [UInt8]
    private static let digits = 12

    init(_ identity: String) { prefix = Array(identity.utf8.dropLast(Self.digits)) }

    func toClient(_ name: [UInt8]) -> [UInt8] {
        if let number = Self.number(name) {
            let text = String(number, radix: 16, uppercase: true)
            return prefix + [UInt8](repeating: 0x30, count: Self.digits - text.utf8.count) + Array(text.utf8)
        }
        return name.first == Self.mark && Self.looksLikeServers(name) ? Array(name.dropFirst()) : name
    }

    func toServer(_ name: [UInt8]) -> [UInt8] {
        if name.starts(with: prefix), name.count == prefix.count + Self.digits,
            let number = UInt64(String(decoding: name.dropFirst(prefix.count), as: UTF8.self), radix: 16)
        {
            return Array("s\(number)".utf8)
        }
        // A client's name that looks like a server's gets a prefix, which is removed in responses.
        return Self.looksLikeServers(name) ? [Self.mark] + name : name
    }

    private static let mark = UInt8(ascii: "~")

    /// Returns the number in a name that the server assigned.
    private static func number(_ name: [UInt8]) -> UInt64? {
        guard name.first != mark, looksLikeServers(name),
            let number = UInt64(String(decoding: name.dropFirst(), as: UTF8.self)),
            number < 1 << 48
        else { return nil }
        return number
    }

    /// Returns whether it is a server's name, or such a name behind prefixes.
    private static func looksLikeServers(_ name: [UInt8]) -> Bool {
        let name = name.drop { $0 == mark }
        return name.first == UInt8(ascii: "s") && name.dropFirst().first.map { (0x30...0x39).contains($0) } == true
    }
}
