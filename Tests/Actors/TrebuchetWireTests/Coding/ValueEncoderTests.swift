import Foundation
import Testing

@testable import TrebuchetWire

@Suite("Encoding values") struct ValueEncoderTests {
    /// Expects the given output, which is also Foundation's JSON.
    private func expect(
        _ value: some Encodable, _ text: String, isFoundations: Bool = true,
        _ location: SourceLocation = #_sourceLocation
    ) throws {
        #expect(try written(value) == text, sourceLocation: location)
        guard isFoundations else { return }
        let theirs = String(decoding: try Reference.encoder().encode(value), as: UTF8.self)
        #expect(isSameJSON(text, theirs), "Foundation: \(theirs)", sourceLocation: location)
    }

    private struct Order: Codable, Equatable {
        struct Line: Codable, Equatable {
            var sku: String
            var quantity: Int
            var price: Double
        }
        var id: UUID
        var customer: String
        var placed: Date
        var lines: [Line]
        var note: String?
        var express: Bool
    }

    @Test("members are encoded in their order, and nil is omitted")
    func order() throws {
        let order = Order(
            id: UUID(uuidString: "0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0")!, customer: "Ada \"L\"\n",
            placed: Date(timeIntervalSince1970: 1.5), lines: [.init(sku: "a/b", quantity: 2, price: 0.1)], express: true
        )
        try expect(
            order,
            #"{"id":"0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0","customer":"Ada \"L\"\n","placed":"1970-01-01T00:00:01.500Z","#
                + #""lines":[{"sku":"a/b","quantity":2,"price":0.1}],"express":true}"#)
    }

    @Test("values of each known type have Foundation's form, alone and within others")
    func types() throws {
        try expect([Int8.min, .max], "[-128,127]")
        try expect([UInt8.min, .max], "[0,255]")
        try expect([Int16.min, .max], "[-32768,32767]")
        try expect([UInt16.max], "[65535]")
        try expect([Int32.min, .max], "[-2147483648,2147483647]")
        try expect([UInt32.max], "[4294967295]")
        try expect([Int64.min, .max], "[-9223372036854775808,9223372036854775807]")
        try expect([UInt64.max], "[18446744073709551615]")
        try expect([UInt.max], "[18446744073709551615]")
        try expect([Int128.min], "[-170141183460469231731687303715884105728]")
        try expect([UInt128.max], "[340282366920938463463374607431768211455]")
        try expect(
            [1, -0.0, 0.1, 1e300, .leastNonzeroMagnitude, 123_456_789_012_345_680],
            "[1,-0.0,0.1,1e+300,5e-324,1.2345678901234568e+17]")
        try expect([Float(0.1), 3, 1e20, -0.0, 16_777_216], "[0.1,3,1e+20,-0.0,16777216.0]")
        try expect([true, false], "[true,false]")
        try expect([Int?.none, 1], "[null,1]")
        try expect(Int?.none, "null")
        try expect(Optional(Optional(1)), "1")
        try expect([URL(string: "https://a.b/c?d=e#f")!], #"["https://a.b/c?d=e#f"]"#)
        try expect([Data([0, 255, 62])], #"["AP8+"]"#)
        try expect([Decimal(string: "12345678901234567890.123456789")!], "[12345678901234567890.123456789]")
        try expect(["a": [1]], #"{"a":[1]}"#)
        try expect([7: "a"], #"{"7":"a"}"#)
        try expect([Optional(true): 1], "[true,1]")
        try expect(
            "a\u{1}\u{8}\u{c}\u{7f}\u{2028}é\u{1F600}\\/", "\"a\\u0001\\u0008\\u000c\u{7f}\u{2028}é\u{1F600}\\\\/\"")
        try expect([[Int]](), "[]")
        try expect([String: Int](), "{}")
    }

    private enum Suit: String, Codable, CodingKeyRepresentable { case hearts, spades }
    private enum Shape: Codable {
        case point
        case circle(radius: Double)
        case named(String, sides: [Int])
    }
    private class Animal: Codable {
        var name = "Rex"
        init() {}
    }
    private final class Dog: Animal {
        var age = 3
        private enum CodingKeys: CodingKey { case age }
        override init() { super.init() }
        required init(from decoder: any Decoder) throws { try super.init(from: decoder) }
        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(age, forKey: .age)
            try super.encode(to: container.superEncoder())
        }
    }
    private final class Cat: Animal {
        override func encode(to encoder: any Encoder) throws {
            try super.encode(to: encoder)
            var container = encoder.container(keyedBy: AnyKey.self)
            try container.encode(9, forKey: "lives")
        }
    }

    @Test("enumerations, dictionary keys and classes are encoded according to the language")
    func shapes() throws {
        try expect([Suit.hearts: 1], #"{"hearts":1}"#)
        try expect([Suit.spades], #"["spades"]"#)
        try expect(
            [Shape.point, .circle(radius: 2), .named("a", sides: [1, 2])],
            #"[{"point":{}},{"circle":{"radius":2}},{"named":{"_0":"a","sides":[1,2]}}]"#)
        try expect(Dog(), #"{"age":3,"super":{"name":"Rex"}}"#)
        try expect(Cat(), #"{"name":"Rex","lives":9}"#)
    }

    @Test("a value that encodes nothing is an empty object, and no value at all is rejected")
    func nothing() throws {
        let nothing = Encoded { _ in }
        try expect([nothing], "[{}]")
        try expect(["a": nothing], #"{"a":{}}"#)
        #expect(throws: EncodingError.self) { try written(nothing) }
        try expect(
            Encoded {
                var container = $0.container(keyedBy: AnyKey.self)
                _ = container.superEncoder()
                _ = container.nestedContainer(keyedBy: AnyKey.self, forKey: "a")
                _ = container.nestedUnkeyedContainer(forKey: "b")
                try container.encodeNil(forKey: "c")
            }, #"{"super":{},"a":{},"b":[],"c":null}"#)
    }

    @Test("a container and its nested ones can be written alternately")
    func byTurns() throws {
        try expect(
            Encoded {
                var outer = $0.container(keyedBy: AnyKey.self)
                var one = outer.nestedContainer(keyedBy: AnyKey.self, forKey: "one")
                try one.encode(1, forKey: "a")
                var two = outer.nestedUnkeyedContainer(forKey: "two")
                try one.encode([2, 3], forKey: "b")
                let parent = outer.superEncoder()
                try two.encode("x")
                try outer.encode(true, forKey: "last")
                var inner = two.nestedContainer(keyedBy: AnyKey.self)
                try two.encode("y")
                try inner.encode(4, forKey: "c")
                var single = parent.singleValueContainer()
                try single.encode([5])
                #expect(two.count == 3)
                #expect(inner.codingPath.map(\.stringValue) == ["two", "Index 1"])
            }, #"{"one":{"a":1,"b":[2,3]},"two":["x",{"c":4},"y"],"super":[5],"last":true}"#)
        try expect(
            Encoded {
                var outer = $0.unkeyedContainer()
                var (one, two) = (outer.nestedUnkeyedContainer(), outer.nestedUnkeyedContainer())
                for number in 0..<3 {
                    try one.encode(number)
                    try two.encode(-number)
                }
                try outer.encode("end")
            }, #"[[0,1,2],[0,-1,-2],"end"]"#)
    }

    @Test("a write to a container during the encoding of one of its values is an error, and is not dropped silently")
    func within() {
        // Two such members, as a single one would not show the effect on the following one.
        let value = Encoded {
            let outer = $0.container(keyedBy: AnyKey.self)
            var (written, other) = (outer, outer)
            for name in ["a", "b"] {
                let inner = Encoded {
                    try other.encode(1, forKey: AnyKey(stringValue: "of \(name)"))
                    var container = $0.singleValueContainer()
                    try container.encode(0)
                }
                try written.encode(inner, forKey: AnyKey(stringValue: name))
            }
        }
        #expect(throws: EncodingError.self) { try written(value) }
    }

    @Test("the last value of a repeatedly encoded member is used, in small and large objects")
    func twice() throws {
        try expect(
            Encoded {
                var container = $0.container(keyedBy: AnyKey.self)
                try container.encode([1], forKey: "a")
                try container.encode(["a": 1], forKey: "b")
                try container.encode(3, forKey: "a")
            }, #"{"b":{"a":1},"a":3}"#)
        try expect(
            Encoded {
                var container = $0.container(keyedBy: AnyKey.self)
                for number in 0..<200 { try container.encode(number, forKey: AnyKey(intValue: number % 100)) }
            }, "{" + (100..<200).map { "\"\($0 - 100)\":\($0)" }.joined(separator: ",") + "}")
    }

    @Test("a throwing member leaves no output, and the rest is encoded")
    func caught() throws {
        try expect(
            Encoded {
                var container = $0.container(keyedBy: AnyKey.self)
                try? container.encode(Double.nan, forKey: "a")
                try? container.encode(["x": [1, Double.infinity]], forKey: "b")
                try container.encode(1, forKey: "c")
                var array = container.nestedUnkeyedContainer(forKey: "d")
                try? array.encode(Float.nan)
                try array.encode(2)
                var single = container.superEncoder().singleValueContainer()
                try? single.encode([Double.nan])
                try single.encode("s")
            }, #"{"c":1,"d":[2],"super":"s"}"#, isFoundations: false)
    }

    private struct Tree: Encodable { var children: [[String: Double]] }

    @Test("an error has its coding path")
    func path() throws {
        let error = #expect(throws: EncodingError.self) {
            try written(Tree(children: [[:], ["a\"b": .nan]]))
        }
        guard case .invalidValue(let value, let context)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect((value as? Double)?.isNaN == true)
        #expect(context.codingPath.map(\.stringValue) == ["children", "Index 1", "a\"b"])
        #expect(throws: EncodingError.self) { try written([Decimal.nan]) }
        #expect(throws: EncodingError.self) { try written([Date(timeIntervalSince1970: .nan)]) }
    }

    private final class Link: Encodable {
        var next: Link?
        init(_ next: Link?) { self.next = next }
    }
    private struct Endless: Encodable {
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(self)
        }
    }

    @Test("nesting over the limit, or without end, is an error")
    func depth() throws {
        func chain(_ count: Int) -> Link { (1..<count).reduce(Link(nil)) { link, _ in Link(link) } }
        #expect(try written(chain(512)).utf8.count == 511 * 9 + 2)
        #expect(throws: EncodingError.self) { try written(chain(513)) }
        let ring = Link(nil)
        ring.next = ring
        defer { ring.next = nil }
        let coder = ValueCoder()
        #expect(throws: EncodingError.self) { try written(ring, coder) }
        #expect(throws: EncodingError.self) { try written(Endless(), coder) }
        #expect(throws: EncodingError.self) {
            try written(
                Encoded {
                    var container = $0.unkeyedContainer()
                    for _ in 0..<10_000 { container = container.nestedUnkeyedContainer() }
                }, coder)
        }
        #expect(try written([1], coder) == "[1]", "the output is unchanged")
    }

    @Test("two values in one place are an error, and late writes are dropped")
    func misuse() throws {
        #expect(throws: EncodingError.self) {
            try written(
                Encoded {
                    var single = $0.singleValueContainer()
                    try single.encode(1)
                    try single.encode(2)
                })
        }
        #expect(throws: EncodingError.self) {
            try written(
                Encoded {
                    var array = $0.unkeyedContainer()
                    var object = $0.container(keyedBy: AnyKey.self)
                    try array.encode(1)
                    try object.encode(1, forKey: "a")
                })
        }
        var late: (any UnkeyedEncodingContainer)?
        let coder = ValueCoder()
        #expect(try written([Encoded { late = $0.unkeyedContainer() }], coder) == "[[]]")
        try late?.encode(1)
        #expect(try written([2], coder) == "[2]")
    }

    @Test("a value can encode another one during its encoding, and has the user info")
    func reentrant() throws {
        let coder = ValueCoder(userInfo: [.body: "here"])
        let value = Encoded {
            var container = $0.unkeyedContainer()
            try container.encode($0.userInfo[.body] as? String)
            try container.encode(written(["inner"], coder))
        }
        #expect(try written(value, coder) == #"["here","[\"inner\"]"]"#)
    }
}
