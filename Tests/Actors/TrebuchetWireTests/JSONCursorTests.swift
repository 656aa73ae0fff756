import Bytes
import Testing

@testable import TrebuchetWire

@Suite("Reading JSON in place")
struct JSONCursorTests {
    /// The error of reading the first bytes of a text, while more bytes follow.
    private func error(_ text: String, first count: Int) -> EnvelopeError? {
        Array(text.utf8).withUnsafeBytes { bytes in
            var cursor = JSONCursor(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
            do throws(EnvelopeError) {
                _ = try cursor.value()
                return nil
            } catch {
                return error
            }
        }
    }

    @Test("a text that ends within a string is not read further, whatever follows it", arguments: 1..<14)
    func endOfString(count: Int) {
        let text = #""\ud83d\ude00""#
        #expect(text.utf8.count == 14)
        let error = error(text, first: count)
        #expect(error != nil)
        // Between the two escapes it is half of a pair.
        if !(7...8).contains(count) { #expect(error?.message.contains("the text ends within a string") == true) }
    }

    @Test("a pair of escapes is one character, as in UTF-16")
    func pairs() {
        for scalar in ["\u{10000}", "\u{10FFFF}", "\u{1F600}", "\u{103FF}", "\u{10400}"] as [Unicode.Scalar] {
            let escaped = String(scalar).utf16.map { "\\u" + String($0, radix: 16) }.joined()
            let text = Array(escaped.utf8).withUnsafeBytes { JSONString.text($0, isEscaped: true) }
            #expect(text == String(scalar))
        }
    }
}

@Suite("Values as filters compare them")
struct FilterScalarTests {
    @Test(
        "the first characters of a long text are compared, and no escape is split",
        arguments: ["a", "\u{e9}", "\u{1F600}", "\\"])
    func longTexts(character: String) throws {
        for lead in 0..<12 {
            let plain = String(repeating: "x", count: lead) + String(repeating: character, count: 10_000)
            let escaped = plain.utf16.map { unit in
                unit == 0x78
                    ? "x"
                    : "\\u" + String(repeating: "0", count: 4 - String(unit, radix: 16).count) + String(unit, radix: 16)
            }.joined()
            for (written, isEscaped) in [(escaped, true), (plain.replacing("\\", with: "\\\\"), false)] {
                let scalar = Array("\"\(written)\"".utf8).withUnsafeBytes { FilterScalar($0) }
                guard case .text(let bytes) = scalar.kind else {
                    Issue.record("no text")
                    return
                }
                #expect(bytes.count > StreamFilter.maximumTextLength)
                #expect(Array(plain.utf8).starts(with: bytes))
                if isEscaped { #expect(String(validating: bytes, as: UTF8.self) != nil) }
            }
        }
    }
}
