import Foundation
import Testing

@testable import TrebuchetServices
@testable import TrebuchetServicesModel
@testable import TrebuchetWire

@Suite struct JSONValueTests {
    private func json(_ text: String) throws -> JSONValue {
        try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
    }

    @Test("values of all kinds decode unchanged, as JSON and as types")
    func roundTrip() throws {
        let text = #"{"a":[1,2.5,"x",true,null,{}],"b":-9223372036854775808,"c":{"d":false}}"#
        let value = try json(text)
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        #expect(String(decoding: try encoder.encode(value), as: UTF8.self) == text)
        struct Typed: Codable, Equatable {
            var name: String
            var age: Int?
            var when: Date
        }
        let typed = Typed(name: "Ada", age: nil, when: Date(timeIntervalSince1970: 1_000))
        #expect(try JSONValue(encoding: typed).decode(Typed.self) == typed)
    }

    @Test(
        "merge patches have the effect specified by RFC 7396",
        arguments: [
            (#"{"a":"b"}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
            (#"{"a":"b"}"#, #"{"b":"c"}"#, #"{"a":"b","b":"c"}"#),
            (#"{"a":"b"}"#, #"{"a":null}"#, "{}"),
            (#"{"a":"b","b":"c"}"#, #"{"a":null}"#, #"{"b":"c"}"#),
            (#"{"a":["b"]}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
            (#"{"a":"c"}"#, #"{"a":["b"]}"#, #"{"a":["b"]}"#),
            (#"{"a":{"b":"c"}}"#, #"{"a":{"b":"d","c":null}}"#, #"{"a":{"b":"d"}}"#),
            (#"{"a":[{"b":"c"}]}"#, #"{"a":[1]}"#, #"{"a":[1]}"#),
            (#"["a","b"]"#, #"["c","d"]"#, #"["c","d"]"#),
            (#"{"a":"b"}"#, #"["c"]"#, #"["c"]"#),
            (#"{"a":"foo"}"#, "null", "null"),
            (#"{"a":"foo"}"#, #""bar""#, #""bar""#),
            (#"{"e":null}"#, #"{"a":1}"#, #"{"e":null,"a":1}"#),
            ("[1,2]", #"{"a":"b","c":null}"#, #"{"a":"b"}"#),
            ("{}", #"{"a":{"bb":{"ccc":null}}}"#, #"{"a":{"bb":{}}}"#),
        ])
    func merging(before: String, patch: String, after: String) throws {
        #expect(try json(before).merging(json(patch)) == json(after))
    }

    @Test("the patch from one value to another contains the changes, and does not exist where null would be lost")
    func patches() throws {
        let before = try json(#"{"name":"Ada","pos":{"x":1,"y":2},"old":1}"#)
        let after = try json(#"{"name":"Ada","pos":{"x":1,"y":3},"new":[null]}"#)
        let patch = try #require(before.mergePatch(to: after))
        #expect(try patch == json(#"{"pos":{"y":3},"old":null,"new":[null]}"#))
        #expect(before.merging(patch) == after)
        #expect(try before.mergePatch(to: json(#"{"name":null}"#)) == nil)
        #expect(try before.mergePatch(to: json(#"{"new":{"a":{"b":null}}}"#)) == nil)
        #expect(try before.mergePatch(to: json("1")) == nil)
        #expect(before.mergePatch(to: before) == .object([:]))
    }

    @Test("every value is equal to itself, even one without a JSON form, which is written as null")
    func reflexive() {
        let value = JSONValue.object(["x": .number(.nan), "y": .array([.number(-.nan), .number(.infinity)])])
        #expect(value == value && Set([value, value]).count == 1)
        #expect(value.json == Array(#"{"x":null,"y":[null,null]}"#.utf8))
    }

    @Test(
        "values are decoded in one pass and written in the shortest form, each with the exact number of bytes",
        arguments: [
            ("[ 1 , -2.5, 1.0, 10e-1, 1e300 ]", "[1,-2.5,1,1,1e+300]"),
            (#"{"b":1,"a":{"é":[],"\u00e9x":"\n\u0001\"/"}}"#, #"{"a":{"é":[],"éx":"\n\u0001\"/"},"b":1}"#),
            (
                "[9223372036854775807,-9223372036854775808,null,true,false]",
                "[9223372036854775807,-9223372036854775808,null,true,false]"
            ),
            ("\"\"", "\"\""), ("{}", "{}"), ("-0.0", "0"), ("123456789012345678", "123456789012345678"),
        ])
    func text(read: String, written: String) throws {
        let value = try JSONValue(json: Array(read.utf8))
        #expect(String(decoding: value.json, as: UTF8.self) == written)
        #expect(value.byteCount == written.utf8.count)
        #expect(try JSONValue(json: value.json) == value)
        #expect(try json(read) == value)
    }

    @Test(
        "invalid values are an error",
        arguments: [
            #"{"a":1,"a":2}"#, "1e999", "[1", "[1]x", "", "nul",
            String(repeating: "[", count: 65) + String(repeating: "]", count: 65),
        ])
    func refused(text: String) {
        #expect(throws: (any Error).self) { try JSONValue(json: Array(text.utf8)) }
    }

    @Test("texts and names are compared by their bytes")
    func bytes() throws {
        let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
        #expect(composed == decomposed)
        #expect(JSONValue.string(composed) != .string(decomposed))
        #expect(Set([JSONValue.string(composed), .string(decomposed)]).count == 2)
        let both: JSONObject = [composed: .integer(1), decomposed: .integer(2)]
        #expect(both.count == 2)
        #expect(both[composed] == .integer(1))
        let value = JSONValue.object(both)
        #expect(try JSONValue(json: value.json) == value)
        #expect(JSONOrder.compare(.string(composed), .string(decomposed)) != 0)
    }

    @Test("forwarded JSON is neither changed nor decoded, and its depth is known")
    func encoded() throws {
        let text = #"[ {"a":"[[\"[["} , [[]] ]"#
        let encoded = try EncodedJSON(json: Array(text.utf8))
        #expect(encoded.bytes == Array(text.utf8))
        #expect(encoded.depth == 3)
        #expect(try encoded.value().depth == 3)
        #expect(try encoded.json() == Array(text.utf8))
        #expect(try EncodedJSON(json: Array(#"{"a":1,"a":2}"#.utf8)).byteCount == 13)
    }

    /// With Foundation's decoder and an attempt at each type in turn it takes half a minute.
    @Test("a megabyte of nested arrays is decoded at once", .timeLimit(.minutes(5)))
    func nested() throws {
        let row = String(repeating: "[", count: 60) + String(repeating: "]", count: 60)
        let text = Array(("[" + Array(repeating: row, count: 16_000).joined(separator: ",") + "]").utf8)
        let value = try text.withUnsafeBytes { try ValueCoder().decode(JSONValue.self, from: $0) }
        #expect(value.byteCount == text.count)
        #expect(value.depth == 61)
    }
}
