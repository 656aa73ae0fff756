import Bytes
import Foundation
import Testing
import TrebuchetWire

@Suite("Values")
struct ValueTests {
    @Test("a string without its closing quote is rejected", arguments: ["\"ab", "\"", "ab\""])
    func openString(_ text: String) {
        let coder = ValueCoder()
        #expect(throws: ValueError.self) {
            try Array(text.utf8).withUnsafeBytes { try coder.decode(String.self, from: $0) }
        }
    }

    @Test("a date that is not a number is an error, not a crash")
    func dateNotANumber() {
        var buffer = ByteBuffer()
        #expect(throws: EncodingError.self) {
            try ValueCoder().encode([Date(timeIntervalSince1970: .nan)], into: &buffer)
        }
    }

    @Test(
        "doubles keep their value",
        arguments: [0, -0.0, 1.5, .leastNonzeroMagnitude, 1e300, 9_007_199_254_740_992, -1, 0.1])
    func doubles(_ value: Double) throws {
        let coder = ValueCoder()
        var buffer = ByteBuffer()
        try coder.encode(value, into: &buffer)
        let back = try coder.decode(Double.self, from: buffer.bytes)
        #expect(back.bitPattern == value.bitPattern)
    }

    @Test("base64 equals Foundation's", arguments: 0..<50)
    func base64(_ count: Int) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ 251) }
        var text = ByteBuffer()
        bytes.withUnsafeBytes { Base64.encode($0, into: &text) }
        #expect(String(decoding: text.bytes, as: UTF8.self) == Data(bytes).base64EncodedString())
        var back = ByteBuffer()
        #expect(Base64.decode(text.bytes, into: &back))
        #expect(Array(back.bytes) == bytes)
    }
}
