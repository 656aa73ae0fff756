/// Frames of a client. Their masking key is 0, which leaves the payload unchanged.
enum FrameBytes {
    static func frame(first: UInt8 = 0x81, _ payload: [UInt8], isMasked: Bool = true, claimed: Int? = nil) -> [UInt8] {
        let mask: UInt8 = isMasked ? 0x80 : 0
        let count = claimed ?? payload.count
        var bytes = [first]
        bytes.reserveCapacity(payload.count + 14)
        switch count {
        case 0...125: bytes.append(mask | UInt8(count))
        case 126...0xFFFF: bytes += [mask | 126, UInt8(count >> 8), UInt8(count & 0xFF)]
        default: bytes += [mask | 127] + (0..<8).map { UInt8(truncatingIfNeeded: count >> ((7 - $0) * 8)) }
        }
        if isMasked { bytes += [0, 0, 0, 0] }
        return bytes + payload
    }

    static func fragments(of payload: [UInt8], size: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        var start = 0
        repeat {
            let end = min(start + size, payload.count)
            let first: UInt8 = (start == 0 ? 1 : 0) | (end == payload.count ? 0x80 : 0)
            bytes += frame(first: first, Array(payload[start..<end]))
            start = end
        } while start < payload.count
        return bytes
    }
}

/// Finds the messages in a server's output.
struct ServerFrames {
    private var bytes: [UInt8] = []
    private var start = 0
    /// The content of the close frame; nil before it arrives.
    private(set) var closing: String?

    mutating func append(_ new: UnsafeRawBufferPointer) {
        if start > 1 << 20 || start == bytes.count {
            bytes.removeFirst(start)
            start = 0
        }
        bytes.append(contentsOf: new)
    }

    /// The bytes before the frames: the response to the upgrade.
    mutating func takeHead() -> [UInt8]? {
        guard bytes.count >= 4 else { return nil }
        for end in 4...bytes.count where bytes[end - 4..<end].elementsEqual([13, 10, 13, 10]) {
            start = end
            return Array(bytes[..<end])
        }
        return nil
    }

    /// The next message, complete or truncated: its first 400 bytes identify the call.
    mutating func next() -> [UInt8]? {
        while true {
            let rest = bytes[start...]
            guard rest.count >= 2 else { return nil }
            var (head, count) = (2, Int(rest[start + 1] & 0x7F))
            if count >= 126 {
                let width = count == 126 ? 2 : 8
                head += width
                guard rest.count >= head else { return nil }
                count = rest[(start + 2)..<(start + head)].reduce(0) { $0 << 8 | Int($1) }
            }
            guard rest.count >= head + count else { return nil }
            let payload = rest[(start + head)..<(start + head + count)]
            let opcode = rest[start] & 0x0F
            start += head + count
            if opcode == 8 {
                let code = payload.prefix(2).reduce(0) { $0 << 8 | Int($1) }
                closing = "\(code) \(String(decoding: payload.dropFirst(2), as: UTF8.self))"
            } else if opcode < 3 {
                return Array(payload.prefix(400))
            }
        }
    }
}
