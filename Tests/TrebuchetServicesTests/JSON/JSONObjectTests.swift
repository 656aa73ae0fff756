import Bytes
import Platform
import Testing

@testable import TrebuchetServices
@testable import TrebuchetServicesModel
@testable import TrebuchetWire

@Suite("Objects as text") struct JSONObjectTests {
    private static let names = [
        "", "a", "b", "ab", "\n", "\"", "\\", "\u{1}", "é", "e\u{301}", "z", "\u{10FFFF}", "a\\b",
    ]

    private static func value(_ random: inout RandomSource, depth: Int = 0) -> JSONValue {
        switch Int.random(in: 0..<(depth < 3 ? 9 : 7), using: &random) {
        case 0: .null
        case 1: .bool(.random(using: &random))
        case 2: .integer(.random(in: -3...3, using: &random))
        case 3: .integer(.random(in: .min ... .max, using: &random))
        case 4: .number(Double.random(in: -1e3...1e3, using: &random))
        case 5: .number(1e16)
        case 6: .string(names.randomElement(using: &random)! + names.randomElement(using: &random)!)
        case 7: .array((0..<Int.random(in: 0..<3, using: &random)).map { _ in value(&random, depth: depth + 1) })
        default: .object(JSONObject(members(&random, depth: depth + 1).map { (key: $0.key.text, value: $0.value) }))
        }
    }

    private static func members(_ random: inout RandomSource, depth: Int = 0) -> [ByteText: JSONValue] {
        var members: [ByteText: JSONValue] = [:]
        for _ in 0..<Int.random(in: 0..<8, using: &random) {
            members[ByteText(names.randomElement(using: &random)!)] = value(&random, depth: depth)
        }
        return members
    }

    private static func expectSame(_ object: JSONObject, _ members: [ByteText: JSONValue]) throws {
        let sorted = members.sorted { $0.key < $1.key }
        #expect(object.count == members.count)
        #expect(object.names.map { ByteText($0) } == sorted.map(\.key))
        for name in names { #expect(object[name] == members[ByteText(name)]) }
        #expect(object.map(\.value) == sorted.map(\.value))
        // Changed in place or written at once: the text is the same, and so is that of any other spelling.
        let whole = JSONObject(sorted.map { (key: $0.key.text, value: $0.value) })
        #expect(object == whole && object.hashValue == whole.hashValue)
        #expect(try object.json() == whole.json())
        #expect(object.byteCount == (try object.json().count))
        #expect(object.depth == 1 + (members.values.map(\.depth).max() ?? 0))
        #expect(!object.isDeeper(than: object.depth) && object.isDeeper(than: object.depth - 1))
        var other = ByteBuffer()
        other.append("{ " as StaticString)
        for (index, member) in members.enumerated() {
            if index > 0 { other.append(" ,\n" as StaticString) }
            JSONString.append(member.key.text, to: &other)
            other.append(" : " as StaticString)
            member.value.write(json: &other)
        }
        other.append(" }" as StaticString)
        #expect(try JSONObject(json: other.bytes) == object)
    }

    @Test("an object has the members of a dictionary, whatever is set, removed and merged", arguments: UInt64(1)...40)
    func model(seed: UInt64) throws {
        var random = RandomSource(seed: seed)
        var members = Self.members(&random)
        var object = JSONObject(members.map { (key: $0.key.text, value: $0.value) })
        for _ in 0..<60 {
            try Self.expectSame(object, members)
            let name = Self.names.randomElement(using: &random)!
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                object[name] = nil
                members[ByteText(name)] = nil
            case 1:
                let changes = Self.members(&random)
                object = object.setting(JSONObject(changes.map { (key: $0.key.text, value: $0.value) }))
                for (name, value) in changes { members[name] = value == .null ? nil : value }
            case 2:
                let other = Self.members(&random)
                let after = JSONObject(other.map { (key: $0.key.text, value: $0.value) })
                if let patch = object.mergePatch(to: after) {
                    #expect(object.merging(patch) == after)
                    (object, members) = (object.merging(patch), other)
                }
            default:
                let value = Self.value(&random)
                object[name] = value
                members[ByteText(name)] = value
            }
        }
    }

