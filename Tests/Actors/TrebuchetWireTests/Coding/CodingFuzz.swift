import Foundation

@testable import TrebuchetWire

/// Values of many shapes, made from random numbers.
protocol RandomValue: Codable, Equatable {
    static func draw(_ draw: inout RandomValues) -> Self
}

/// Random numbers from a seed, and values made of them.
struct RandomValues {
    private var state: UInt64
    /// The remaining nesting depth.
    var depth = 4

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
        depth -= 1
        defer { depth += 1 }
        return depth <= 0 ? [] : (0..<below(4)).map { _ in value(&self) }
    }

    mutating func maybe<Value>(_ value: (inout RandomValues) -> Value) -> Value? { below(3) == 0 ? nil : value(&self) }

    mutating func text() -> String {
        let parts = [
            "", "a", "name", "\"", "\\", "/", "\n", "\u{1}", "é", "\u{1F600}", "\u{2028}", "super", "Index 0", "0", " ",
        ]
        return (0..<below(5)).map { _ in one(of: parts) }.joined()
    }

    mutating func double() -> Double {
        switch below(4) {
        case 0: return Double(below(2_000) - 1_000) / 100
        case 1: return Double(below(1 << 20))
        default:
            let value = Double(bitPattern: bits() ^ bits() << 1)
            return value.isFinite ? value : 0.1
        }
    }
}

struct Numbers: RandomValue {
    var int: Int, int8: Int8, int16: Int16, int32: Int32, int64: Int64, int128: Int128
    var uint: UInt, uint8: UInt8, uint16: UInt16, uint32: UInt32, uint64: UInt64, uint128: UInt128
    var double: Double, float: Float, bool: Bool, decimal: Decimal

    static func draw(_ draw: inout RandomValues) -> Self {
        func signed<Integer: FixedWidthInteger>(_ draw: inout RandomValues) -> Integer {
            Integer(truncatingIfNeeded: draw.bits()) &* (draw.below(2) == 0 ? 1 : 0 &- 1)
        }
        return Numbers(
            int: signed(&draw), int8: signed(&draw), int16: signed(&draw), int32: signed(&draw), int64: signed(&draw),
            int128: signed(&draw), uint: signed(&draw), uint8: signed(&draw), uint16: signed(&draw),
            uint32: signed(&draw), uint64: signed(&draw), uint128: signed(&draw), double: draw.double(),
            float: Float(draw.below(1 << 24)) / Float(1 << draw.below(20)), bool: draw.below(2) == 0,
            decimal: Decimal(draw.below(1_000_000)) / 100)
    }
}

struct Texts: RandomValue {
    var id: UUID, text: String, note: String?, placed: Date, data: Data, url: URL?
    var words: [String: String], counts: [Int: Double?], suits: [Suit: [Bool]], pairs: [Bool: Int]

    enum Suit: String, Codable, CodingKeyRepresentable, CaseIterable { case hearts, spades }

    static func draw(_ draw: inout RandomValues) -> Self {
        func table<Key, Value>(
            _ draw: inout RandomValues, _ key: (inout RandomValues) -> Key, _ value: (inout RandomValues) -> Value
        ) -> [Key: Value] {
            Dictionary(draw.list { (key(&$0), value(&$0)) }) { $1 }
        }
        return Texts(
            id: UUID(), text: draw.text(), note: draw.maybe { $0.text() },
            placed: Date(timeIntervalSince1970: Double(draw.below(1 << 40)) / 1000 - 1e8),
            data: Data(draw.text().utf8), url: draw.maybe { URL(string: "https://a.b/\($0.below(100))?c=%20#d")! },
            words: table(&draw, { $0.text() }, { $0.text() }),
            counts: table(&draw, { $0.below(1000) - 500 }, { $0.maybe { $0.double() } }),
            suits: table(&draw, { $0.one(of: Suit.allCases) }, { $0.list { $0.below(2) == 0 } }),
            pairs: table(&draw, { $0.below(2) == 0 }, { $0.below(10) }))
    }
}

/// An enumeration with payloads that nests itself.
indirect enum Expression: RandomValue {
    case nothing
    case number(Double)
    case sum(Expression, right: Expression?)
    case call(name: String, arguments: [Expression])

    static func draw(_ draw: inout RandomValues) -> Self {
        draw.depth -= 1
        defer { draw.depth += 1 }
        guard draw.depth > 0 else { return .nothing }
        switch draw.below(4) {
        case 0: return .number(draw.double())
        case 1: return .sum(self.draw(&draw), right: draw.maybe { self.draw(&$0) })
        case 2: return .call(name: draw.text(), arguments: draw.list { self.draw(&$0) })
        default: return .nothing
        }
    }
}

/// A class whose superclass is encoded beside or within it.
class Parent: Codable {
    var name: String
    var child: Parent?

    init(_ name: String, _ child: Parent?) { (self.name, self.child) = (name, child) }
}

