internal import Bytes

/// The compression of one connection. Confined to its reactor.
final class MessageCompression {
    let threshold: Int
    private let level: Int
    private let codecs: CompressionCodecs
    private let outgoingBits: Int
    private let incomingBits: Int
    private let keepsOutgoing: Bool
    private let keepsIncoming: Bool
    /// With context takeover alone, and from the first message on.
    private var ownDeflater: Deflater?
    private var ownInflater: Inflater?

    init(
        _ agreement: CompressionAgreement, role: WebSocketRole, settings: WebSocketCompression,
        codecs: CompressionCodecs
    ) {
        threshold = settings.threshold
        level = settings.level
        self.codecs = codecs
        let serverBits = agreement.serverMaxWindowBits ?? 15
        let clientBits = agreement.clientMaxWindowBits ?? 15
        let serverKeeps = !agreement.serverNoContextTakeover
        let clientKeeps = !agreement.clientNoContextTakeover
        (outgoingBits, incomingBits) = role == .server ? (serverBits, clientBits) : (clientBits, serverBits)
        (keepsOutgoing, keepsIncoming) = role == .server ? (serverKeeps, clientKeeps) : (clientKeeps, serverKeeps)
    }

    /// What a message was before it was compressed, appended to `target` and checked piece by piece.
    func inflate(
        _ bytes: UnsafeRawBufferPointer, limit: Int, into target: inout ByteBuffer,
        check: (UnsafeRawBufferPointer) -> ProtocolViolation?
    ) -> ProtocolViolation? {
        guard keepsIncoming else {
            return codecs.inflater.inflate(bytes, resetting: true, limit: limit, into: &target, check: check)
        }
        // 8 bits for the sender are no fewer than 9 for zlib.
        let inflater = ownInflater ?? Inflater(windowBits: max(incomingBits, 9))
        ownInflater = inflater
        return inflater.inflate(bytes, resetting: false, limit: limit, into: &target, check: check)
    }

    /// Puts the compressed form in the place of the bytes of `buffer` from `start` on. Returns whether it did: not when
    /// they are below the threshold, and not when they would become more.
    func deflate(_ buffer: inout ByteBuffer, from start: Int) -> Bool {
        let count = buffer.count - start
        // zlib cannot keep to a window of 256 bytes; not to compress is always allowed.
        guard count >= threshold, count <= Int(UInt32.max), outgoingBits >= 9 else { return false }
        codecs.scratch.removeAll()
        let deflater: Deflater
        if keepsOutgoing {
            deflater = ownDeflater ?? Deflater(level: level, windowBits: outgoingBits)
            ownDeflater = deflater
        } else {
            deflater = codecs.deflater(level: level, windowBits: outgoingBits)
        }
        deflater.deflate(
            UnsafeRawBufferPointer(rebasing: buffer.bytes[start...]), resetting: !keepsOutgoing, into: &codecs.scratch)
        defer { codecs.scratch.reset(keepingAtMost: CompressionCodecs.largestScratch) }
        // What the compressor remembers of now, the peer must get to know.
        guard keepsOutgoing || codecs.scratch.count < count else { return false }
        buffer.truncate(to: start)
        buffer.append(codecs.scratch.bytes)
        return true
    }

    /// The compressed form of bytes that many connections send, made once for all with the same level and window; nil
    /// when this connection has a context of its own.
    ///
    /// It refers to nothing before it, so any blocks may stand in front.
    func deflatedOnce(_ shared: SharedBytes) -> SharedBytes? {
        guard !keepsOutgoing, outgoingBits >= 9, 1...Int(UInt32.max) ~= shared.count else { return nil }
        return shared.derived(level << 8 | outgoingBits) { bytes in
            codecs.scratch.removeAll()
            codecs.deflater(level: level, windowBits: outgoingBits)
                .deflate(bytes, resetting: true, into: &codecs.scratch)
            defer { codecs.scratch.reset(keepingAtMost: CompressionCodecs.largestScratch) }
            return SharedBytes(codecs.scratch.bytes)
        }
    }

    /// The head of a block that is not compressed (RFC 1951 §3.2.4), for `count` bytes, which follow it.
    static let storedHead = 5
    static let largestStored = 0xFFFF
    static func putStoredHead(count: Int, at target: UnsafeMutableRawPointer) {
        let length = UInt16(count)
        target.storeBytes(of: 0, as: UInt8.self)
        target.storeBytes(of: length.littleEndian, toByteOffset: 1, as: UInt16.self)
        target.storeBytes(of: (~length).littleEndian, toByteOffset: 3, as: UInt16.self)
    }
}
