internal import Bytes

/// Puts a message together from the pieces in which it arrives: fragments, and frames cut by the network
/// (RFC 6455 §5.4). Checks the order of fragments, the limits, and text as it comes.
///
/// It holds memory only while a message is in progress.
struct MessageAssembler: ~Copyable {
    /// What is taken for a frame before its bytes are there, at most: a peer that announces much and sends nothing
    /// costs this.
    private static let largestReservation = 64 << 10

    var maximumBytes: Int
    private let maximumFragments: Int
    private var buffer = ByteBuffer()
    private var fragments = 0
    private var validator = UTF8Validator()
    private let compression: MessageCompression?
    private var isCompressed = false
    /// `text` or `binary` while a message is in progress.
    private(set) var opcode: WebSocketOpcode?

    init(maximumBytes: Int, maximumFragments: Int, compression: MessageCompression? = nil) {
        self.compression = compression
        self.maximumBytes = maximumBytes
        self.maximumFragments = maximumFragments
    }

    /// No message is in progress.
    var isIdle: Bool { opcode == nil }

    /// A data frame begins.
    mutating func begin(_ header: FrameHeader) -> ProtocolViolation? {
        if header.opcode == .continuation {
            guard opcode != nil else { return .continuationOfNothing }
        } else {
            guard opcode == nil else { return .messageInsideMessage }
            opcode = header.opcode
            isCompressed = header.isCompressed
        }
        fragments += 1
        guard fragments <= maximumFragments else { return .tooManyFragments }
        guard header.payloadLength <= maximumBytes - buffer.count else { return .messageTooBig }
        buffer.reserve(min(header.payloadLength, Self.largestReservation))
        return nil
    }

    /// Bytes of the frame in progress, which are unmasked on their way when there is a key; `offset` of the frame's came before.
    mutating func append(_ piece: UnsafeRawBufferPointer, maskingKey: UInt32?, offset: Int) -> ProtocolViolation? {
        let before = buffer.count
        var isASCII = false
        if let maskingKey {
            buffer.append(count: piece.count) { target in
                isASCII = !Masking.apply(maskingKey, offset: offset, piece, to: target)
            }
        } else {
            buffer.append(piece)
        }
        if opcode == .text, !isCompressed, !isASCII || !validator.isComplete {
            guard validator.validate(UnsafeRawBufferPointer(rebasing: buffer.bytes[before...])) else {
                return .invalidUTF8
            }
        }
        return nil
    }

    /// The last frame has ended: the message may be taken, and `reset` follows.
    mutating func finish() -> ProtocolViolation? {
        if isCompressed, let violation = inflate() { return violation }
        return validator.isComplete ? nil : .invalidUTF8
    }

    /// Only now, when all of it is there: so all connections of a reactor can use one decompressor in turn.
    private mutating func inflate() -> ProtocolViolation? {
        guard let compression else { return .reservedBits }
        var message = ByteBuffer()
        let isText = opcode == .text
        var validator = UTF8Validator()
        let violation = compression.inflate(buffer.bytes, limit: maximumBytes, into: &message) { piece in
            isText && !validator.validate(piece) ? .invalidUTF8 : nil
        }
        self.validator = validator
        swap(&buffer, &message)
        return violation
    }

    /// Memory that the message so far takes.
    var heldBytes: Int { buffer.capacity }

    /// The message so far; valid until the next call.
    var message: UnsafeMutableRawBufferPointer { buffer.mutableBytes }

    /// Forgets the message and gives its memory back.
    mutating func reset() {
        buffer.reset(keepingAtMost: 0)
        fragments = 0
        validator = UTF8Validator()
        opcode = nil
        isCompressed = false
    }
}
