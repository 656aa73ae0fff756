internal import Bytes

/// The compression state of one connection. Confined to its reactor.
final class MessageCompression {
    let threshold: Int
    private let level: Int
    let codecs: CompressionCodecs
    private let outgoingBits: Int
    private let incomingBits: Int
    /// Whether the compressor has a context of earlier messages.
    let retainsOutgoing: Bool
    /// Whether the decompressor has a context of earlier messages.
    let retainsIncoming: Bool
    /// The connection's own codecs, used only with context takeover, from the first message on.
    private var ownDeflater: Deflater?
    private var ownInflater: Inflater?

    init(
        _ agreement: NegotiatedCompression, role: WebSocketRole, settings: WebSocketCompression,
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
        (retainsOutgoing, retainsIncoming) = role == .server ? (serverKeeps, clientKeeps) : (clientKeeps, serverKeeps)
    }

    /// Appends the decompressed message to `target`, checked piece by piece.
    func inflate(
        _ bytes: UnsafeRawBufferPointer, limit: Int, into target: inout ByteBuffer,
        check: (UnsafeRawBufferPointer) -> ProtocolViolation?
    ) -> ProtocolViolation? {
        guard retainsIncoming else {
            return codecs.inflater.inflate(bytes, resetting: true, limit: limit, into: &target, check: check)
        }
        // zlib needs at least 9 bits, which also decodes a window of 8 bits.
        let inflater = ownInflater ?? Inflater(windowBits: max(incomingBits, 9))
        ownInflater = inflater
        return inflater.inflate(bytes, resetting: false, limit: limit, into: &target, check: check)
    }

    // MARK: Steps

    /// The number of bytes that one step compresses: about half a millisecond of work.
    var pieceBytes: Int { level <= Self.fastestLevels ? 32 << 10 : 8 << 10 }
    /// The levels up to which a byte takes about the same time.
    private static let fastestLevels = 4

    /// Returns whether messages of this size are compressed.
    func compresses(_ count: Int) -> Bool {
        // zlib cannot limit its window to 256 bytes; sending uncompressed is always allowed.
        count >= threshold && count <= Int(UInt32.max) && outgoingBits >= 9
    }

    /// Returns whether a message is sent in this step of the reactor. Otherwise it is compressed in later steps, in pieces.
    func sendsNow(_ count: Int, in turn: UInt64) -> Bool {
        guard compresses(count) else { return true }
        guard count <= pieceBytes else { return false }
        return codecs.takeRoom(for: level <= Self.fastestLevels ? count : 4 * count, in: turn)
    }

    /// Appends the compressed form of a piece of a message.
    func deflate(_ piece: UnsafeRawBufferPointer, isLast: Bool, into target: inout ByteBuffer) {
        codecs.pieceCount += 1
        // Other messages use a shared compressor between the pieces, so each piece starts without context.
        outgoingDeflater().deflate(piece, resetting: !retainsOutgoing, isLast: isLast, into: &target)
    }

    /// Returns the compressed form of a piece of shared bytes, created once for all connections with the same level and window, and
    /// whether it was created now.
    func deflatedPiece(_ index: Int, of shared: SharedBytes) -> (SharedBytes, isNew: Bool) {
        let size = pieceBytes
        let start = index * size
        let end = min(start + size, shared.count)
        var isNew = false
        let piece = shared.derived(form | index << 16) { bytes in
            isNew = true
            return deflated(UnsafeRawBufferPointer(rebasing: bytes[start..<end]), isLast: end == shared.count)
        }
        return (piece, isNew)
    }

    private var form: Int { level << 8 | outgoingBits }

    private func deflated(_ bytes: UnsafeRawBufferPointer, isLast: Bool = true) -> SharedBytes {
        codecs.scratch.removeAll()
        deflate(bytes, isLast: isLast, into: &codecs.scratch)
        defer { codecs.scratch.reset(keepingAtMost: CompressionCodecs.largestScratch) }
        return SharedBytes(codecs.scratch.bytes)
    }

    /// Drops the context of earlier messages.
    func dropOutgoingContext() { ownDeflater?.reset() }

    private func outgoingDeflater() -> Deflater {
        guard retainsOutgoing else { return codecs.deflater(level: level, windowBits: outgoingBits) }
        let deflater = ownDeflater ?? Deflater(level: level, windowBits: outgoingBits)
        ownDeflater = deflater
        return deflater
    }

    // MARK: Whole messages

    /// Replaces the bytes of `buffer` from `start` on with their compressed form. Returns false, without a change, below the
    /// threshold or if the compressed form is not smaller.
    func deflate(_ buffer: inout ByteBuffer, from start: Int) -> Bool {
        let count = buffer.count - start
        guard compresses(count) else { return false }
        codecs.scratch.removeAll()
        outgoingDeflater().deflate(
            UnsafeRawBufferPointer(rebasing: buffer.bytes[start...]), resetting: !retainsOutgoing, into: &codecs.scratch
        )
        defer { codecs.scratch.reset(keepingAtMost: CompressionCodecs.largestScratch) }
        // With context takeover the peer must receive the message that the compressor has added to its context.
        guard retainsOutgoing || codecs.scratch.count < count else { return false }
        buffer.truncate(to: start)
        buffer.append(codecs.scratch.bytes)
        return true
    }

    /// Returns the compressed form of shared bytes, created once for all connections with the same level and window; nil for a
    /// connection with its own context.
    ///
    /// It does not refer to earlier bytes, so any blocks may precede it.
    func deflatedOnce(_ shared: SharedBytes) -> SharedBytes? {
        guard !retainsOutgoing, outgoingBits >= 9, 1...Int(UInt32.max) ~= shared.count else { return nil }
        return shared.derived(form) { deflated($0) }
    }

    /// Returns whether shared bytes of at most one piece were compressed already.
    func hasDeflated(_ shared: SharedBytes) -> Bool {
        !retainsOutgoing && shared.count <= pieceBytes && shared.hasDerived(form)
    }

    /// The header size of a stored block (RFC 1951 §3.2.4), which precedes its `count` bytes.
    static let storedHead = 5
    static let largestStored = 0xFFFF
    static func putStoredHead(count: Int, at target: UnsafeMutableRawPointer) {
        let length = UInt16(count)
        target.storeBytes(of: 0, as: UInt8.self)
        target.storeBytes(of: length.littleEndian, toByteOffset: 1, as: UInt16.self)
        target.storeBytes(of: (~length).littleEndian, toByteOffset: 3, as: UInt16.self)
    }
}
