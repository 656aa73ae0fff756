import Platform
import Foundation
import Testing

@testable import TrebuchetServices
@testable import TrebuchetServicesModel
@testable import TrebuchetWire

@Suite("Edge cases of JSON") struct JSONBoundsTests {
    @Test(
        "whole numbers below 2^53 are integers however they are written; above, only those written as whole numbers",
        arguments: [
            ("9007199254740991.0", .integer(9_007_199_254_740_991)),
            ("9007199254740992.0", .number(9_007_199_254_740_992)),
            ("-9007199254740991.0", .integer(-9_007_199_254_740_991)),
            ("-9007199254740992.0", .number(-9_007_199_254_740_992)),
            ("9007199254740993", .integer(9_007_199_254_740_993)),
            ("9223372036854775808", .number(9_223_372_036_854_775_808)),
            ("0.5", .number(0.5)), ("1e2", .integer(100)), ("true", .bool(true)), ("false", .bool(false)),
            ("null", .null),
        ] as [(String, JSONValue)])
    func numbers(text: String, value: JSONValue) throws {
        #expect(try JSONValue(json: Array(text.utf8)) == value)
    }

    @Test(
        "values have their size in bytes and their depth",
        arguments: [
            ("[]", 2, 1), ("[1]", 3, 1), ("[1,2]", 5, 1), ("[[],[[]]]", 9, 3), ("{}", 2, 1), (#"{"a":1}"#, 7, 1),
            (#"{"a":{"b":[]},"c":2}"#, 20, 3), (#""a\"b""#, 6, 0), ("12", 2, 0), ("-1", 2, 0), ("null", 4, 0),
            ("true", 4, 0),
            ("false", 5, 0), ("0.25", 4, 0), ("[{},[],1]", 9, 2),
        ] as [(String, Int, Int)])
    func sizes(text: String, bytes: Int, depth: Int) throws {
        let value = try JSONValue(json: Array(text.utf8))
        #expect(value.byteCount == bytes)
        #expect(value.depth == depth)
        let encoded = try EncodedJSON(json: Array(text.utf8))
        #expect(encoded.byteCount == bytes)
        #expect(encoded.depth == depth)
        #expect(EncodedJSON(value).bytes == Array(text.utf8))
    }

    @Test("an integer has as many characters as its text")
    func digits() {
        var numbers: [Int64] = [.min, .max, 0]
        for power in 0..<19 {
            let number = (0..<power).reduce(1 as Int64) { number, _ in number * 10 }
            numbers += [number - 1, number, number + 1, -number, 1 - number]
        }
        for number in numbers { #expect(number.digitCount == String(number).utf8.count, "\(number)") }
    }

    @Test(
        "brackets in texts do not count, with or without escapes",
        arguments: [
            (#"["]"]"#, 1), (#"["\"",[]]"#, 2), (#"["\\",[[]]]"#, 3), (#"{"[\"{":"\\\"["}"#, 1), (#"["[","[["]"#, 1),
        ])
    func depthOfTexts(text: String, depth: Int) throws {
        #expect(try EncodedJSON(json: Array(text.utf8)).depth == depth)
    }

    @Test("a number without a JSON form is written as null, and counts as such")
    func notFinite() {
        for number in [Double.nan, .infinity, -.infinity] {
            #expect(JSONValue.number(number).json == Array("null".utf8))
            #expect(JSONValue.number(number).byteCount == 4)
        }
    }

    @Test("values differ when their kind does, and equal ones have equal hashes")
    func equality() throws {
        let values = try [
            "null", "true", "false", "1", "2", "0.5", "\"a\"", "\"b\"", "[]", "[1]", "{}", #"{"a":1}"#, #"{"a":2}"#,
        ]
        .map { try JSONValue(json: Array($0.utf8)) }
        for (index, one) in values.enumerated() {
            for (other, another) in values.enumerated() { #expect((one == another) == (index == other)) }
        }
        #expect(Set(values).count == values.count)
        #expect(Set(values + values).count == values.count)
        // Empty values may have equal hashes; these differ except in one of some billion cases.
        let telling = values.filter { ![JSONValue.null, .array([]), .object([:])].contains($0) }
        #expect(Set(telling.map(\.hashValue)).count == telling.count)
    }

    @Test("objects are read, changed and listed by the bytes of their names")
    func objects() throws {
        var object: JSONObject = ["b": .integer(1), "a": .integer(2), "b": .integer(3)]
        #expect(object.count == 2 && !object.isEmpty)
        #expect(object.sorted.map(\.name) == ["a", "b"])
        #expect(object["b"] == .integer(3))
        #expect(Set(object.names) == ["a", "b"])
        #expect(Set(object.map(\.name)) == ["a", "b"])
        #expect(Set(object.values) == [.integer(2), .integer(3)])
        #expect(object.keeping { $0 == "a" || $1 == .integer(9) } == ["a": .integer(2)])
        object["b"] = nil
        #expect(object.count == 1)
        #expect(JSONObject(["x": JSONValue.null]) == ["x": .null])
        #expect(JSONObject().isEmpty)
        let data = try JSONEncoder().encode(object)
        #expect(String(decoding: data, as: UTF8.self) == #"{"a":2}"#)
        #expect(try JSONDecoder().decode(JSONObject.self, from: data) == object)
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(JSONObject.self, from: Data("[1]".utf8)) }
    }

    @Test("only a text is a text, and only null is null")
    func texts() throws {
        #expect(try JSONValue.string("a").textOrNull == "a")
        #expect(try JSONValue.null.textOrNull == nil)
        for value in [JSONValue.bool(true), .integer(1), .number(0.5), .array([]), .object([:])] {
            #expect(throws: (any Error).self) { try value.textOrNull }
        }
    }

    @Test("texts are ordered by their bytes")
    func byteTexts() {
        let texts = ["", "A", "a", "aa", "b", "\u{e9}", "\u{1F600}"]
        for (index, one) in texts.enumerated() {
            for (other, another) in texts.enumerated() {
                #expect((ByteText(one) < ByteText(another)) == (index < other))
                #expect((ByteText(one) == ByteText(another)) == (index == other))
            }
        }
        #expect(Set(texts.map { ByteText($0) }).count == texts.count)
    }

    @Test(
        "there is no merge patch where a null would be lost, but one for a null within an array",
        arguments: [
            (#"{"a":1}"#, #"{"a":1,"b":[null]}"#, #"{"b":[null]}"#), (#"{"a":1}"#, #"{"a":null}"#, nil),
            (#"{"a":null}"#, #"{"a":null,"b":1}"#, #"{"b":1}"#), (#"{"a":{"b":1}}"#, #"{"a":{"b":null}}"#, nil),
            (#"{"a":1}"#, #"{"a":{"b":{"c":null}}}"#, nil), (#"{"a":{"b":1}}"#, #"{"a":{}}"#, #"{"a":{"b":null}}"#),
            (#"{"a":{"b":1}}"#, #"{"a":2}"#, #"{"a":2}"#), ("[1]", "[2]", nil), (#"{}"#, "[2]", nil), ("1", "{}", nil),
        ] as [(String, String, String?)])
    func patches(before: String, after: String, patch: String?) throws {
        let (one, other) = (try JSONValue(json: Array(before.utf8)), try JSONValue(json: Array(after.utf8)))
        let made = one.mergePatch(to: other)
        #expect(made.map { String(decoding: $0.json, as: UTF8.self) } == patch)
        if let made { #expect(one.merging(made) == other) }
    }

    @Test(
        "an event is decoded despite unknown members, and refused when a member is missing",
        arguments: [
            (#"{"number":1,"topic":"t","peer":"p","payload":[1],"later":{}}"#, true),
            (#"{"topic":"t","peer":"p","payload":1}"#, false), (#"{"number":1,"peer":"p","payload":1}"#, false),
            (#"{"number":1,"topic":"t","payload":1}"#, false), (#"{"number":1,"topic":"t","peer":"p"}"#, false),
            (#"{"number":"1","topic":"t","peer":"p","payload":1}"#, false),
            (#"{"number":1,"topic":null,"peer":"p","payload":1}"#, false),
        ])
    func events(text: String, isGood: Bool) throws {
        let event = try? RoomEvent(json: Array(text.utf8))
        #expect((event != nil) == isGood)
        if let event {
            #expect(event == RoomEvent(number: 1, topic: "t", peer: "p", payload: EncodedJSON(.array([.integer(1)]))))
            #expect(try RoomEvent(json: event.json()) == event)
        }
    }
}