final class SubclassValue: Parent, RandomValue {
    var age: Int
    private enum CodingKeys: CodingKey { case age }

    init(_ draw: inout RandomValues) {
        age = draw.below(100)
        super.init(draw.text(), draw.maybe { Parent($0.text(), nil) })
    }

    required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        age = try container.decode(Int.self, forKey: .age)
        try super.init(from: age % 2 == 0 ? container.superDecoder() : decoder)
    }

    override func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        if age % 2 == 0 { try super.encode(to: container.superEncoder()) } else { try super.encode(to: encoder) }
        try container.encode(age, forKey: .age)
    }

    static func draw(_ draw: inout RandomValues) -> SubclassValue { SubclassValue(&draw) }
    static func == (one: SubclassValue, other: SubclassValue) -> Bool {
        one.age == other.age && one.name == other.name && one.child?.name == other.child?.name
            && (one.child == nil) == (other.child == nil)
    }
}

/// Any JSON, decoded by trial: members with names of all kinds, and errors in between.
enum AnyJSON: RandomValue {
    case null, bool(Bool), int(Int), double(Double), text(String), list([AnyJSON]), table([String: AnyJSON])

    init(from decoder: any Decoder) throws {
        if let container = try? decoder.container(keyedBy: AnyKey.self) {
            var members: [String: AnyJSON] = [:]
            for key in container.allKeys { members[key.stringValue] = try container.decode(AnyJSON.self, forKey: key) }
            self = .table(members)
        } else if var container = try? decoder.unkeyedContainer() {
            var elements: [AnyJSON] = []
            while !container.isAtEnd {
                elements.append(try container.decodeNil() ? .null : container.decode(AnyJSON.self))
            }
            self = .list(elements)
        } else {
            let container = try decoder.singleValueContainer()
            if container.decodeNil() {
                self = .null
            } else if let bool = try? container.decode(Bool.self) {
                self = .bool(bool)
            } else if let int = try? container.decode(Int.self) {
                self = .int(int)
            } else if let double = try? container.decode(Double.self) {
                self = .double(double)
            } else {
                self = .text(try container.decode(String.self))
            }
        }
    }

    func encode(to encoder: any Encoder) throws {
        switch self {
        case .null:
            var container = encoder.singleValueContainer()
            try container.encodeNil()
        case .bool(let value): try value.encode(to: encoder)
        case .int(let value): try value.encode(to: encoder)
        case .double(let value):
            var container = encoder.singleValueContainer()
            try container.encode(value)
        case .text(let value): try value.encode(to: encoder)
        case .list(let elements):
            var container = encoder.unkeyedContainer()
            // Alternating with nested values.
            var nested: [(any Encoder, AnyJSON)] = []
            for (index, element) in elements.enumerated() {
                if index % 2 == 0 {
                    try container.encode(element)
                } else {
                    nested.append((container.superEncoder(), element))
                }
            }
            for (encoder, element) in nested.reversed() { try element.encode(to: encoder) }
        case .table(let members):
            var container = encoder.container(keyedBy: AnyKey.self)
            var nested: [(any Encoder, AnyJSON)] = []
            for (index, (name, value)) in members.sorted(by: { $0.key < $1.key }).enumerated() {
                let key = AnyKey(stringValue: name)
                if index % 3 == 0 {
                    nested.append((container.superEncoder(forKey: key), value))
                } else {
                    try container.encode(value, forKey: key)
                }
            }
            for (encoder, value) in nested { try value.encode(to: encoder) }
        }
    }

    static func draw(_ draw: inout RandomValues) -> Self {
        switch draw.below(8) {
        case 0: .null
        case 1: .bool(draw.below(2) == 0)
        case 2: .int(draw.below(1 << 60) - 1 << 59)
        case 3: .double(Double(draw.below(1 << 20)) + 0.5)
        case 4: .text(draw.text())
        case 5: .list(draw.list { self.draw(&$0) })
        default: .table(Dictionary(draw.list { ($0.text(), self.draw(&$0)) }) { $1 })
        }
    }
}

/// A value of each shape, some nested in each other.
struct Mixed: RandomValue {
    var numbers: Numbers?
    var texts: [Texts]
    var expression: Expression
    var heir: SubclassValue?
    var loose: [String: AnyJSON]
    var deep: [[Int??]]
    var rest: [Mixed]

    static func draw(_ draw: inout RandomValues) -> Self {
        draw.depth -= 1
        defer { draw.depth += 1 }
        return Mixed(
            numbers: draw.maybe { .draw(&$0) }, texts: draw.list { .draw(&$0) }, expression: .draw(&draw),
            heir: draw.maybe { .draw(&$0) }, loose: Dictionary(draw.list { ($0.text(), .draw(&$0)) }) { $1 },
            deep: draw.list { $0.list { $0.maybe { $0.below(9) } } }, rest: draw.list { .draw(&$0) })
    }
}
