import Foundation

@testable import TrebuchetWire

/// Random numbers from a seed, and values made of them.
struct RandomValues {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func below(_ count: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
        return Int((word ^ word >> 31) % UInt64(count))
    }

    mutating func one<Value>(of values: [Value]) -> Value { values[below(values.count)] }

    mutating func bits() -> UInt64 {
        let word = UInt64(below(1 << 32)) << 32 | UInt64(below(1 << 32))
        // As often small as large.
        return word >> UInt64(below(64))
    }

    mutating func list<Value>(_ value: (inout RandomValues) -> Value) -> [Value] {
        (0..<below(4)).map { _ in value(&self) }
    }

    mutating func maybe<Value>(_ value: (inout RandomValues) -> Value) -> Value? { below(3) == 0 ? nil : value(&self) }

    mutating func text() -> String {
        let parts = ["", "a", "name", "\"", "\\", "/", "\n", "\u{1}", "é", "\u{1F600}", "\u{2028}", "Index 0", " "]
        return (0..<below(5)).map { _ in one(of: parts) }.joined()
    }

    mutating func double() -> Double {
        switch below(5) {
        case 0: return Double(below(2_000) - 1_000) / 100
        case 1: return Double(below(1 << 20))
        case 2: return Double(below(1 << 40)) / Double(one(of: [10, 1_000, 100_000, 10_000_000]))
        default:
            let value = Double(bitPattern: bits() ^ bits() << 1)
            return value.isFinite ? value : 0.1
        }
    }

    mutating func date() -> Date { Date(timeIntervalSince1970: Double(below(1 << 42) - 1 << 40) / 1000) }
}

/// Texts with one part replaced.
enum DrawnFault {
    static func made(in text: String, _ draw: inout RandomValues) -> String {
        var bytes = Array(text.utf8)
        for _ in 0...draw.below(2) {
            let parts = parts(of: bytes)
            guard !parts.isEmpty else { break }
            let part = draw.one(of: parts)
            switch draw.below(7) {
            case 0: bytes.replaceSubrange(part, with: Array(draw.one(of: others).utf8))
            case 1: bytes.replaceSubrange(part, with: Array(bytes[draw.one(of: parts)]))
            case 2:
                bytes.insert(
                    contentsOf: Array(draw.one(of: [" ", "\n\t", ",", "\"x\":1,", "1,"]).utf8), at: part.lowerBound)
            case 3: bytes.insert(contentsOf: Array(bytes[part]), at: part.lowerBound)
            case 4: escape(part, in: &bytes)
            case 5: bytes.removeSubrange(part)
            default: bytes[draw.below(bytes.count)] = UInt8(32 + draw.below(95))
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static let others = [
        "null", "true", "0", "-1", "1.0", "2e1", "0.5", "1e400", "300", "99999999999", "18446744073709551615", "\"\"",
        "\"x\"", "\"\\ud83d\\ude00\"", "[]", "{}", "[null]", "{\"a\":1,\"a\":2}", "-0", "01", "1.", "\"\\u00\"",
        "\"2026-01-01T00:00:00Z\"", "\"2026-02-30T00:00:00.000Z\"", "\"0b5e9f4c-7c1b-4e0b-9c55-0d6e1f6a2b3c\"",
        "123456789012345678", "1234567890123456789", "0.1234567890123456", "1234567.12345678", "9007199254740993.0",
    ]

    /// Values, and names with their colon.
    private static func parts(of bytes: [UInt8]) -> [Range<Int>] {
        var parts: [Range<Int>] = []
        bytes.withUnsafeBytes { buffer in
            var at = 0
            while at < buffer.count {
                var cursor = JSONCursor(buffer)
                cursor.at = at
                guard let range = try? cursor.value(), range.count > 0 else {
                    at += 1
                    continue
                }
                let start = Int(range.offset)
                parts.append(start..<start + Int(range.count))
                at = [0x7B, 0x5B].contains(buffer[start]) ? start + 1 : start + Int(range.count)
            }
        }
        return parts
    }

    /// Writes the first character of a text as an escape.
    private static func escape(_ part: Range<Int>, in bytes: inout [UInt8]) {
        let first = part.lowerBound + 1
        guard part.count > 2, bytes[part.lowerBound] == 0x22, bytes[first] != 0x5C, bytes[first] < 0x80 else { return }
        let digits = String(bytes[first], radix: 16)
        bytes.replaceSubrange(first...first, with: Array(("\\u00" + (digits.count < 2 ? "0" : "") + digits).utf8))
    }
}
