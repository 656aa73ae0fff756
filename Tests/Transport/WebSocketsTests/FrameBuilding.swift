import Bytes

@testable import WebSockets

/// Bytes of a frame built by hand, byte by byte from RFC 6455 §5.2, so that tests do not depend on `FrameEncoder`.
func frame(
    _ opcode: UInt8, _ payload: [UInt8] = [], fin: Bool = true, mask: [UInt8]? = [0x12, 0x34, 0x56, 0x78]
) -> [UInt8] {
    var bytes: [UInt8] = [(fin ? 0x80 : 0) | opcode]
    let maskBit: UInt8 = mask == nil ? 0 : 0x80
    switch payload.count {
    case ...125: bytes.append(maskBit | UInt8(payload.count))
    case ...0xFFFF: bytes += [maskBit | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
    default: bytes += [maskBit | 127] + (0..<8).map { UInt8(payload.count >> ((7 - $0) * 8) & 0xFF) }
    }
    guard let mask else { return bytes + payload }
    return bytes + mask + payload.enumerated().map { $1 ^ mask[$0 % 4] }
}

func text(_ string: String, fin: Bool = true) -> [UInt8] { frame(1, Array(string.utf8), fin: fin) }

func close(_ code: UInt16, _ reason: String = "") -> [UInt8] {
    frame(8, [UInt8(code >> 8), UInt8(code & 0xFF)] + reason.utf8)
}
