import Testing

@testable import TrebuchetServices
@testable import TrebuchetServicesModel
@testable import TrebuchetWire

@Suite("JSON values that are stored as text") struct StoredJSONTests {
    private func stored(_ text: String) throws -> StoredJSON { try StoredJSON(json: Array(text.utf8)) }

    private func text(_ value: StoredJSON) throws -> String { String(decoding: try value.json(), as: UTF8.self) }

    @Test(
        "a value of any kind has the canonical text of its JSONValue, and equals what that makes",
        arguments: [
            (#"[1, 2.0, {"b":1,"a":[ ]}]"#, #"[1,2,{"a":[],"b":1}]"#),
            (#"{"b":[1.50],"a":null}"#, #"{"a":null,"b":[1.5]}"#),
            ("  7 ", "7"), ("-0", "0"), (#""\u0041\n""#, #""A\n""#), ("null", "null"), ("true", "true"), ("[]", "[]"),
            ("{}", "{}"), ("1e15", "1000000000000000"), ("[[[[1]]]]", "[[[[1]]]]"),
        ])
    func canonical(json: String, canonical: String) throws {
        let value = try stored(json)
        #expect(try text(value) == canonical)
        #expect(value.byteCount == canonical.utf8.count)
        let decoded = try JSONValue(json: Array(json.utf8))
        #expect(value.value == decoded && value == StoredJSON(decoded))
        #expect(String(decoding: decoded.json, as: UTF8.self) == canonical)
    }

    @Test("an array is stored as its text and not as a tree, and copies share it")
    func sharedText() throws {
        let array = try stored("[" + Array(repeating: "1", count: 30_000).joined(separator: ",") + "]")
        let copy = array
        let places = [array, copy, array].map { $0.withText { $0.baseAddress } }
        #expect(places[0] != nil && Set(places).count == 1, "no call encodes the array")
        #expect(array.byteCount == 60_001 && MemoryLayout<StoredJSON>.size <= 16)
    }

    @Test("text that is no value is refused", arguments: [#"[{"a":1,"a":2}]"#, "[1e999]", "[1", "", "[1] 2"])
    func refused(json: String) { #expect(throws: (any Error).self) { try stored(json) } }

    @Test(
        "a merge patch changes members of objects and replaces other values",
        arguments: [
            ("[1]", #"{"a":1,"b":null}"#, #"{"a":1}"#),
            (#"{"a":1,"b":2}"#, #"{"b":null,"c":[3]}"#, #"{"a":1,"c":[3]}"#),
            (#"{"a":1}"#, "[2]", "[2]"), ("1", "null", "null"),
        ])
    func merging(value: String, patch: String, result: String) throws {
        #expect(try text(try stored(value).merging(try stored(patch))) == result)
    }

    @Test("a value is set at a path within objects only")
    func setting() throws {
        let value = try stored(#"{"a":{"b":1}}"#)
        #expect(try value.setting(try stored("[2]"), at: ["a", "b"]).map { try text($0) } == #"{"a":{"b":[2]}}"#)
        #expect(try value.setting(nil, at: ["a", "b"]).map { try text($0) } == #"{"a":{}}"#)
        #expect(try value.setting(try stored("3"), at: []).map { try text($0) } == "3")
        #expect(value.setting(nil, at: []) == nil && value.setting(nil, at: ["x"]) == nil)
        #expect(try stored("[1]").setting(value, at: ["0"]) == nil)
    }
}
