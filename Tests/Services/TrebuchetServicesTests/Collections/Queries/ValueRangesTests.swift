import Platform
import Testing
import Trebuchet

@testable import TrebuchetServices

@Suite struct ValueRangesTests {
    @Test("exactly the ranges that contain a value are found", arguments: UInt64(1)...10)
    func model(seed: UInt64) {
        var random = RandomSource(seed: seed)
        var ranges = ValueRanges()
        var model: [Int: [ValueRange]] = [:]
        func value() -> JSONValue {
            let number = Int64.random(in: 0..<40, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0: return .integer(number)
            case 1: return .number(Double(number) + 0.5)
            case 2: return .string("t\(number)")
            default: return .null
            }
        }
        let comparisons: [QueryCondition.Comparison] = [
            .less, .lessOrEqual, .greater, .greaterOrEqual, .prefix, .equal,
        ]
        for step in 0..<300 {
            let number = Int.random(in: 0..<60, using: &random)
            if Bool.random(using: &random), let range = ValueRange(comparisons.randomElement(using: &random)!, value())
            {
                let other = ValueRange(comparisons.randomElement(using: &random)!, value())
                let both = other.map { range.narrowed(by: $0) } ?? range
                if let both {
                    ranges.insert(both, number)
                    model[number, default: []].append(both)
                }
            } else if model[number] != nil {
                ranges.remove(number)
                model[number] = nil
            }
            let asked = value()
            var found: Set<Int> = []
            ranges.find(asked) { found.insert($0) }
            #expect(
                found == Set(model.filter { $0.value.contains { $0.contains(asked) } }.keys),
                "seed \(seed), step \(step)")
        }
    }

    @Test("a prefix range ends after all texts with the prefix")
    func prefixes() {
        for (prefix, end) in [
            ("a", "b"), ("az", "a{"), ("\u{D7FF}", "\u{E000}"), ("a\u{10FFFF}", "b"), ("\u{10FFFF}", nil), ("", nil),
        ] {
            let range = ValueRange(.prefix, .string(prefix))
            #expect(range?.upper == end.map { .string($0) }, "\(prefix)")
            for rest in ["", "x", "\u{10FFFF}\u{10FFFF}\u{10FFFF}\u{10FFFF}\u{10FFFF}"] {
                #expect(range?.contains(.string(prefix + rest)) == true)
            }
        }
    }
}
