import Bytes
import Testing

@testable import WebSockets

@Suite("FrameEncoder (RFC 6455 §5.2, §5.4)")
struct FrameEncoderTests {
    private let key: UInt32 = 0x7856_3412

    @Test("a frame has the RFC's bytes, whatever length was expected", arguments: [0, 1, 125, 126, 0xFFFF, 0x10000])
    func frames(_ length: Int) {
        let payload = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
        for expected in [0, 126, 0x10000] {
            for isMasked in [false, true] {
                var buffer = ByteBuffer()
                buffer.append("before")
                let opening = FrameEncoder.open(&buffer, expecting: expected, isMasked: isMasked)
                buffer.append(payload)
                FrameEncoder.close(opening, in: &buffer, opcode: .binary, maskingKey: isMasked ? key : nil)
                let wanted = Array("before".utf8) + frame(2, payload, mask: isMasked ? [0x12, 0x34, 0x56, 0x78] : nil)
                #expect(Array(buffer.bytes) == wanted, "expected \(expected), masked \(isMasked)")
            }
        }
    }

    @Test("bytes that follow the buffer are counted in the header")
    func following() {
        var buffer = ByteBuffer()
        let opening = FrameEncoder.open(&buffer, expecting: 3, isMasked: false)
        buffer.append("abc")
        FrameEncoder.close(opening, in: &buffer, opcode: .text, following: 300)
        #expect(Array(buffer.bytes) == [0x81, 126, 0x01, 0x2F, 0x61, 0x62, 0x63])
    }

    @Test("a long message is sent in fragments of the requested size", arguments: [0, 1, 9, 10, 11, 20, 25])
    func fragments(_ length: Int) {
        let payload = (0..<length).map { UInt8($0) }
        var buffer = ByteBuffer()
        buffer.append("x")
        let opening = FrameEncoder.open(&buffer, expecting: length, isMasked: false)
        buffer.append(payload)
        FrameEncoder.closeFragmented(opening, in: &buffer, opcode: .text, size: 10)
        var wanted: [UInt8] = [0x78]
        for start in stride(from: 0, to: max(length, 1), by: 10) {
            let end = min(start + 10, length)
            wanted += frame(start == 0 ? 1 : 0, Array(payload[start..<end]), fin: end == length, mask: nil)
        }
        #expect(Array(buffer.bytes) == wanted)
    }

    @Test("each fragment of a client is masked with a fresh key")
    func maskedFragments() {
        var buffer = ByteBuffer()
        let opening = FrameEncoder.open(&buffer, expecting: 4, isMasked: true)
        buffer.append("abcd")
        var keys: [UInt32] = [0x0403_0201, 0x0807_0605]
        FrameEncoder.closeFragmented(opening, in: &buffer, opcode: .binary, size: 2) { keys.removeFirst() }
        let wanted =
            frame(2, Array("ab".utf8), fin: false, mask: [1, 2, 3, 4]) + frame(0, Array("cd".utf8), mask: [5, 6, 7, 8])
        #expect(Array(buffer.bytes) == wanted)
    }
}
