import Bytes
import Testing

@Test("a buffer grows, opens gaps and drops its start")
func bufferEdits() {
    var buffer = ByteBuffer()
    buffer.append(decimal: Int64.min)
    #expect(String(decoding: buffer.bytes, as: UTF8.self) == "-9223372036854775808")
    buffer.removeFirst(18)
    buffer.insertGap(at: 1, count: 100)
    #expect(buffer.count == 102)
    #expect(buffer.bytes[0] == 0x30 && buffer.bytes[101] == 0x38)
    buffer.reset(keepingAtMost: 10)
    #expect(buffer.isEmpty && buffer.capacity == 0)
}
