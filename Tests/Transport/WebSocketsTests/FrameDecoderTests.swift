import Testing

@testable import WebSockets

@Suite("FrameDecoder (RFC 6455 §5.2)")
struct FrameDecoderTests {
    private func decode(_ bytes: [UInt8], role: WebSocketRole = .server, limit: Int = 1 << 20) -> FrameDecoder.Result {
        bytes.withUnsafeBytes { FrameDecoder(role: role, maximumPayload: limit).decode($0) }
    }

    @Test("each form of length is read, at its boundaries", arguments: [0, 1, 125, 126, 127, 0xFFFF, 0x10000, 1 << 20])
    func lengths(_ length: Int) {
        let payload = [UInt8](repeating: 0, count: length)
        for role in [WebSocketRole.server, .client] {
            let mask: [UInt8]? = role == .server ? [1, 2, 3, 4] : nil
            for opcode: WebSocketOpcode in [.text, .binary, .continuation] {
                let bytes = frame(opcode.rawValue, payload, mask: mask)
                let header = FrameHeader(
                    isFinal: true, opcode: opcode, isMasked: mask != nil, maskingKey: mask == nil ? 0 : 0x0403_0201,
                    payloadLength: length)
                #expect(decode(bytes, role: role) == .header(header, length: bytes.count - length))
            }
        }
    }

    @Test("a header truncated at any position is incomplete", arguments: [0, 126, 0x10000])
    func cut(_ length: Int) {
        let bytes = frame(2, [UInt8](repeating: 0, count: length))
        let headerLength = bytes.count - length
        for count in 0..<headerLength { #expect(decode(Array(bytes[..<count])) == .incomplete) }
        #expect(decode(Array(bytes[..<headerLength])) != .incomplete)
    }

    /// The shortest bytes that show each violation; one byte fewer shows none.
    static let violations: [([UInt8], WebSocketRole, ProtocolViolation)] = [
        ([0xC1], .server, .reservedBits), ([0xA1], .server, .reservedBits), ([0x91], .client, .reservedBits),
        ([0x83], .server, .unknownOpcode), ([0x87], .server, .unknownOpcode), ([0x8B], .server, .unknownOpcode),
        ([0x8F], .client, .unknownOpcode),
        ([0x08], .server, .fragmentedControl), ([0x09], .server, .fragmentedControl),
        ([0x0A], .client, .fragmentedControl),
        ([0x81, 0x05], .server, .unmaskedFrame), ([0x89, 0x00], .server, .unmaskedFrame),
        ([0x81, 0x85], .client, .maskedFrame),
        ([0x89, 0xFE], .server, .longControl), ([0x88, 0x7F], .client, .longControl),
        ([0x82, 0xFE, 0x00, 0x7D], .server, .lengthNotMinimal), ([0x02, 0x7E, 0x00, 0x00], .client, .lengthNotMinimal),
        ([0x82, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], .server, .lengthNotMinimal),
        ([0x82, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0], .client, .lengthTooLarge),
        ([0x82, 0xFF, 0, 0, 0, 0, 0, 0x20, 0, 0], .server, .frameTooBig),
    ]

    @Test("each violation is found at the byte that shows it", arguments: violations)
    func violation(_ bytes: [UInt8], _ role: WebSocketRole, _ violation: ProtocolViolation) {
        #expect(decode(bytes, role: role) == .violation(violation))
        #expect(decode(bytes + [UInt8](repeating: 0, count: 20), role: role) == .violation(violation))
        #expect(decode(bytes.dropLast(), role: role) == .incomplete)
    }

    @Test("a payload of the limit is accepted, one byte more is not, in the short forms too")
    func limit() {
        for limit in [10, 125, 126, 1000] {
            let over = [UInt8](repeating: 0, count: limit + 1)
            #expect(decode(frame(2, over), limit: limit) == .violation(.frameTooBig))
            #expect(decode(frame(2, over.dropLast()), limit: limit) != .violation(.frameTooBig))
        }
        #expect(decode(frame(9, [UInt8](repeating: 0, count: 125)), limit: 10) != .violation(.frameTooBig))
    }
}
