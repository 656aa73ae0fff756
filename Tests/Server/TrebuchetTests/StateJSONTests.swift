import Testing
import Trebuchet

/// The JSON that migrations change.
@Suite struct StateJSONTests {
    @Test(
        "JSON is written as it was read: numbers digit by digit, names by their bytes",
        arguments: [
            "null", "true", "false", "0", "-0", "1e400", "0.10", "123456789012345678901234567890", #""a\"b""#, "[]",
            "{}",
            #"[1,[2,{"a":null}]]"#, #"{"a":{"b":[]},"c":"ü"}"#, "{\"e\u{301}\":1,\"\u{e9}\":2}",
        ])
    func text(text: String) throws { #expect(try StateJSON(text: text).text.utf8.elementsEqual(text.utf8)) }

    @Test("white space is removed, and members are sorted by name")
    func order() throws {
        #expect(try StateJSON(text: " { \"b\" : 1 ,\n\"a\":[ ] } ").text == #"{"a":[],"b":1}"#)
        #expect(try StateJSON(text: #"{"a":1,"a":2}"#).text == #"{"a":2}"#)
    }

    @Test("invalid JSON is an error", arguments: ["", "{", "[1,]", "01", "nul", "{}x", #"{"a"}"#, "v2:{}"])
    func noJSON(text: String) { #expect(throws: (any Error).self) { try StateJSON(text: text) } }

    @Test("values nest up to 64 levels")
    func depth() throws {
        func nested(_ count: Int) -> String {
            String(repeating: "[", count: count) + String(repeating: "]", count: count)
        }
        #expect(try StateJSON(text: nested(64)).text == nested(64))
        #expect(throws: (any Error).self) { try StateJSON(text: nested(65)) }
        #expect(throws: (any Error).self) { try StateJSON(text: String(repeating: #"{"a":"#, count: 65)) }
    }

    @Test("members are read, set, removed and changed in place")
    func members() throws {
        var json: StateJSON = ["a": 1, "b": ["c": .null]]
        #expect(json["a"] == 1)
        #expect(json["x"] == nil)
        #expect(json["a"]?["x"] == nil)
        json["a"] = nil
        json["x"] = "new"
        json["b"]?["c"] = [1.5, true]
        json["b"]?["c"]?[0] = -2
        #expect(json.text == #"{"b":{"c":[-2,true]},"x":"new"}"#)
        json["x"] = .null
        #expect(json.text == #"{"b":{"c":[-2,true]},"x":null}"#)
        json["x"]?["y"] = 1
        #expect(json["x"] == .null, "a value that is not an object stays")
        json["x"] = [:]
        json["x"]?["y"] = 1
        #expect(json["x"]?.text == #"{"y":1}"#)
        json["é"] = 1
        #expect(json["e\u{301}"] == nil)
        #expect(json.members?.names == ["b", "x", "é"])
    }

    @Test("elements are read, set, removed and added")
    func elements() throws {
        var json = try StateJSON(text: "[1,2,3]")
        #expect(json[1] == 2)
        #expect(json[3] == nil && json[-1] == nil && json["0"] == nil)
        json[0] = nil
        json[5] = 9
        json[1] = "x"
        #expect(json.text == #"[2,"x"]"#)
        json.elements?.append(.bool(false))
        json.elements?.removeFirst()
        #expect(json.text == #"["x",false]"#)
        #expect(json.members == nil)
        json.members?["a"] = 1
        #expect(json.text == #"["x",false]"#)
        json.members = ["a": 1]
        #expect(json.text == #"{"a":1}"#)
        #expect(json.elements == nil)
        json.elements = [1]
        #expect(json.text == "[1]")
    }

    @Test("each element and each member is changed, and a thrown error leaves the others unchanged")
    func each() throws {
        struct Stop: Error {}
        for text in [#"[{"a":1},{"a":2}]"#, #"{"x":{"a":1},"y":{"a":2}}"#] {
            var json = try StateJSON(text: text)
            json.mutateEach { $0["a"] = StateJSON(($0["a"]?.int ?? 0) + 10) }
            #expect(json.text == text.replacing(":1}", with: ":11}").replacing(":2}", with: ":12}"))
            let before = json
            #expect(throws: Stop.self) { try json.mutateEach { _ in throw Stop() } }
            #expect(json == before)
        }
        var number: StateJSON = 5
        number.mutateEach { $0 = .null }
        #expect(number == 5)
    }

    @Test("Swift values are read and created")
    func values() throws {
        let json = try StateJSON(text: #"{"i":12,"d":0.5,"e":1e400,"s":"é","b":true}"#)
        #expect(json["i"]?.int == 12 && json["i"]?.double == 12 && json["i"]?.string == nil)
        #expect(json["d"]?.int == nil && json["d"]?.double == 0.5)
        #expect(json["e"]?.double == nil)
        #expect(json["s"]?.string == "é" && json["b"]?.bool == true && json["b"]?.int == nil)
        #expect(json["s"] != "e\u{301}", "texts are compared by bytes")
        #expect(StateJSON("a") == "a" && StateJSON(3) == 3 && StateJSON(true) == true)
        #expect(StateJSON.Number(0.1)?.text == "0.1")
        #expect(StateJSON.Number(Double.infinity) == nil)
        for text in ["01", ".5", "nan", "", "1 ", " 1", "\"1\"", "[1]", "-", "1."] {
            #expect(StateJSON.Number(text) == nil)
        }
        for text in ["0", "-1", "1.50", "1e400"] { #expect(StateJSON.Number(text)?.text == text) }
    }

    @Test("Swift types are decoded from JSON and encoded into it")
    func coding() throws {
        struct Point: Codable, Equatable { var x = 1, y = 2.5 }
        let json = try StateJSON(encoding: Point())
        #expect(json.text == #"{"x":1,"y":2.5}"#)
        #expect(try json.decode(Point.self) == Point())
        #expect(throws: (any Error).self) { try StateJSON(text: #"{"x":1}"#).decode(Point.self) }
    }
}
