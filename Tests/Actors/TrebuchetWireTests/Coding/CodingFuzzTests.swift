import Foundation
import Testing

@testable import TrebuchetWire

/// Compares our coders with Foundation's: values of random shapes, and almost valid texts. `TREBUCHET_CODING_SEEDS=1-100000 swift test
/// --filter CodingFuzzTests` runs more seeds.
@Suite("Coders compared with Foundation's") struct CodingFuzzTests {
    private static let seeds: ClosedRange<UInt64> = {
        let ends = ProcessInfo.processInfo.environment["TREBUCHET_CODING_SEEDS"]?.split(separator: "-").compactMap {
            UInt64($0)
        }
        return ends.map { $0[0]...($0.last ?? $0[0]) } ?? 1...150
    }()

    @Test("values of random shapes have equal JSON, and each coder decodes the other's")
    func values() throws {
        let coder = ValueCoder()
        func check<Value: RandomValue>(_ type: Value.Type, _ seed: UInt64) throws {
            var draw = RandomValues(seed: seed)
            let value = Value.draw(&draw)
            let ours = try written(value, coder)
            let theirs = String(decoding: try Reference.encoder().encode(value), as: UTF8.self)
            #expect(isSameJSON(ours, theirs), "\(type), seed \(seed): \(ours)")
            for text in [ours, theirs] {
                let back = try read(type, text, coder)
                #expect(
                    try back == Reference.decoder().decode(type, from: Data(text.utf8)),
                    "\(type), seed \(seed): \(text)")
            }
        }
        for seed in Self.seeds {
            try check(Numbers.self, seed)
            try check(Texts.self, seed)
            try check(Expression.self, seed)
            try check(SubclassValue.self, seed)
            try check(AnyJSON.self, seed)
            try check(Mixed.self, seed)
        }
    }

    @Test("almost valid texts are accepted and rejected alike")
    func texts() throws {
        let coder = ValueCoder()
        var (taken, refused) = (0, 0)
        func check<Value: RandomValue>(_ type: Value.Type, _ seed: UInt64) throws {
            var draw = RandomValues(seed: seed)
            let value = try written(Value.draw(&draw), coder)
            for _ in 0..<4 {
                let text = InjectedFault.made(in: value, &draw)
                let ours = try? read(type, text, coder)
                guard JSONText.isValue(Array(text.utf8)) else {
                    // Foundation accepts some of these: it does not check members that no code decodes.
                    #expect(ours == nil, "\(type), seed \(seed): \(text)")
                    continue
                }
                // Foundation decodes these as doubles first, and accepts the rounded number as an integer.
                guard !text.contains(/\d{16}\.\d/) else { continue }
                // It rejects 128-bit integers with an exponent that need more than 64 bits; ours decodes them.
                guard !text.contains(/int128":-?\d+[eE]/) else { continue }
                let theirs = try? Reference.decoder().decode(type, from: Data(text.utf8))
                #expect(ours == theirs, "\(type), seed \(seed): \(text)")
                if ours == nil { refused += 1 } else { taken += 1 }
            }
        }
        for seed in Self.seeds {
            try check(Numbers.self, seed)
            try check(Texts.self, seed)
            try check(Expression.self, seed)
            try check(SubclassValue.self, seed)
            try check(AnyJSON.self, seed)
            try check(Mixed.self, seed)
        }
        #expect(taken > 100 && refused > 100, "\(taken) accepted, \(refused) rejected")
    }
}

/// Texts with one part replaced.
private enum InjectedFault {
    static func made(in text: String, _ draw: inout RandomValues) -> String {
        var bytes = Array(text.utf8)
        for _ in 0...draw.below(2) {
            let parts = parts(of: bytes)
            guard !parts.isEmpty else { break }
            let part = draw.one(of: parts)
            switch draw.below(6) {
            case 0: bytes.replaceSubrange(part, with: Array(draw.one(of: others).utf8))
            case 1: bytes.replaceSubrange(part, with: Array(bytes[draw.one(of: parts)]))
            case 2:
                bytes.insert(
                    contentsOf: Array(draw.one(of: [" ", "\n\t", ",", "\"x\":1,", "1,"]).utf8), at: part.lowerBound)
            case 3: bytes.insert(contentsOf: Array(bytes[part]), at: part.lowerBound)
            case 4: escape(part, in: &bytes)
            default: bytes[draw.below(bytes.count)] = UInt8(32 + draw.below(95))
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static let others = [
        "null", "true", "0", "-1", "1.0", "2e1", "0.5", "1e400", "300", "99999999999", "18446744073709551615", "\"\"",
        "\"x\"", "\"\\ud83d\\ude00\"", "[]", "{}", "[null]", "{\"a\":1,\"a\":2}", "[[1],{\"b\":2}]", "\"AA==\"",
    ]

    /// Texts, numbers, words, and members with the following comma.
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
