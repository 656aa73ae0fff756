import Testing

@testable import Trebuchet
@testable import TrebuchetNodes

/// Call IDs between nodes.
@Suite struct ForwardedCallIDTests {
    @Test(
        "each call ID is read as it was written",
        arguments: [
            (ForwardedCallID(messageIndex: 1), "~1"),
            (ForwardedCallID(messageIndex: .max, number: .max), "\(UInt64.max)~\(UInt64.max)"),
            (ForwardedCallID(messageIndex: 7, isOfNode: true), "+~7"),
        ])
    func written(callID: ForwardedCallID, text: String) {
        #expect(String(decoding: callID.bytes, as: UTF8.self) == text)
        #expect(callID.bytes.withUnsafeBytes { ForwardedCallID($0) } == callID)
    }

    @Test("a call ID that no node writes is refused", arguments: ["", "1", "~", "x~1", "-1~1", "+1~x", "1~1x"])
    func others(text: String) { #expect(Array(text.utf8).withUnsafeBytes { ForwardedCallID($0) } == nil) }
}
