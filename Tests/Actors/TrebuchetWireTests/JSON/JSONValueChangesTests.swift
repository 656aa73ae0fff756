import Foundation
import Platform
import Testing
import TrebuchetWire

/// The JSON that migrations change.
@Suite struct JSONValueChangesTests {
    @Test(
        "JSON is written as it was read: numbers digit by digit, names by their bytes",
        arguments: [
            "null", "true", "false", "0", "-0", "1e400", "0.10", "123456789012345678901234567890", #""a\"b""#, "[]",
            "{}",
            #"[1,[2,{"a":null}]]"#, #"{"a":{"b":[]},"c":"ü"}"#, "{\"e\u{301}\":1,\"\u{e9}\":2}",
        ])
    func text(text: String) throws { #expect(try JSONValue(text: text).text.utf8.elementsEqual(text.utf8)) }

    @Test("white space is removed, and members are sorted by name")
    func order() throws {
        #expect(try JSONValue(text: " { \"b\" : 1 ,\n\"a\":[ ] } ").text == #"{"a":[],"b":1}"#)
        #expect(try JSONValue(text: #"{"a":1,"a":2}"#).text == #"{"a":2}"#)
    }

    @Test("invalid JSON is an error", arguments: ["", "{", "[1,]", "01", "nul", "{}x", #"{"a"}"#, "v2:{}"])
    func noJSON(text: String) { #expect(throws: (any Error).self) { try JSONValue(text: text) } }

    @Test("values nest up to 64 levels")
    func depth() throws {
        func nested(_ count: Int) -> String {
            String(repeating: "[", count: count) + String(repeating: "]", count: count)
        }
        #expect(try JSONValue(text: nested(64)).text == nested(64))
        #expect(throws: (any Error).self) { try JSONValue(text: nested(65)) }
        #expect(throws: (any Error).self) { try JSONValue(text: String(repeating: #"{"a":"#, count: 65)) }
    }

    @Test("members are read, set, removed and changed in place")
    func members() throws {
        var json: JSONValue = ["a": 1, "b": ["c": .null]]
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

    @Test(
        "members that are set and removed in place make the same object as one that is built",
        arguments: 1...20 as ClosedRange<UInt64>)
    func edits(seed: UInt64) throws {
        var random = RandomSource(seed: seed)
        // Some objects grow beyond an index of 16 bits.
        let size = seed % 4 == 0 ? 4_000 : 12
        let names = ["", "a", "b\"", "é", "e\u{301}", "long name"] + (0..<20).map { "m\($0)" }
        var (json, members): (JSONValue, [ByteText: JSONValue]) = ([:], [:])
        var shared: [(json: JSONValue, text: String)] = []
        for _ in 0..<300 {
            let name = names.randomElement(using: &random) ?? ""
            let value: JSONValue? =
                switch Int.random(in: 0..<6, using: &random) {
                case 0, 1: nil
                case 2: .object(["x": [.integer(Int64.random(in: 0..<9, using: &random))]])
                case 3: .number(1e300)
                default: .string(String(repeating: "x", count: Int.random(in: 0..<size, using: &random)))
                }
            json[name] = value
            members[ByteText(name)] = value
            let built = JSONObject(members.map { (key: $0.key.text, value: $0.value) })
            let object = try #require(json.members)
            #expect(object == built && object.names == built.names)
            #expect(object.hasWideNumbers || !built.hasWideNumbers)
            for (name, value) in members { #expect(json[name.text] == value) }
            #expect(json.depth >= JSONValue.object(built).depth)
            if Int.random(in: 0..<20, using: &random) == 0 { shared.append((json, json.text)) }
        }
        #expect(shared.allSatisfy { $0.json.text == $0.text })
    }

    @Test("setting a member of an object that nothing else uses does not copy it")
    func inPlace() {
        func address(_ json: JSONValue) -> UInt? {
            json.members?.buffer.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
        }
        var json = JSONValue.object(JSONObject((0..<1_000).map { (key: "\($0)", value: .integer(1)) }))
        let before = address(json)
        for number in 0..<1_000 { json["\(number)"] = .integer(2) }
        #expect(address(json) == before)
        #expect(json.members?.values.allSatisfy { $0 == .integer(2) } == true)
    }

    @Test("elements are read, set, removed and added")
    func elements() throws {
        var json = try JSONValue(text: "[1,2,3]")
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
            var json = try JSONValue(text: text)
            json.mutateEach { $0["a"] = JSONValue(($0["a"]?.int ?? 0) + 10) }
            #expect(json.text == text.replacing(":1}", with: ":11}").replacing(":2}", with: ":12}"))
            let before = json
            #expect(throws: Stop.self) { try json.mutateEach { _ in throw Stop() } }
            #expect(json == before)
        }
        var number: JSONValue = 5
        number.mutateEach { $0 = .null }
        #expect(number == 5)
    }

    @Test("a member set to nil is removed from the element of an array, and an element from a member")
    func nestedRemoval() throws {
        var json = try JSONValue(text: #"{"a":[{"b":1,"c":0.10},[1,2]]}"#)
        json["a"]?[0]?["b"] = nil
        json["a"]?[1]?[0] = nil
        json["a"]?[7]?["b"] = 1
        json["x"]?["y"] = 1
        #expect(json.text == #"{"a":[{"c":0.10},[2]]}"#)
        json["a"]?.elements = nil
        json["a"]?.members = nil
        #expect(json["a"]?.elements?.count == 2)
    }

    @Test("a number that is moved or stays beside a change keeps its digits")
    func digits() throws {
        var json = try JSONValue(text: #"{"a":18446744073709551615,"b":[1.0,-0,1e2,0.1],"c":1}"#)
        json["d"] = json["a"]
        json["a"] = nil
        json["b"]?.elements?.append(2)
        json["c"] = 0.5
        #expect(json.text == #"{"b":[1.0,-0,1e2,0.1,2],"c":0.5,"d":18446744073709551615}"#)
        #expect(json["b"]?[3] == 0.1 && json["b"]?[0] != 1 && json["b"]?[0]?.double == 1 && json["b"]?[0]?.int == nil)
        #expect(try json["d"]?.decode(UInt64.self) == .max)
    }

    @Test(
        "a double is the same value however its JSON was read",
        arguments: [
            0.5, -0.1, 1e-4, 9.5e-5, 1e-5, 123_456.789, 0.30000000000000004, 1e15 + 0.5, 1e16, 1e22,
            .leastNonzeroMagnitude, 1.7e308,
            .pi, 1e300, 0x1p53, -0x1p60,
        ])
    func doubles(number: Double) throws {
        let text = JSONValue(number).text
        #expect(try JSONValue(text: text) == JSONValue(number))
        #expect(try JSONValue(text: text).text == text)
        #expect(try JSONValue(encoding: number) == JSONValue(number))
    }

    @Test("random doubles are the same values however their JSON was read", arguments: UInt64(1)...10)
    func randomDoubles(seed: UInt64) throws {
        var random = RandomSource(seed: seed)
        for _ in 0..<2_000 {
            let scale = [1e-6, 1e-3, 1, 1e3, 1e9].randomElement(using: &random)!
            let short = (Double.random(in: -1e3...1e3, using: &random) * scale * 1e4).rounded() / 1e4
            let bits = Double(bitPattern: .random(in: 0...UInt64.max, using: &random))
            for number in [short, bits] where number.isFinite {
                #expect(try JSONValue(text: JSONValue(number).text) == JSONValue(number))
            }
        }
    }

    @Test("Swift values are read and created")
    func values() throws {
        let json = try JSONValue(text: #"{"i":12,"d":0.5,"e":1e400,"s":"é","b":true}"#)
        #expect(json["i"]?.int == 12 && json["i"]?.double == 12 && json["i"]?.string == nil)
        #expect(json["d"]?.int == nil && json["d"]?.double == 0.5)
        #expect(json["e"]?.double == nil)
        #expect(json["s"]?.string == "é" && json["b"]?.bool == true && json["b"]?.int == nil)
        #expect(json["s"] != "e\u{301}", "texts are compared by bytes")
        #expect(JSONValue("a") == "a" && JSONValue(3) == 3 && JSONValue(true) == true)
        #expect(JSONValue(1.0) == 1 && JSONValue(0.5) == 0.5)
        for text in ["01", ".5", "nan", "", "1 ", " 1", "\"1\"", "[1]", "-", "1."] {
            #expect(JSONValue.Number(text) == nil)
        }
        for text in ["0", "-1", "1.50", "1e400"] { #expect(JSONValue.Number(text)?.text == text) }
    }

    @Test("Swift types are decoded from JSON and encoded into it")
    func coding() throws {
        struct Point: Codable, Equatable { var x = 1, y = 2.5 }
        let json = try JSONValue(encoding: Point())
        #expect(json.text == #"{"x":1,"y":2.5}"#)
        #expect(try json.decode(Point.self) == Point())
        #expect(throws: (any Error).self) { try JSONValue(text: #"{"x":1}"#).decode(Point.self) }
        // Only numbers that would lose their value are kept as they are written.
        let numbers = try JSONValue(encoding: Numbers())
        #expect(
            numbers["wide"]?.text == "18446744073709551615" && numbers["single"] == 16_777_216 && numbers["zero"] == 0)
        #expect(try numbers.decode(Numbers.self) == Numbers())
    }

    private struct Numbers: Codable, Equatable { var wide = UInt64.max, single: Float = 0x1p24, zero = -0.0 }

    @Test("a number as it is written is encoded by other coders as the nearest one, unless it has none")
    func otherCoders() throws {
        let json = try JSONValue(text: "[18446744073709551615,0.10,-0]")
        let other = String(decoding: try JSONEncoder().encode(json), as: UTF8.self)
        #expect(other.hasPrefix("[18446744073709551615,0.1,"))
        #expect(throws: (any Error).self) { try JSONEncoder().encode([JSONValue(text: "1e400")]) }
        #expect(try Set([JSONValue(text: "0.10"), JSONValue(text: "0.1")]).count == 2)
    }
}
