internal import Networking
package import Transports

/// The proxies whose `X-Forwarded-For` field is trusted. It does no I/O.
package struct TrustedProxies: Sendable {
    /// A range of addresses with the same leading bits.
    private struct Range: Sendable {
        let first: IPAddress
        let bits: Int

        func contains(_ address: IPAddress) -> Bool { address.prefix(bits) == first }
    }

    package static let none = TrustedProxies()

    private let ranges: [Range]

    private init() { ranges = [] }

    /// Creates a list of trusted proxies.
    ///
    /// - Parameter texts: addresses (`127.0.0.1`, `::1`) and ranges (`10.0.0.0/8`, `2001:db8::/32`).
    /// - Throws: `TransportError` of code `.addressInvalid` for anything else, and for a range of all addresses.
    package init(_ texts: some Sequence<String>) throws(TransportError) {
        var ranges: [Range] = []
        for text in texts { ranges.append(try Self.range(text)) }
        self.ranges = ranges
    }

    package var isEmpty: Bool { ranges.isEmpty }

    package func contains(_ address: SocketAddress?) -> Bool {
        guard !ranges.isEmpty, let address, let address = IPAddress(address.host) else { return false }
        return contains(address)
    }

    private func contains(_ address: IPAddress) -> Bool { ranges.contains { $0.contains(address) } }

    /// Returns the client of a forwarded request: the right-most address in `X-Forwarded-For` that is not a trusted proxy.
    /// Entries to its left can be forged. If all are trusted proxies, it is the left-most: a proxy with its own request. Without
    /// the field it is nil, for the peer itself.
    ///
    /// An entry that is no address is rejected with 400. Otherwise it would count as the proxy, which may be exempt from limits.
    package func client(in headers: HTTPHeaders) throws(HTTPRejection) -> IPAddress? {
        var client: IPAddress?
        for entry in headers.list("X-Forwarded-For").reversed() {
            guard let address = Self.address(entry[...]) else {
                throw HTTPRejection(
                    400,
                    "X-Forwarded-For contains '\(Self.printable(entry))', which is not an address; the proxy must append "
                        + "the address of its client")
            }
            client = address
            if !contains(address) { break }
        }
        return client
    }

    /// Returns text from a peer with unprintable bytes replaced.
    private static func printable(_ text: String) -> String {
        String(
            decoding: text.utf8.prefix(60).map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
    }

    /// Parses an entry in the notations of proxies: `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]`,
    /// `[2001:db8::1]:4711`.
    private static func address(_ entry: Substring) -> IPAddress? {
        if entry.first == "[" {
            guard let end = entry.firstIndex(of: "]"), isPort(entry[entry.index(after: end)...]) else { return nil }
            let inside = entry[entry.index(after: entry.startIndex)..<end]
            return inside.contains(":") ? IPAddress(inside) : nil
        }
        if let address = IPAddress(entry) { return address }
        guard let colon = entry.firstIndex(of: ":"), isPort(entry[colon...]), let address = IPAddress(entry[..<colon]),
            address.isIPv4
        else { return nil }
        return address
    }

    /// Returns whether the text is `:4711` or empty.
    private static func isPort(_ text: Substring) -> Bool {
        guard let first = text.first else { return true }
        let digits = text.dropFirst()
        return first == ":" && (1...5).contains(digits.utf8.count)
            && digits.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }

    private static func range(_ text: String) throws(TransportError) -> Range {
        func invalid(_ reason: String) -> TransportError {
            TransportError(.addressInvalid, "'\(text)' in the list of trusted proxies \(reason)")
        }
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let address = IPAddress(parts[0]) else {
            throw invalid("is not an address or range; write 127.0.0.1, ::1, 10.0.0.0/8 or 2001:db8::/32")
        }
        // The prefix length of `::ffff:10.0.0.0/104` counts IPv6 bits.
        let isShort = address.isIPv4 && !parts[0].contains(":")
        let most = isShort ? 32 : 128
        guard parts.count == 2 else { return Range(first: address, bits: 128) }
        guard parts[1].utf8.count <= 3, parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let prefixLength = Int(parts[1]),
            prefixLength <= most
        else { throw invalid("requires a prefix length up to \(most) after the slash") }
        guard prefixLength > 0 else {
            throw invalid("contains all addresses, so that any client could forge its address")
        }
        let bits = isShort ? prefixLength + 96 : prefixLength
        let first = address.prefix(bits)
        guard first == address else {
            throw invalid(
                "has bits set beyond its prefix length \(prefixLength); write \(first)/\(prefixLength) or \(parts[0])")
        }
        return Range(first: first, bits: bits)
    }
}
