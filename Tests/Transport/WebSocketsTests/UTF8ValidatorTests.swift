import Testing

@testable import WebSockets

@Suite("UTF-8 (RFC 3629, RFC 6455 §8.1)")
struct UTF8ValidatorTests {
    static let valid: [[UInt8]] = [
        [], [0x00], [0x7F], [0xC2, 0x80], [0xDF, 0xBF], [0xE0, 0xA0, 0x80], [0xED, 0x9F, 0xBF], [0xEE, 0x80, 0x80],
        [0xEF, 0xBF, 0xBF], [0xF0, 0x90, 0x80, 0x80], [0xF4, 0x8F, 0xBF, 0xBF],
        Array("κόσμε 漢字 🚀 plain text that is longer than one vector of thirty-two bytes é".utf8),
        Array(String(repeating: "a", count: 200).utf8) + [0xC3, 0xA9],
    ]

    /// The bytes, and the index at which the text becomes invalid.
    static let invalid: [(bytes: [UInt8], at: Int)] = [
        ([0x80], 0), ([0xBF], 0), ([0xFE], 0), ([0xFF], 0),
        ([0xC0, 0x80], 0), ([0xC1, 0xBF], 0),  // overlong
        ([0xE0, 0x80, 0x80], 1), ([0xE0, 0x9F, 0xBF], 1), ([0xF0, 0x80, 0x80, 0x80], 1), ([0xF0, 0x8F, 0xBF, 0xBF], 1),
        ([0xED, 0xA0, 0x80], 1), ([0xED, 0xBF, 0xBF], 1),  // surrogates
        ([0xF4, 0x90, 0x80, 0x80], 1), ([0xF5, 0x80, 0x80, 0x80], 0),  // beyond U+10FFFF
        ([0xC2, 0x41], 1), ([0xE1, 0x80, 0x41], 2), ([0xF1, 0x80, 0x80, 0xC0], 3),  // cut short
        ([UInt8](repeating: 0x61, count: 100) + [0xFF], 100),
        ([UInt8](repeating: 0x61, count: 33) + [0xC3, 0xA9] + [UInt8](repeating: 0x61, count: 40) + [0x80], 75),
    ]

    private func feed(_ pieces: [[UInt8]]) -> (isValid: Bool, isComplete: Bool) {
        var validator = UTF8Validator()
        let isValid = pieces.allSatisfy { piece in piece.withUnsafeBytes { validator.validate($0) } }
        return (isValid, validator.isComplete)
    }

    @Test("valid text is accepted, however it is split", arguments: valid)
    func passes(_ text: [UInt8]) {
        for cut in 0...text.count {
            let result = feed([Array(text[..<cut]), Array(text[cut...])])
            #expect(result.isValid && result.isComplete, "cut at \(cut)")
        }
        #expect(feed(text.map { [$0] }) == (true, true))
    }

    @Test("invalid text fails at its first invalid byte and not before, however it is split", arguments: invalid)
    func fails(_ entry: (bytes: [UInt8], at: Int)) {
        for cut in 0...entry.bytes.count {
            #expect(!feed([Array(entry.bytes[..<cut]), Array(entry.bytes[cut...])]).isValid, "cut at \(cut)")
        }
        #expect(feed([Array(entry.bytes[..<entry.at])]).isValid)
        #expect(!feed([Array(entry.bytes[...entry.at])]).isValid)
    }

    @Test("a text that ends inside a character is incomplete")
    func incomplete() {
        for text: [UInt8] in [[0xC3], [0xE2, 0x82], [0xF0, 0x9F, 0x9A]] {
            #expect(feed([text]) == (true, false))
        }
    }

    @Test("all sequences of two bytes, and of three after each lead byte, are judged like the standard library")
    func agreesWithLibrary() {
        for first in UInt8(0x80)...0xFF {
            for second in UInt8.min...0xFF {
                for rest: [UInt8] in [[], [0x80], [0x80, 0xBF]] {
                    let bytes = [first, second] + rest
                    let result = feed([bytes])
                    #expect((result.isValid && result.isComplete) == (String(validating: bytes, as: UTF8.self) != nil))
                }
            }
        }
    }

    /// Compares with the standard library.
    private func agrees(_ bytes: [UInt8]) -> Bool {
        let result = feed([bytes])
        return (result.isValid && result.isComplete) == (String(validating: bytes, as: UTF8.self) != nil)
    }

    @Test(
        "words of four bytes after F0 to FF that vary in their second byte or end early are judged like the standard library"
    )
    func words() {
        for first in UInt8(0xF0)...0xFF {
            for second in UInt8.min...0xFF {
                for rest: [UInt8] in [
                    [0x80, 0x80], [0xBF, 0xBF], [0x80, 0x41], [0xC2, 0x80], [0xBF, 0xC0], [0x7F, 0xBF],
                ] {
                    #expect(agrees([first, second] + rest + Array("behind it".utf8)))
                }
            }
        }
    }

    @Test("an invalid byte is found at each position of a text of any length, whatever surrounds it")
    func everyPosition() {
        let characters = [
            "a", "é", "漢", "🚀", "\u{7FF}", "\u{800}", "\u{D7FF}", "\u{FFFF}", "\u{10000}", "\u{10FFFF}", "plain text, ",
        ]
        var random = SystemRandomNumberGenerator()
        for length in 0...200 {
            var text: [UInt8] = []
            while text.count < length { text += Array(characters.randomElement(using: &random)!.utf8) }
            #expect(feed([text]) == (true, true))
            for place in text.indices {
                var bytes = text
                for wrong: UInt8 in [0x80, 0xBF, 0xC0, 0xC1, 0xE0, 0xED, 0xF0, 0xF4, 0xF5, 0xFF, 0x61] {
                    bytes[place] = wrong
                    #expect(agrees(bytes), "\(wrong) at \(place) of \(text)")
                }
                #expect(agrees(Array(text[..<place])), "the first \(place) of \(text)")
                #expect(
                    feed([Array(text[..<place]), Array(text[place...])]) == (true, true), "cut at \(place): \(text)")
            }
        }
    }
}
