import Foundation
import Testing

@testable import TrebuchetWire

@Suite("Decoding values") struct ValueDecoderTests {
    /// The results of a body for a text with our decoder and with Foundation's.
    private func results(_ text: String, _ body: @escaping Decoded.Body) -> (ours: String, theirs: String) {
        func result(_ work: () throws -> Decoded) -> String {
            do { return try work().text } catch { return "refused" }
        }
        return (
            result { try read(Decoded.self, text, ValueCoder(userInfo: [.body: body])) },
            result { try Reference.decoder([.body: body]).decode(Decoded.self, from: Data(text.utf8)) }
        )
    }

    private func expect(
        _ text: String, _ result: String, _ location: SourceLocation = #_sourceLocation, _ body: @escaping Decoded.Body
    ) {
        let results = results(text, body)
        #expect(results.ours == result, sourceLocation: location)
        #expect(results.theirs == result, "Foundation", sourceLocation: location)
    }

    private static func errorText(_ work: () throws -> some Any) -> String {
        do { return try "\(work())" } catch DecodingError.keyNotFound(let key, let context) {
            return "no \(key.stringValue) at \(context.codingPath.map(\.stringValue))"
        } catch DecodingError.valueNotFound(_, let context) {
            return "null at \(context.codingPath.map(\.stringValue))"
        } catch DecodingError.typeMismatch(let type, let context) {
            return "no \(type) at \(context.codingPath.map(\.stringValue))"
        } catch DecodingError.dataCorrupted(let context) {
            return "corrupted at \(context.codingPath.map(\.stringValue))"
        } catch {
            return "\(error)"
        }
    }

    @Test("members are found in any order and repeatedly")
    func members() {
        expect(#"{"a":1,"b":{"x":[1,{"y":2}]},"c":"\u00e9\n","d":null}"#, "1 2 é\n 1 true false true 1") {
            let all = try $0.container(keyedBy: AnyKey.self)
            let nested = try all.nestedContainer(keyedBy: AnyKey.self, forKey: "b")
            var list = try nested.nestedUnkeyedContainer(forKey: "x")
            _ = try list.decode(Int.self)
            let inner = try list.nestedContainer(keyedBy: AnyKey.self)
            return try [
                "\(all.decode(Int.self, forKey: "a"))", "\(inner.decode(Int.self, forKey: "y"))",
                all.decode(String.self, forKey: "c"), "\(all.decode(Int.self, forKey: "a"))", "\(all.contains("d"))",
                "\(all.contains("e"))", "\(all.decodeNil(forKey: "d"))", "\(all.decode(Int8.self, forKey: "a"))",
            ].joined(separator: " ")
        }
    }

    @Test("the first of several members with one name is used, with or without escapes")
    func repeated() {
        expect(#"{"a":1,"b":2,"\u0061":3,"a":4}"#, "[1, 2, 1] [\"a\", \"b\"]") {
            let all = try $0.container(keyedBy: AnyKey.self)
            let values = try ["a", "b", "a"].map { try all.decode(Int.self, forKey: $0) }
            return "\(values) \(all.allKeys.map(\.stringValue).sorted())"
        }
        let many = (0..<300).map { "\"\($0 % 100)\":\($0)" }.joined(separator: ",")
        expect("{\(many)}", "[0, 99, 50] 100") {
            let all = try $0.container(keyedBy: AnyKey.self)
            let values = try ["0", "99", "50"].map { try all.decode(Int.self, forKey: AnyKey(stringValue: $0)) }
            return "\(values) \(all.allKeys.count)"
        }
    }

    @Test("members of a large object are found in any order in little time")
    func large() throws {
        let count = 100_000
        let members = (0..<count).map { "\"\($0)\":\($0)" }.joined(separator: ",")
        let clock = ContinuousClock()
        let time = try clock.measure {
            let all = try read([String: Int].self, "{\(members)}")
            #expect(all.count == count && all["77777"] == 77_777)
            let body: Decoded.Body = {
                let all = try $0.container(keyedBy: AnyKey.self)
                var sum = 0
                for number in (0..<count).reversed() {
                    sum += try all.decode(Int.self, forKey: AnyKey(intValue: number))
                    if all.contains(AnyKey(stringValue: "no\(number)")) { sum += 1 }
                }
                return "\(sum)"
            }
            let coder = ValueCoder(userInfo: [.body: body])
            #expect(try read(Decoded.self, "{\(members)}", coder).text == "\(count * (count - 1) / 2)")
            #expect(try read(Decoded.self, "{\(members),\(members)}", coder).text == "\(count * (count - 1) / 2)")
        }
        #expect(time < .seconds(20), "quadratic time would be minutes")
    }

