/// The hash slot of a key in a Redis Cluster.
package enum HashSlot {
    package static let count = 16_384

    /// Returns the CRC16 of the key, or of its tag: the text between the first `{` and the next `}`, unless it is
    /// empty.
    package static func of(_ key: some Collection<UInt8>) -> Int {
        if let open = key.firstIndex(of: UInt8(ascii: "{")) {
            let inside = key[key.index(after: open)...]
            if let close = inside.firstIndex(of: UInt8(ascii: "}")), close != inside.startIndex {
                return Int(crc16(inside[..<close])) % count
            }
        }
        return Int(crc16(key)) % count
    }

    /// Returns the CRC-16/XMODEM.
    static func crc16(_ bytes: some Collection<UInt8>) -> UInt16 {
        bytes.reduce(0) { crc, byte in (crc << 8) ^ table[Int(UInt8(truncatingIfNeeded: crc >> 8) ^ byte)] }
    }

    private static let table: [UInt16] = (0..<256).map { index in
        (0..<8).reduce(UInt16(index) << 8) { crc, _ in crc & 0x8000 == 0 ? crc << 1 : (crc << 1) ^ 0x1021 }
    }
}

/// A redirection of a command to another node of a cluster.
package enum RedisRedirect: Equatable, Sendable {
    /// The slot belongs to that node from now on.
    case moved(slot: Int, RedisURL.Endpoint)
    /// The slot is migrating to that node, and this key is there already.
    case ask(slot: Int, RedisURL.Endpoint)

    /// Parses a redirection; nil for another error.
    ///
    /// - Parameter asked: the node that sent the redirection, because some omit their own host.
    package init?(_ reply: RedisErrorReply, from asked: RedisURL.Endpoint) {
        let words = reply.description.split(separator: " ")
        guard words.count == 3, let slot = Int(words[1]), (0..<HashSlot.count).contains(slot),
            let colon = words[2].lastIndex(of: ":"), let port = Int(words[2][words[2].index(after: colon)...]),
            (1...65_535).contains(port)
        else { return nil }
        // The format has no brackets around an IPv6 address.
        let host = words[2][..<colon]
        let endpoint = RedisURL.Endpoint(host: host.isEmpty ? asked.host : String(host), port: port)
        switch words[0] {
        case "MOVED": self = .moved(slot: slot, endpoint)
        case "ASK": self = .ask(slot: slot, endpoint)
        default: return nil
        }
    }
}
