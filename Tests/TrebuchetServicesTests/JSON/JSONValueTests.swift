import Foundation
import Testing

@testable import TrebuchetServices

@Suite struct JSONValueTests {
    private func json(_ text: String) throws -> JSONValue {
        try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
    }

    @Test("values of all kinds come back as they were, as JSON and as types")
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
        "merge patches do what RFC 7396 says",
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

    @Test("the patch from one value to another has what changes, and is none where null would be lost")
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
}
