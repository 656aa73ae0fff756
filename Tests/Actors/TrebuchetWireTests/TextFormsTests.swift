import Bytes
import Foundation
import Testing

@testable import TrebuchetWire

/// The form of dates, numbers, texts and bytes in a message.
@Suite("Forms of values as text") struct TextFormsTests {
    // MARK: Dates

    @Test(
        "a date is encoded in UTC, with a four-digit year",
        arguments: [
            (0, 0, "1970-01-01T00:00:00.000Z"), (-1, 999, "1969-12-31T23:59:59.999Z"),
            (951_782_399, 1, "2000-02-28T23:59:59.001Z"),
            (951_782_400, 0, "2000-02-29T00:00:00.000Z"), (951_868_800, 0, "2000-03-01T00:00:00.000Z"),
            (4_107_456_000, 0, "2100-02-28T00:00:00.000Z"), (4_107_542_400, 0, "2100-03-01T00:00:00.000Z"),
            (1_709_164_800, 0, "2024-02-29T00:00:00.000Z"), (-2_203_977_600, 0, "1900-02-28T00:00:00.000Z"),
            (-2_203_891_200, 0, "1900-03-01T00:00:00.000Z"), (1_735_689_599, 10, "2024-12-31T23:59:59.010Z"),
            (-62_167_219_200, 0, "0000-01-01T00:00:00.000Z"), (253_402_300_799, 999, "9999-12-31T23:59:59.999Z"),
            (86_399, 0, "1970-01-01T23:59:59.000Z"), (86_400, 0, "1970-01-02T00:00:00.000Z"),
            (3_661, 0, "1970-01-01T01:01:01.000Z"),
        ] as [(Int64, Int, String)])
    func date(seconds: Int64, milliseconds: Int, text: String) throws {
        var buffer = ByteBuffer()
        ISO8601.append(seconds: seconds, milliseconds: milliseconds, to: &buffer)
        #expect(String(decoding: buffer.bytes, as: UTF8.self) == text)
        let read = try #require(ISO8601.seconds(text))
        #expect(abs(read - Double(seconds) - Double(milliseconds) / 1_000) < 0.000_1)
        buffer.removeAll()
        ISO8601.append(seconds: seconds, milliseconds: nil, to: &buffer)
        #expect(String(decoding: buffer.bytes, as: UTF8.self) == text.prefix(19) + "Z")
    }

    @Test("days of 800 years are decoded as they were encoded")
    func days() {
        for day in stride(from: Int64(-147_000), through: 146_000, by: 11) {
            var buffer = ByteBuffer()
            ISO8601.append(seconds: day * 86_400, milliseconds: nil, to: &buffer)
            let text = String(decoding: buffer.bytes, as: UTF8.self)
            guard ISO8601.seconds(text) == Double(day * 86_400) else {
                Issue.record("\(text) is not decoded as it was encoded")
                return
            }
        }
    }