    @Test("errors have Foundation's coding paths")
    func errors() {
        let text = #"{"a":null,"b":1,"l":[1,"x",{"y":true}],"n":{"m":[{}]},"t":"z"}"#
        expect(text, #"null at ["a"]|no String at ["b"]|no Int at ["l", "Index 1"]|no zz at []|no Bool at ["t"]"#) {
            let all = try $0.container(keyedBy: AnyKey.self)
            return [
                Self.errorText { try all.decode(Int.self, forKey: "a") },
                Self.errorText { try all.decodeIfPresent(String.self, forKey: "b") as Any },
                Self.errorText { try all.decode([Int].self, forKey: "l") },
                Self.errorText { try all.decode([Int].self, forKey: "zz") },
                Self.errorText { try all.decode(Bool.self, forKey: "t") },
            ].joined(separator: "|")
        }
        expect(
            text,
            #"no y at ["l", "Index 2"]|null at ["l", "Index 3"]|null at ["a"]|no z at ["n", "m", "Index 0"]|corrupted at ["t"]"#
        ) {
            let all = try $0.container(keyedBy: AnyKey.self)
            var list = try all.nestedUnkeyedContainer(forKey: "l")
            _ = try (list.decode(Int.self), list.decode(String.self))
            let last = try list.nestedContainer(keyedBy: AnyKey.self)
            return [
                Self.errorText { try last.decode(Int.self, forKey: AnyKey(stringValue: "y" + "")) as Int }
                    .replacing("no Int at [\"l\", \"Index 2\", \"y\"]", with: "no y at [\"l\", \"Index 2\"]"),
                Self.errorText { try list.decode(Int.self) },
                Self.errorText { try all.nestedUnkeyedContainer(forKey: "a") },
                Self.errorText { try all.decode([String: [[String: Int]]].self, forKey: "n")["m"]![0]["z"] as Any }
                    .replacing("nil", with: "no z at [\"n\", \"m\", \"Index 0\"]"),
                Self.errorText { try all.decode(UUID.self, forKey: "t") },
            ].joined(separator: "|")
        }
    }

    @Test("a missing superclass part is null, and a failed element can be decoded again")
    func supers() {
        expect(
            #"{"super":{"a":1},"l":[1,null,"x"]}"#, "[\"super\"] 1 true|no String at [\"l\", \"Index 0\"] 1 true x true"
        ) {
            let all = try $0.container(keyedBy: AnyKey.self)
            let parent = try all.superDecoder()
            let part = try parent.container(keyedBy: AnyKey.self).decode(Int.self, forKey: "a")
            let missing = try all.superDecoder(forKey: "none").singleValueContainer().decodeNil()
            var list = try all.nestedUnkeyedContainer(forKey: "l")
            let failure = Self.errorText { try list.decode(String.self) }
            let found = try (list.decode(Int.self), list.decodeNil(), list.decode(String.self))
            return
                "\(parent.codingPath.map(\.stringValue)) \(part) \(missing)|\(failure) \(found.0) \(found.1) \(found.2) \(list.isAtEnd)"
        }
    }

    @Test(
        "numbers, texts and other values are accepted and rejected like Foundation's",
        arguments: [
            "0", "-0", "1", "-1", "1.0", "1e2", "1.5", "-0.0", "1e400", "300", "-129", "65536", "4294967296",
            "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
            "18446744073709551615", "18446744073709551616", "1e18", "1e19", "-1e0", "0.1e1", "0.1", "3.5e38",
            "1e-45", "1e-50", "5e-324", "2.2250738585072011e-308", "0e999", "0.0e-999", "123456789012345678", "1E+2",
            "0.30000000000000004", "9007199254740993", "340282366920938463463374607431768211455", "1e39",
            "0.1234567890123456789012345678901234567", "1e100", "1e127", "1e128", "true", "false", "null", "\"\"",
            "\"a\"", "\"AP8+\"", "\"AB==\"", "\"AB\"", "\"A\\/8+\"", "\"https://a.b/c d\"", "\"1970-01-01T00:00:00Z\"",
            "\"0f1e2d3c-4b5a-6978-8796-A5B4C3D2E1F0\"", "\"0f1e2d3c-4b5a-6978-8796-A5B4C3D2E1F\"",
            "\"0f1e2d3c4b5a-6978-8796-A5B4C3D2E1F0-\"", "\"\\ud83d\\ude00\\u0000\"", "[]", "{}", "[null]", "[1]",
            "{\"a\":1}", "\"\u{FFFD}\u{1F600}\u{2028}\"",
        ])
    func acceptance(_ text: String) {
        func compare<Value: Decodable & Equatable>(_ type: Value.Type) {
            for text in [text, " [\(text) ]\n"] {
                let isList = text.hasPrefix(" [")
                let data = Data(text.utf8)
                let ours = isList ? try? read([Value].self, text) : try? [read(type, text)]
                let theirs =
                    isList
                    ? try? Reference.decoder().decode([Value].self, from: data)
                    : try? [Reference.decoder().decode(type, from: data)]
                #expect(ours == theirs, "\(type) from \(text)")
            }
        }
        compare(Int.self)
        compare(Int8.self)
        compare(Int16.self)
        compare(Int32.self)
        compare(Int64.self)
        compare(Int128.self)
        compare(UInt.self)
        compare(UInt8.self)
        compare(UInt16.self)
        compare(UInt32.self)
        compare(UInt64.self)
        compare(UInt128.self)
        compare(Double.self)
        compare(Float.self)
        compare(Decimal.self)
        compare(Bool.self)
        compare(String.self)
        compare(Data.self)
        compare(URL.self)
        compare(UUID.self)
        compare(Date.self)
        compare(Int?.self)
        compare([String: Int].self)
        compare([Int: Int].self)
        compare([Int?].self)
    }

