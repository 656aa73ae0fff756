internal import Bytes

/// Assembles a message from fragments and from frames that the network splits (RFC 6455 §5.4). It validates the order of
/// fragments, the limits, and text as it arrives.
///
/// It holds memory only while a message is in progress.
struct MessageAssembler: ~Copyable {
    /// The maximum memory reserved for a frame before its bytes arrive. This bounds the cost of a peer that announces a large
    /// frame and sends nothing.
    private static let largestReservation = 64 << 10

    let maximumBytes: Int
    private let maximumFragments: Int
    private var buffer = ByteBuffer()
    private var fragments = 0
    private var validator = UTF8Validator()
    private let compression: MessageCompression?
    /// Whether the message in progress is compressed.
    private(set) var isCompressed = false
    /// The type, `text` or `binary`, while a message is in progress.
    private(set) var opcode: WebSocketOpcode?

    init(maximumBytes: Int, maximumFragments: Int, compression: MessageCompression? = nil) {
        self.compression = compression
        self.maximumBytes = maximumBytes
        self.maximumFragments = maximumFragments
    }

    /// True if no message is in progress.
    var isIdle: Bool { opcode == nil }

    /// Starts a data frame.
    mutating func startDataFrame(_ header: FrameHeader) -> ProtocolViolation? {
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

    /// Appends bytes of the current frame, unmasked with the key if there is one; `offset` is the number of its earlier bytes.
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

    /// Ends the last frame of a message that is not compressed. The caller may then read the message and must call `reset`.
    func finish() -> ProtocolViolation? { validator.isComplete ? nil : .invalidUTF8 }

    /// The result of a decompression.
    enum Inflation {
        case done
        /// The message is larger than the given limit; it is unchanged.
        case larger
        case violation(ProtocolViolation)
    }

    /// Decompresses the message, which the caller may then read, and must call `reset`. This happens only when it is complete, so
    /// that all connections of a reactor can share one decompressor.
    ///
    /// - Parameter limit: the size at which it stops; nil for the maximum size of messages.
    mutating func inflate(atMost limit: Int?) -> Inflation {
        guard let compression else { return .violation(.reservedBits) }
        let most = min(limit ?? .max, maximumBytes)
        let isAttempt = most < maximumBytes
        // A decompressor with a context cannot begin again.
        guard !isAttempt || !compression.retainsIncoming else { return .larger }
        var message = ByteBuffer()
        let isText = opcode == .text
        var validator = UTF8Validator()
        let violation = compression.inflate(buffer.bytes, limit: most, into: &message) { piece in
            isText && !validator.validate(piece) ? .invalidUTF8 : nil
        }
        if isAttempt, violation == .messageTooBig { return .larger }
        self.validator = validator
        swap(&buffer, &message)
        if let violation { return .violation(violation) }
        return validator.isComplete ? .done : .violation(.invalidUTF8)
    }

    /// The memory of the partial message in bytes.
    var bufferedBytes: Int { buffer.capacity }

    /// The message so far; valid until the next call.
    var message: UnsafeMutableRawBufferPointer { buffer.mutableBytes }

    /// Discards the message and frees its memory.
    mutating func reset() {
        buffer.reset(keepingAtMost: 0)
        fragments = 0
        validator = UTF8Validator()
        opcode = nil
        isCompressed = false
    }
}
