/// What streams are called over one connection: a server's `s12` is a UUID to a client of version 1 or 2, and the names that such a
/// client brings along from an earlier connection stay what they are.
struct LegacyStreamNames {
    /// The first 24 characters of all UUIDs of this connection. No earlier one had the same.
    private let beginning: [UInt8]
    private static let digits = 12

    init(_ identity: String) { beginning = Array(identity.utf8.dropLast(Self.digits)) }

    func toClient(_ name: [UInt8]) -> [UInt8] {
        if let number = Self.number(name) {
            let text = String(number, radix: 16, uppercase: true)
            return beginning + [UInt8](repeating: 0x30, count: Self.digits - text.utf8.count) + Array(text.utf8)
        }
        return name.first == Self.mark && Self.looksLikeServers(name) ? Array(name.dropFirst()) : name
    }

    func toServer(_ name: [UInt8]) -> [UInt8] {
        if name.starts(with: beginning), name.count == beginning.count + Self.digits,
            let number = UInt64(String(decoding: name.dropFirst(beginning.count), as: UTF8.self), radix: 16)
        {
            return Array("s\(number)".utf8)
        }
        // One of the client's own that looks like a server's gets a mark, and loses it on the way back.
        return Self.looksLikeServers(name) ? [Self.mark] + name : name
    }

    private static let mark = UInt8(ascii: "~")

    /// The number of a name that the server has given.
    private static func number(_ name: [UInt8]) -> UInt64? {
        guard name.first != mark, looksLikeServers(name),
            let number = UInt64(String(decoding: name.dropFirst(), as: UTF8.self)),
            number < 1 << 48
        else { return nil }
        return number
    }

    /// Whether it is one of the server's, or such a one behind marks.
    private static func looksLikeServers(_ name: [UInt8]) -> Bool {
        let name = name.drop { $0 == mark }
        return name.first == UInt8(ascii: "s") && name.dropFirst().first.map { (0x30...0x39).contains($0) } == true
    }
}
