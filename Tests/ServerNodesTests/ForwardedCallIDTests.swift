import Testing

@testable import Trebuchet

/// What calls are called between nodes.
@Suite struct ForwardedCallIDTests {
    @Test(
        "each is read as it was written",
        arguments: [
            (ForwardedCallID(messageIndex: 1), "~1"),
            (ForwardedCallID(messageIndex: .max, number: .max), "\(UInt64.max)~\(UInt64.max)"),
            (ForwardedCallID(messageIndex: 7, isOfNode: true), "+~7"),
        ])
    func written(callID: ForwardedCallID, text: String) {
        #expect(String(decoding: callID.bytes, as: UTF8.self) == text)
        #expect(callID.bytes.withUnsafeBytes { ForwardedCallID($0) } == callID)
    }

    @Test("what no node writes is none", arguments: ["", "1", "~", "x~1", "-1~1", "+1~x", "1~1x"])
    func others(text: String) { #expect(Array(text.utf8).withUnsafeBytes { ForwardedCallID($0) } == nil) }
}
