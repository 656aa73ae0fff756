internal import Networking
package import Transports

/// The proxies that are believed when they say in `X-Forwarded-For` for whom they speak. Pure.
package struct TrustedProxies: Sendable {
    /// Addresses that begin with the same bits.
    private struct Range: Sendable {
        let first: IPAddress
        let bits: Int

        func contains(_ address: IPAddress) -> Bool { address.prefix(bits) == first }
    }

    package static let none = TrustedProxies()

    private let ranges: [Range]

    private init() { ranges = [] }

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

    /// For whom one of the proxies sent a request: the right-most address of `X-Forwarded-For` that is no trusted proxy's; what
    /// stands to the left of it, anybody may have written. When all of them are, the left-most: a proxy that asks for itself.
    /// Nil, for the peer itself, without the field.
    ///
    /// An entry that is no address is refused with 400 rather than counted as the proxy, which might have no limits.
    package func client(in headers: HTTPHeaders) throws(HTTPRejection) -> IPAddress? {
        var client: IPAddress?
        for entry in headers.list("X-Forwarded-For").reversed() {
            guard let address = Self.address(entry[...]) else {
                throw HTTPRejection(
                    400,
                    "X-Forwarded-For has '\(Self.printable(entry))', which is no address; the proxy is to add the one "
                        + "that its client comes from")
            }
            client = address
            if !contains(address) { break }
        }
        return client
    }

    /// What a peer sent, for a line of text.
    private static func printable(_ text: String) -> String {
        String(
            decoding: text.utf8.prefix(60).map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
    }

    /// As proxies write it: `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:4711`.
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

    /// `:4711`, or nothing.
    private static func isPort(_ text: Substring) -> Bool {
        guard let first = text.first else { return true }
        let digits = text.dropFirst()
        return first == ":" && (1...5).contains(digits.utf8.count)
            && digits.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }

    private static func range(_ text: String) throws(TransportError) -> Range {
        func invalid(_ why: String) -> TransportError {
            TransportError(.addressInvalid, "'\(text)' in the list of trusted proxies \(why)")
        }
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let address = IPAddress(parts[0]) else {
            throw invalid("is no address or range; write 127.0.0.1, ::1, 10.0.0.0/8 or 2001:db8::/32")
        }
        // `::ffff:10.0.0.0/104` counts its bits as IPv6 does.
        let isShort = address.isIPv4 && !parts[0].contains(":")
        let most = isShort ? 32 : 128
        guard parts.count == 2 else { return Range(first: address, bits: 128) }
        guard parts[1].utf8.count <= 3, parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let given = Int(parts[1]),
            given <= most
        else { throw invalid("has no number of bits up to \(most) behind the slash") }
        guard given > 0 else { throw invalid("is everybody; then anybody could say to be anybody") }
        let bits = isShort ? given + 96 : given
        let first = address.prefix(bits)
        guard first == address else {
            throw invalid("has bits beyond the first \(given); write \(first)/\(given) or \(parts[0])")
        }
        return Range(first: first, bits: bits)
    }
}