    @Test(
        "a date is decoded with or without a fraction, with Z or an offset, with letters in either case",
        arguments: [
            ("1970-01-01T00:00:01Z", 1), ("1970-01-01t00:00:01z", 1), ("1970-01-01T00:00:00.5Z", 0.5),
            ("1970-01-01T00:00:00.25+00:00", 0.25), ("1970-01-01T01:00:00+01:00", 0),
            ("1970-01-01T00:00:00-01:30", 5_400),
            ("1970-01-01T01:00:00+0100", 0), ("1970-01-01T23:59:00+23:59", 0), ("1970-01-01T00:00:60Z", 60),
            ("1970-01-01T23:00:00Z", 82_800), ("1970-01-01T00:59:00Z", 3_540), ("1970-12-31T00:00:00Z", 31_449_600),
            ("1972-02-29T00:00:00Z", 68_169_600),
        ] as [(String, Double)])
    func dates(text: String, seconds: Double) { #expect(ISO8601.seconds(text) == seconds) }

    @Test(
        "an invalid date is rejected",
        arguments: [
            "", "1970", "1970-01-01", "1970-01-01T00:00:00", "1970-01-01T00:00:00Zx", "1970-01-01T00:00:00.Z",
            "1970-00-01T00:00:00Z", "1970-13-01T00:00:00Z", "1970-01-00T00:00:00Z", "1970-01-32T00:00:00Z",
            "1970-01-01T24:00:00Z", "1970-01-01T00:60:00Z", "1970-01-01T00:00:61Z", "1971-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z", "1970-04-31T00:00:00Z", "1970-01-01T00:00:00+24:00", "1970-01-01T00:00:00+00:60",
            "1970-01-01T00:00:00+0", "1970-01-01T00:00:00+00:0", "1970-01-01T00:00:00*00:00", "1970.01-01T00:00:00Z",
            "1970-01.01T00:00:00Z", "1970-01-01 00:00:00Z", "1970-01-01T00.00:00Z", "1970-01-01T00:00.00Z",
            "197a-01-01T00:00:00Z", "1970-1-01T00:00:00Z", "1970-01-01T00:00:0/Z", "1970-01-01T00:00:0:Z",
        ])
    func noDate(text: String) { #expect(ISO8601.seconds(text) == nil) }

    @Test(
        "a date outside of four-digit years is clamped; halves of milliseconds are rounded",
        arguments: [
            (-62_167_219_200, "0000-01-01T00:00:00.000Z"), (-62_167_219_201, "0000-01-01T00:00:00.000Z"),
            (-1e15, "0000-01-01T00:00:00.000Z"), (253_402_300_799.999, "9999-12-31T23:59:59.999Z"),
            (253_402_300_800, "9999-12-31T23:59:59.999Z"), (1e15, "9999-12-31T23:59:59.999Z"),
            (-0.001, "1969-12-31T23:59:59.999Z"), (-1, "1969-12-31T23:59:59.000Z"),
            (-0.9994, "1969-12-31T23:59:59.001Z"),
            (0.0006, "1970-01-01T00:00:00.001Z"), (1.25, "1970-01-01T00:00:01.250Z"),
        ] as [(Double, String)])
    func clamped(seconds: Double, text: String) {
        var buffer = ByteBuffer()
        DateText.append(Date(timeIntervalSince1970: seconds), to: &buffer)
        #expect(String(decoding: buffer.bytes, as: UTF8.self) == text)
    }

    // MARK: Numbers

    private func bytes<Result>(_ text: String, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        Array(text.utf8).withUnsafeBytes(body)
    }

    @Test(
        "an integer of at most eighteen digits is decoded directly",
        arguments: [
            ("0", 0), ("-0", 0), ("7", 7), ("-7", -7), ("10", 10), ("999999999999999999", 999_999_999_999_999_999),
            ("-999999999999999999", -999_999_999_999_999_999), ("1000000000000000000", nil), ("", nil), ("-", nil),
            ("01", nil),
            ("-01", nil), ("00", nil), ("1.0", nil), ("1e1", nil), ("+1", nil), ("1 ", nil), ("/", nil), (":", nil),
            ("1:", nil),
        ] as [(String, Int?)])
    func whole(text: String, number: Int?) { #expect(bytes(text) { JSONNumber.int($0) } == number) }

    @Test(
        "a number is its digits without surrounding zeros, and a power of ten",
        arguments: [
            ("0", false, "", 0), ("-0.00e7", false, "", 0), ("12", false, "12", 0), ("-1200", true, "12", 2),
            ("0.0120", false, "12", -3),
            ("102", false, "102", 0), ("1e5", false, "1", 5), ("1E+5", false, "1", 5), ("15e-10", false, "15", -10),
            ("-1.5e12", true, "15", 11), ("1e281474976710655", false, "1", 281_474_976_710_655),
        ] as [(String, Bool, String, Int)])
    func parts(text: String, isNegative: Bool, digits: String, exponent: Int) throws {
        let parts = try #require(bytes(text) { JSONNumber.parts($0) })
        #expect(parts.isNegative == isNegative)
        #expect(String(decoding: parts.digits, as: UTF8.self).map(\.self) == Array(digits))
        #expect(parts.exponent == exponent)
    }

    @Test("an extreme exponent has no parts", arguments: ["1e281474976710656", "1e-999999999999999999999999"])
    func noParts(text: String) { #expect(bytes(text) { JSONNumber.parts($0) } == nil) }

    @Test(
        "doubles below 2^53 are encoded as integers, and a negative zero keeps its sign",
        arguments: [
            (1, "1"), (-1, "-1"), (0, "0"), (-0.0, "-0.0"), (0.5, "0.5"), (9_007_199_254_740_991, "9007199254740991"),
            (9_007_199_254_740_992, "9007199254740992.0"), (-9_007_199_254_740_992, "-9007199254740992.0"),
            (1e300, "1e+300"),
        ] as [(Double, String)])
    func doubles(value: Double, text: String) throws {
        var buffer = ByteBuffer()
        try ValueCoder().encode(value, into: &buffer)
        #expect(String(decoding: buffer.bytes, as: UTF8.self) == text)
    }

    @Test("simple values are decoded in place, and others rejected with the expected type")
    func simpleValues() throws {
        let coder = ValueCoder()
        func read<Value: Decodable>(_ type: Value.Type, _ text: String) -> Value? {
            bytes(text) { try? coder.decode(type, from: $0) }
        }
        #expect(read(Bool.self, "true") == true && read(Bool.self, "false") == false && read(Bool.self, "1") == nil)
        #expect(
            read(Int.self, "12") == 12 && read(Int.self, "9223372036854775807") == .max && read(Int.self, "1.5") == nil)
        #expect(read(Int.self, "\"1\"") == nil && read(Int.self, "") == nil)
        #expect(read(Double.self, "1") == 1 && read(Double.self, "-0")?.sign == .minus && read(Double.self, "x") == nil)
        #expect(read(Double.self, "9007199254740993") == 9_007_199_254_740_992)
        #expect(read(String.self, "\"\"") == "" && read(String.self, "\"a\\n\\u00e9\"") == "a\n\u{e9}")
        #expect(
            read(String.self, "\"a\u{1}b\"") == nil && read(String.self, "\"a\"b\"") == nil
                && read(String.self, "1") == nil)
        #expect(read([Int].self, "[1,2]") == [1, 2])
        for number in [Double.nan, .infinity, -.infinity] {
            var buffer = ByteBuffer()
            #expect(throws: EncodingError.self) { try coder.encode(number, into: &buffer) }
        }
        // As a value of any type, which the coder determines.
        func written(_ value: some Encodable) throws -> String {
            var buffer = ByteBuffer()
            try coder.encode(value, into: &buffer)
            return String(decoding: buffer.bytes, as: UTF8.self)
        }
        for (value, text) in [("a/b\"", #""a/b\"""#), ("", "\"\"")] {
            #expect(try written(value) == text)
            #expect(try written([value]) == "[\(text)]")
        }
        #expect(try written(true) == "true" && written(false) == "false" && written([true]) == "[true]")
        #expect(try written(-5) == "-5" && written(Int8(7)) == "7" && written(2.5) == "2.5" && written(3.0) == "3")
    }

    @Test(
        "members of a large object are found through a table from the second search on, those of a small one linearly",
        arguments: [(16, false), (17, true)])
    func table(count: Int, isTable: Bool) throws {
        let bytes = Array((10..<10 + count).map(String.init).joined().utf8)
        try bytes.withUnsafeBytes { bytes in
            var object = OpenContainer(isObject: true)
            for number in 0..<count {
                let text = UnsafeRawBufferPointer(rebasing: bytes[2 * number..<2 * number + 2])
                object.append(EditableJSONValue(text), named: JSONName(text))
            }
            let found = [try object.index(of: .init("13"))]
            let isFirstTable = object.indices != nil
            #expect(found + [try object.index(of: .init("25"))] == [3, 15])
            #expect([isFirstTable, object.indices != nil] == [false, isTable])
        }
    }

    // MARK: Texts

    @Test(
        "a text is encoded with a minimum of escapes, and its byte count is known",
        arguments: [
            ("", #""""#), ("a b/c", #""a b/c""#), ("\"\\", #""\"\\""#), ("\n\r\t", #""\n\r\t""#),
            ("\u{8}\u{c}", #""\u0008\u000c""#),
            ("\u{0}\u{1f}\u{20}\u{7f}", "\"\\u0000\\u001f \u{7f}\""), ("\u{e9}\u{1F600}", "\"\u{e9}\u{1F600}\""),
            ("x\ny", #""x\ny""#), ("\u{9}\u{10}\u{19}\u{1a}", #""\t\u0010\u0019\u001a""#),
        ])
    func texts(text: String, written: String) {
        var buffer = ByteBuffer()
        JSONString.append(text, to: &buffer)
        #expect(String(decoding: buffer.bytes, as: UTF8.self) == written)
        #expect(JSONString.byteCount(text) == written.utf8.count)
        let inner = Array(written.utf8.dropFirst().dropLast())
        #expect(inner.withUnsafeBytes { JSONString.text($0, isEscaped: inner.contains(0x5C)) } == text)
    }

    @Test(
        "each escape is decoded to its character",
        arguments: [
            (#"\b\f\n\r\t\"\\\/"#, "\u{8}\u{c}\n\r\t\"\\/"), (#"a\u0041b\u00e9\u20acc"#, "aAb\u{e9}\u{20ac}c"),
            (#"\ud83d\ude00x"#, "\u{1F600}x"), (#"\uD83D\uDE00\u0031"#, "\u{1F600}1"),
        ])
    func escapes(escaped: String, text: String) {
        #expect(bytes(escaped) { JSONString.text($0, isEscaped: true) } == text)
    }

    @Test(
        "a text with a control character, half a pair or an invalid escape is rejected",
        arguments: [
            ("\"\u{1f}\"", false), ("\"\u{20}\"", true), ("\"\\n\u{1f}\"", false), ("\"\\n\u{20}\"", true),
            (#""\x""#, false),
            (#""\u12g4""#, false), (#""\uZ234""#, false), (#""\ud83d""#, false), (#""\ud83dx\ude00""#, false),
            (#""\ud83d\n""#, false), (#""\ud83d\u0041""#, false), (#""\ude00""#, false), (#""\ude00\ud83d""#, false),
            (#""\ud83d\ude00""#, true), (#""\udbff\udfff""#, true), (#""\ud800\udc00""#, true),
            (#""\ud7ff\ue000""#, true),
            (#""a"#, false), (#""\""#, false),
        ])
    func refused(text: String, isGood: Bool) {
        let isRead = bytes(text) { bytes in
            var cursor = JSONCursor(bytes)
            do throws(EnvelopeError) {
                _ = try cursor.value()
                try cursor.expectEnd()
                return true
            } catch {
                return false
            }
        }
        #expect(isRead == isGood)
    }

    @Test(
        "invalid JSON is rejected, and valid JSON is read to its end",
        arguments: [
            ("{}", true), ("[]", true), (" [ 1 , 2 ] ", true), (#"{"a":1,"b":[true,false,null]}"#, true),
            ("-1.5e+3", true),
            ("", false), ("[1,]", false), ("[,1]", false), ("[1 2]", false), ("{,}", false), (#"{"a"}"#, false),
            (#"{"a":}"#, false),
            (#"{"a":1,}"#, false), (#"{a:1}"#, false), (#"{"a" 1}"#, false), ("[1}", false), ("{]", false),
            ("1 2", false),
            ("tru", false), ("truex", false), ("nulll", false), ("-", false), ("1.", false), (".5", false),
            ("1e", false),
            ("1e+", false), ("+1", false), ("--1", false), ("[", false), ("{", false), (#"{"a":1"#, false),
            ("\u{0}", false),
            ("1\u{0}", false), ("[1]]", false),
        ])
    func json(text: String, isGood: Bool) {
        let isRead = bytes(text) { bytes in
            var cursor = JSONCursor(bytes)
            do throws(EnvelopeError) {
                _ = try cursor.value()
                try cursor.expectEnd()
                return true
            } catch {
                return false
            }
        }
        #expect(isRead == isGood)
    }

    // MARK: Base64

    @Test(
        "base64 is decoded only with its padding",
        arguments: [
            ("", []), ("AA==", [0]), ("AAA=", [0, 0]), ("AAAA", [0, 0, 0]), ("+/+/", [251, 255, 191]),
            ("Zm9v", [102, 111, 111]),
            ("A", nil), ("AA", nil), ("AAA", nil), ("AAAAA", nil), ("A===", nil), ("====", nil), ("AA==AAAA", nil),
            ("AA=A", nil),
            ("AA-A", nil), ("AA_A", nil), ("AA A", nil), ("AAA@", nil), ("AAA[", nil), ("AAA`", nil), ("AAA{", nil),
            ("AAA:", nil),
            ("AAA,", nil), ("AAA.", nil), ("@AAA", nil),
        ] as [(String, [UInt8]?)])
    func base64(text: String, value: [UInt8]?) {
        var buffer = ByteBuffer()
        let isRead = bytes(text) { Base64.decode($0, into: &buffer) }
        #expect(isRead == (value != nil))
        if let value {
            #expect(Array(buffer.bytes) == value)
            var written = ByteBuffer()
            value.withUnsafeBytes { Base64.encode($0, into: &written) }
            #expect(String(decoding: written.bytes, as: UTF8.self) == text)
        }
    }

    // MARK: Advertised limits

    @Test("a limit below one is read as one")
    func terms() throws {
        for (number, read) in [(1, 1), (2, 2), (0, 1), (-1, 1)] {
            let names = [
                "callsPerConnection", "callBytesPerConnection", "streamsPerConnection", "messageSize",
                "clientAnswerSize",
            ]
            let text = "{" + names.map { "\"\($0)\":\(number)" }.joined(separator: ",") + "}"
            let terms = try Array(text.utf8).withUnsafeBytes {
                try ValueCoder().decode(AdvertisedLimits.self, from: $0)
            }
            #expect(
                [
                    terms.callsPerConnection, terms.callBytesPerConnection, terms.streamsPerConnection,
                    terms.messageSize,
                    terms.clientAnswerSize,
                ] == Array(repeating: read, count: 5))
            #expect(terms.clientActorsPerClient == 0)
        }
    }

    // MARK: Fast forms

    @Test("a number with few digits has Swift's description")
    func shortNumbers() {
        var draw = RandomValues(seed: 1)
        for _ in 0..<20_000 {
            let places = draw.below(9)
            var value =
                Double(draw.below(1 << (1 + draw.below(50))))
                / Double((0..<places).reduce(1) { power, _ in power * 10 })
            if draw.below(2) == 0 { value = -value }
            // Its neighbor has many digits.
            if draw.below(4) == 0 { value = value.nextUp }
            guard value != value.rounded() else { continue }
            var buffer = ByteBuffer()
            JSONNumber.append(value, to: &buffer)
            let text = String(decoding: buffer.bytes, as: UTF8.self)
            guard text == value.description else {
                Issue.record("\(value) is written as \(text)")
                return
            }
        }
    }

    @Test("a UUID is encoded and decoded like Foundation's, with letters in either case")
    func uuids() {
        for _ in 0..<200 {
            let uuid = UUID()
            var buffer = ByteBuffer()
            UUIDText.append(uuid, to: &buffer)
            #expect(String(decoding: buffer.bytes, as: UTF8.self) == "\"\(uuid.uuidString)\"")
            for text in [uuid.uuidString, uuid.uuidString.lowercased()] {
                let bytes = Array(text.utf8).withUnsafeBytes { UUIDText.bytes($0) }
                #expect(bytes.map { UUID(uuid: $0) } == uuid)
            }
        }
    }

    @Test("an invalid byte at any position makes a UUID invalid")
    func noUUIDs() {
        let good = Array("0B5e9F4C-7c1B-4E0B-9C55-0D6E1F6A2bFf".utf8)
        for place in good.indices {
            for byte in UInt8.min...UInt8.max {
                var text = good
                text[place] = byte
                let isHyphen = good[place] == 0x2D
                let isRight = isHyphen ? byte == 0x2D : Character(UnicodeScalar(byte)).isHexDigit && byte < 0x80
                guard text.withUnsafeBytes({ UUIDText.bytes($0) != nil }) == isRight else {
                    Issue.record("\(byte) at \(place)")
                    return
                }
            }
        }
        #expect(good.dropLast().withUnsafeBytes { UUIDText.bytes($0) } == nil)
    }
}