    @Test("integers are exact in each form, where Foundation's slow path loses precision")
    func exact() throws {
        #expect(
            try read([Int128].self, "[1e38,9007199254740993.0]") == [
                100_000_000_000_000_000_000_000_000_000_000_000_000, 9_007_199_254_740_993,
            ])
        #expect(try read([Int].self, "[9223372036854775807.0,-9223372036854775808.00]") == [.max, .min])
        #expect(try read([Float].self, "[3.4e38]") == [3.4e38])
        #expect(throws: ValueError.self) { try read([Int].self, "[1e-400]") }
        #expect(throws: ValueError.self) { try read([Double].self, "[1e-400]") }
    }

    private struct Nothing: Decodable {}

    @Test(
        "invalid JSON is rejected, also in members that no code decodes",
        arguments: ["", " ", "x", "{", "[1,]", #"{"a":01}"#, "1 2"])
    func noJSON(_ text: String) {
        #expect(throws: ValueError.self) { try read(Nothing.self, text) }
        #expect(throws: ValueError.self) { try read([Nothing].self, "[\(text)]x") }
    }

    @Test("a byte order mark is skipped, and invalid UTF-8 is rejected")
    func encodings() throws {
        #expect(try read([Int].self, "\u{FEFF}[1]") == [1])
        let bytes: [UInt8] = [0x5B, 0x22, 0xFF, 0x22, 0x5D]
        #expect(throws: ValueError.self) {
            try bytes.withUnsafeBytes { try ValueCoder().decode([String].self, from: $0) }
        }
    }

    private final class Link: Codable {
        var next: Link?
    }
    private struct Endless: Decodable {
        init(from decoder: any Decoder) throws { self = try decoder.singleValueContainer().decode(Endless.self) }
    }

    @Test("nesting over the limit, or without end, is an error")
    func depth() {
        func chain(_ count: Int) -> String {
            String(repeating: #"{"next":"#, count: count - 1) + "{}" + String(repeating: "}", count: count - 1)
        }
        #expect(throws: Never.self) { try read(Link.self, chain(512)) }
        #expect(throws: ValueError.self) { try read(Link.self, chain(513)) }
        #expect(throws: ValueError.self) { try read(Nothing.self, String(repeating: "[", count: 1_000_000)) }
        #expect(throws: ValueError.self) { try read(Endless.self, "1") }
    }

    private struct ContainerRetainer: Decodable {
        // Only one test retains one, and it decodes nothing concurrently.
        nonisolated(unsafe) static var containers: (KeyedDecodingContainer<AnyKey>, any UnkeyedDecodingContainer)?

        init(from decoder: any Decoder) throws {
            let all = try decoder.container(keyedBy: AnyKey.self)
            Self.containers = (all, try all.nestedUnkeyedContainer(forKey: "a"))
        }
    }

    @Test("a retained decoder finds null after the decoding")
    func retainedDecoder() throws {
        let coder = ValueCoder()
        _ = try read(ContainerRetainer.self, #"{"a":[1,[2],3],"\u0062":2}"#, coder)
        #expect(try read([Int].self, "[1]", coder) == [1])
        var (all, list) = try #require(ContainerRetainer.containers)
        ContainerRetainer.containers = nil
        #expect(all.allKeys.isEmpty && !all.contains("a"))
        #expect(throws: DecodingError.self) { try all.decode(Int.self, forKey: "b") }
        while !list.isAtEnd { #expect(try list.decodeNil()) }
        #expect(list.currentIndex == 3 && all.codingPath.isEmpty)
    }
}
