import Bytes
import Testing
import TrebuchetWire

@testable import Trebuchet

/// What clients of versions 1 and 2 are sent.
@Suite struct LegacyLinkTests {
    @Test("a value is made into base64 once for all clients of a stream")
    func sharedValue() {
        var suffix = ByteBuffer()
        Array(#"{"a":1}"#.utf8).withUnsafeBytes {
            StreamDataEncoding.appendSuffix(sequence: 3, data: $0, into: &suffix)
        }
        let shared = SharedBytes(suffix.bytes)
        let links = (0..<3).map { _ in ServerConnectionTests.Link() }
        for link in links {
            let legacy = LegacyLink(over: link)
            legacy.send(shared: shared, headCount: StreamDataEncoding.prefixCount + 2) {
                StreamDataEncoding.appendPrefix(into: &$0)
                $0.append(Array("s1".utf8))
            }
            withExtendedLifetime(legacy) {}
        }
        #expect(links.allSatisfy { $0.sharedCount == 1 && $0.events == [] })
        #expect(links.allSatisfy { $0.texts.count == 1 && $0.texts[0].contains(#""data":"eyJhIjoxfQ==","timestamp""#) })
        // Each has a name of its own for the stream.
        #expect(Set(links.map { $0.texts[0] }).count == 3)
        _ = shared.derived(LegacyTranslator.sharedForm) { _ in
            Issue.record("it was not kept")
            return SharedBytes(UnsafeRawBufferPointer(start: nil, count: 0))
        }
    }
}
