/// Which part of a Redis Cluster a key lies in.
package enum HashSlot {
    package static let count = 16_384

    /// CRC16 of the key, or of its tag: what stands between the first `{` and the `}` behind it, if that is something.
    package static func of(_ key: some Collection<UInt8>) -> Int {
        if let open = key.firstIndex(of: UInt8(ascii: "{")) {
            let inside = key[key.index(after: open)...]
            if let close = inside.firstIndex(of: UInt8(ascii: "}")), close != inside.startIndex {
                return Int(crc16(inside[..<close])) % count
            }
        }
        return Int(crc16(key)) % count
    }

    /// CRC-16/XMODEM.
    static func crc16(_ bytes: some Collection<UInt8>) -> UInt16 {
        bytes.reduce(0) { crc, byte in (crc << 8) ^ table[Int(UInt8(truncatingIfNeeded: crc >> 8) ^ byte)] }
    }

    private static let table: [UInt16] = (0..<256).map { index in
        (0..<8).reduce(UInt16(index) << 8) { crc, _ in crc & 0x8000 == 0 ? crc << 1 : (crc << 1) ^ 0x1021 }
    }
}

/// A node that a cluster sends a command on to.
package enum RedisRedirect: Equatable, Sendable {
    /// The slot lives there from now on.
    case moved(slot: Int, RedisURL.Endpoint)
    /// The slot is on its way there, and this key is there already.
    case ask(slot: Int, RedisURL.Endpoint)

    /// Nil when the error is another one.
    ///
    /// - Parameter asked: the node that said so; some name no host when it is their own.
    package init?(_ reply: RedisReply, from asked: RedisURL.Endpoint) {
        let words = reply.description.split(separator: " ")
        guard words.count == 3, let slot = Int(words[1]), (0..<HashSlot.count).contains(slot),
            let colon = words[2].lastIndex(of: ":"), let port = Int(words[2][words[2].index(after: colon)...]),
            (1...65_535).contains(port)
        else { return nil }
        // An IPv6 address stands there without brackets.
        let host = words[2][..<colon]
        let endpoint = RedisURL.Endpoint(host: host.isEmpty ? asked.host : String(host), port: port)
        switch words[0] {
        case "MOVED": self = .moved(slot: slot, endpoint)
        case "ASK": self = .ask(slot: slot, endpoint)
        default: return nil
        }
    }
}