    @Test("the order and equality of texts are those of the values", arguments: UInt64(1)...20)
    func order(seed: UInt64) {
        var random = RandomSource(seed: seed)
        let values = (0..<40).map { _ in Self.value(&random) }.map { try! JSONValue(json: $0.json) }
        for one in values {
            for other in values {
                one.json.withUnsafeBytes { left in
                    other.json.withUnsafeBytes { right in
                        #expect(JSONOrder.compare(left, right).signum() == JSONOrder.compare(one, other).signum())
                        #expect(
                            JSONOrder.comparePlaces(left, right).signum()
                                == JSONOrder.comparePlaces(one, other).signum())
                        #expect(JSONOrder.areEqual(left, right, isExact: false) == JSONOrder.areEqual(one, other))
                    }
                }
            }
        }
    }

    @Test("texts with escapes and with several texts of a number compare like their values", arguments: UInt64(1)...20)
    func texts(seed: UInt64) {
        var random = RandomSource(seed: seed)
        let parts = ["\n", "\"", "\\", "u", "0", "1", "n", "é", "\u{1}", "\u{1f}", "😀", "1e+30", ",", "]"]
        func text(_ count: Int) -> String { (0..<count).map { _ in parts.randomElement(using: &random)! }.joined() }
        let numbers: [JSONValue] = [
            .integer(1), .integer(1 << 53), .number(0x1p53), .integer(1 << 60), .number(0x1p60), .number(0x1p61),
            .number(1e30), .number(1e300), .number(1.5), .string("1e+30"), .string("1"), .null, .bool(true),
        ]
        func value(_ depth: Int) -> JSONValue {
            switch Int.random(in: 0..<(depth == 0 ? 4 : 6), using: &random) {
            case 0: .string(text(Int.random(in: 0..<4, using: &random)))
            case 1...3: numbers.randomElement(using: &random)!
            case 4: .array((0..<Int.random(in: 0..<4, using: &random)).map { _ in value(depth - 1) })
            default: .object(JSONObject([(key: text(1), value: value(depth - 1))]))
            }
        }
        let long = text(506)
        let values =
            (0..<60).map { _ in value(2) } + (0..<8).map { _ in .string(long + text(8)) }
            + [.array([.integer(1 << 53), .string("[1")]), .array([.number(0x1p53), .string("[1")])]
        for one in values {
            for other in values {
                one.json.withUnsafeBytes { left in
                    other.json.withUnsafeBytes { right in
                        #expect(JSONOrder.compare(left, right).signum() == JSONOrder.compare(one, other).signum())
                        #expect(
                            JSONOrder.comparePlaces(left, right).signum()
                                == JSONOrder.comparePlaces(one, other).signum())
                        #expect(
                            JSONOrder.areEqual(left, right, isExact: false) == JSONOrder.areEqual(one, other),
                            "\(one) \(other)")
                    }
                }
            }
        }
    }

    @Test("sort keys never contradict the order, ascending or descending", arguments: UInt64(1)...20)
    func sortKeys(seed: UInt64) {
        var random = RandomSource(seed: seed)
        let documents = (0..<40).map { number in
            Document(id: "\(number)", fields: ["id": .string("\(number)"), "v": Self.value(&random)], created: number)
        }
        for order in [
            [QueryOrder.ascending("v")], [.descending("v")], [], [.ascending("$creator")], [.descending("$created")],
        ] {
            for one in documents {
                for other in documents {
                    let (left, right) = (SortKey(one, in: order), SortKey(other, in: order))
                    if left < right { #expect(order.precedes(one, other)) }
                    if right < left { #expect(order.precedes(other, one)) }
                }
            }
        }
    }

    @Test("an object of more than 64 KiB has all of its members")
    func long() throws {
        let padding = String(repeating: "x", count: 1_000)
        var object = JSONObject((0..<200).map { (key: "k\($0)", value: .string(padding)) })
        #expect(object.byteCount > 200_000 && object.count == 200)
        object["k77"] = .integer(1)
        #expect(object["k77"] == .integer(1) && object["k199"] == .string(padding) && object["k200"] == nil)
        for number in 0..<199 { object["k\(number)"] = nil }
        #expect(object == ["k199": .string(padding)])
    }

    @Test("a document takes about the memory of its JSON, and its copies none")
    func memory() {
        #expect(MemoryLayout<Document>.size == MemoryLayout<Int>.size)
        #expect(MemoryLayout<JSONObject>.size == MemoryLayout<Int>.size)
    }
}
