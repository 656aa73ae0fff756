import Testing
import TrebuchetActors

@testable import Trebuchet
@testable import TrebuchetNodes

/// The position of a stream's client, as the forwarding node that resumes the stream knows it.
@Suite struct ForwardedStreamTests {
    @Test(
        "a client behind keeps its position until the missing updates have arrived, unless another incarnation begins",
        arguments: [
            // The client's position, the owner's position, and the position up to which the client lacks nothing.
            (("", 0), ("e", nil), 0), (("", 0), ("e", 7), 7),
            (("e", 3), ("e", nil), 3), (("e", 3), ("e", 7), 3),
            (("e", 3), ("f", nil), 0), (("e", 3), ("f", 3), 3), (("e", 3), ("f", 7), 7),
        ] as [((String, UInt64), (String, UInt64?), Int)])
    func position(seen: (String, UInt64), start: (String, UInt64?), expected: Int) {
        var stream = ForwardedStream(
            callID: Array("1".utf8), actor: ActorName("a"), target: "t", filter: nil, epoch: seen.0, sequence: seen.1)
        let start = ForwardedStream.Start(streamID: Array("s".utf8), epoch: start.0, position: start.1)
        #expect(stream.handle(.started(start, over: 1)) == .passOnStart)
        let text = String(decoding: stream.resumption(as: [0x31]), as: UTF8.self)
        #expect(text.contains(#""epoch":"\#(start.epoch)","lastSequence":\#(expected)}"#), "\(text)")
    }
}
