import Testing

@testable import Trebuchet

/// What calls are called between nodes.
@Suite struct LineCallIDTests {
    @Test(
        "each is read as it was written",
        arguments: [
            (LineCallID(place: 1), "~1"), (LineCallID(place: .max, number: .max), "\(UInt64.max)~\(UInt64.max)"),
            (LineCallID(place: 7, isOfNode: true), "+~7"),
        ])
    func written(callID: LineCallID, text: String) {
        #expect(String(decoding: callID.bytes, as: UTF8.self) == text)
        #expect(callID.bytes.withUnsafeBytes { LineCallID($0) } == callID)
    }

    @Test("what no node writes is none", arguments: ["", "1", "~", "x~1", "-1~1", "+1~x", "1~1x"])
    func others(text: String) { #expect(Array(text.utf8).withUnsafeBytes { LineCallID($0) } == nil) }
}
