/// A value in RESP3, or in RESP2 with the same meaning.
package enum RESPValue: Equatable, Sendable {
    /// A word or two on one line, such as `OK`.
    case simple([UInt8])
    /// Any bytes. For a verbatim string, the bytes after its format.
    case bulk([UInt8])
    case integer(Int64)
    case double(Double)
    case boolean(Bool)
    /// An integer of any size, in decimal.
    case bigNumber([UInt8])
    /// Null, in any of its three encodings.
    case null
    case error(RedisErrorReply)
    case array([RESPValue])
    case set([RESPValue])
    /// Keys and values in turn.
    case map([RESPValue])
    /// An unrequested message: a message of a channel, or the reply to SUBSCRIBE.
    case push([RESPValue])

    /// The bytes of a text, in any encoding.
    package var bytes: [UInt8]? {
        switch self {
        case .simple(let bytes), .bulk(let bytes), .bigNumber(let bytes): bytes
        default: nil
        }
    }

    /// The text; invalid UTF-8 in it is replaced.
    package var text: String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

    /// An integer, including one that was sent as text.
    package var number: Int64? {
        switch self {
        case .integer(let number): number
        case .simple(let bytes), .bulk(let bytes): RESPNumber.integer(bytes[...])
        default: nil
        }
    }

    /// The elements of an array, a set, a map or a push.
    package var elements: [RESPValue]? {
        switch self {
        case .array(let elements), .set(let elements), .map(let elements), .push(let elements): elements
        default: nil
        }
    }

    package func isText(_ text: StaticString) -> Bool {
        guard let bytes else { return false }
        return bytes.elementsEqual(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }
}

/// An error reply of a server. The command had no effect, except a script that had begun to write.
package struct RedisErrorReply: Error, Hashable, Sendable, CustomStringConvertible {
    /// The text of the reply, such as `MOVED 3999 127.0.0.1:6381`; invalid UTF-8 in it is replaced.
    package let description: String

    package init(_ description: String) { self.description = description }

    /// The first word, such as `NOSCRIPT`.
    package var code: Substring { description.prefix { $0 != " " } }
}

/// Parses numbers in the syntax of RESP, which is narrower than Swift's.
enum RESPNumber {
    static func integer(_ bytes: some Collection<UInt8>) -> Int64? {
        let isSigned = bytes.first == 0x2D || bytes.first == 0x2B
        let digits = bytes.dropFirst(isSigned ? 1 : 0)
        guard !digits.isEmpty, digits.count <= 19 else { return nil }
        var value: UInt64 = 0
        for byte in digits {
            guard (0x30...0x39).contains(byte) else { return nil }
            value = value &* 10 &+ UInt64(byte &- 0x30)
        }
        guard bytes.first == 0x2D else { return Int64(exactly: value) }
        return value == 1 << 63 ? .min : Int64(exactly: value).map { -$0 }
    }

    static func double(_ bytes: UnsafeRawBufferPointer) -> Double? {
        let text = String(decoding: bytes, as: UTF8.self)
        switch text {
        case "inf", "+inf": return .infinity
        case "-inf": return -.infinity
        case "nan", "-nan": return .nan
        default:
            let isPlain =
                bytes.count <= 64
                && bytes.allSatisfy { byte in
                    (0x30...0x39).contains(byte) || [0x2B, 0x2D, 0x2E, 0x45, 0x65].contains(byte)
                }
            return isPlain ? Double(text) : nil
        }
    }

    static func isBig(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let isSigned = bytes.first == 0x2D || bytes.first == 0x2B
        let digits = bytes.dropFirst(isSigned ? 1 : 0)
        return !digits.isEmpty && digits.allSatisfy { (0x30...0x39).contains($0) }
    }
}
