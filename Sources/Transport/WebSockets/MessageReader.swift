internal import Bytes

/// Reads messages and control frames from the bytes of a connection. It does no I/O: bytes in, events out.
///
/// A frame that is complete in the given bytes is unmasked there and returned as a slice, without a copy. Only fragments and
/// frames that the network splits are buffered.
package struct MessageReader: ~Copyable {
    /// An event. Payloads are in the given bytes or in the reader, and valid until the next call.
    package enum Event {
        /// All bytes are consumed.
        case needsMore
        case message(WebSocketOpcode, UnsafeMutableRawBufferPointer)
        /// A message is complete whose handling may take long: it is compressed, or larger than `largeMessage`. `takeMessage`
        /// returns it; until then every call returns this event.
        case complete
        /// A `ping`, `pong` or `close`.
        case control(WebSocketOpcode, UnsafeMutableRawBufferPointer)
        /// A protocol violation. The bytes after it are meaningless.
        case violation(ProtocolViolation)
    }

    /// The position of the reader within a frame.
    private enum Stage {
        /// The next byte starts a frame.
        case header
        /// The first bytes of a header are in `scratch`.
        case partOfHeader
        /// Within the payload of `frame`, of which `received` bytes have arrived.
        case payload
        /// The message of an event `complete` has not been taken.
        case complete
        /// The payload of the last event is in the reader's memory, to be freed now.
        case payloadDelivered
    }

    /// The size in bytes above which a message is not delivered at once.
    package static let largeMessage = 16 << 10

    private var decoder: FrameDecoder
    private var stage = Stage.header
    private var frame = FrameHeader(isFinal: true, opcode: .continuation, payloadLength: 0)
    private var received = 0
    /// A part of a header or of a control frame's payload.
    private var scratch = ByteBuffer()
    private var assembler: MessageAssembler
    /// True if a beat has seen the current incomplete message or frame.
    private var isMarkedIncomplete = false

    init(role: WebSocketRole, limits: WebSocketLimits, compression: MessageCompression?) {
        decoder = FrameDecoder(
            role: role, maximumPayload: min(limits.frameBytes, limits.messageBytes),
            allowsCompression: compression != nil)
        assembler = MessageAssembler(
            maximumBytes: limits.messageBytes, maximumFragments: limits.fragmentsPerMessage, compression: compression)
    }

    package init(role: WebSocketRole, limits: WebSocketLimits) {
        self.init(role: role, limits: limits, compression: nil)
    }

    /// The memory of the incomplete message in bytes.
    var bufferedBytes: Int { assembler.bufferedBytes }

    /// True if a message or a frame is incomplete.
    var isUnfinished: Bool { stage == .partOfHeader || stage == .payload || !assembler.isIdle && stage == .header }

    /// Returns whether the incomplete message or frame was incomplete at the last beat. Called at each beat.
    mutating func isOlderThanLastBeat() -> Bool {
        defer { isMarkedIncomplete = isUnfinished }
        return isUnfinished && isMarkedIncomplete
    }

    /// Returns the next event in `bytes`, which are consumed from their start and changed in place.
    @inline(__always)
    package mutating func next(_ bytes: inout UnsafeMutableRawBufferPointer) -> Event {
        guard stage == .header, assembler.isIdle,
            case .header(let header, let length) = decoder.decode(UnsafeRawBufferPointer(bytes)),
            header.isFinal, !header.isCompressed, !header.opcode.isControl, header.opcode != .continuation,
            header.payloadLength <= Self.largeMessage, bytes.count - length >= header.payloadLength
        else { return nextInPieces(&bytes) }
        let end = length + header.payloadLength
        let payload = UnsafeMutableRawBufferPointer(rebasing: bytes[length..<end])
        bytes = UnsafeMutableRawBufferPointer(rebasing: bytes[end...])
        let isASCII = header.isMasked && !Masking.apply(header.maskingKey, to: payload)
        if header.opcode == .text, !isASCII {
            var validator = UTF8Validator()
            guard validator.validate(UnsafeRawBufferPointer(payload)), validator.isComplete else {
                return .violation(.invalidUTF8)
            }
        }
        return .message(header.opcode, payload)
    }

    @inline(never)
    private mutating func nextInPieces(_ bytes: inout UnsafeMutableRawBufferPointer) -> Event {
        while true {
            switch stage {
            case .payloadDelivered:
                scratch.reset(keepingAtMost: 0)
                if !frame.opcode.isControl { assembler.reset() }
                stage = .header
                guard assembler.isIdle else { continue }
                isMarkedIncomplete = false
                // The frame after a split message is usually complete in the bytes.
                return next(&bytes)
            case .header, .partOfHeader:
                switch readHeader(&bytes) {
                case .incomplete: return .needsMore
                case .violation(let violation): return .violation(violation)
                case .header(let header, _):
                    if !header.opcode.isControl, let violation = assembler.startDataFrame(header) {
                        return .violation(violation)
                    }
                    frame = header
                    received = 0
                    stage = .payload
                }
            case .payload:
                if let event = readPayload(&bytes) { return event }
            case .complete: return .complete
            }
        }
    }

    /// Whether a message waits for `takeMessage`.
    var hasCompleteMessage: Bool { stage == .complete }

    /// Returns the message of an event `complete`, decompressed. Returns nil, without an effect, if it is larger than `limit`.
    package mutating func takeMessage(atMost limit: Int?) -> Event? {
        guard stage == .complete else { return .needsMore }
        guard assembler.isCompressed else {
            if let limit, assembler.message.count > limit { return nil }
            stage = .payloadDelivered
            return .message(assembler.opcode ?? .binary, assembler.message)
        }
        switch assembler.inflate(atMost: limit) {
        case .larger: return nil
        case .violation(let violation): return .violation(violation)
        case .done:
            stage = .payloadDelivered
            return .message(assembler.opcode ?? .binary, assembler.message)
        }
    }

    private mutating func readHeader(_ bytes: inout UnsafeMutableRawBufferPointer) -> FrameDecoder.Result {
        if stage == .header {
            let result = decoder.decode(UnsafeRawBufferPointer(bytes))
            switch result {
            case .header(_, let length):
                _ = consume(length, from: &bytes)
            case .incomplete where !bytes.isEmpty:
                scratch.append(UnsafeRawBufferPointer(consume(bytes.count, from: &bytes)))
                stage = .partOfHeader
            case .incomplete, .violation: break
            }
            return result
        }
        while !bytes.isEmpty {
            scratch.append(UnsafeRawBufferPointer(consume(1, from: &bytes)))
            let result = decoder.decode(scratch.bytes)
            if case .incomplete = result { continue }
            scratch.reset(keepingAtMost: 0)
            return result
        }
        return .incomplete
    }

    /// Consumes the available part of the payload. Returns nil if the next frame can be read immediately.
    private mutating func readPayload(_ bytes: inout UnsafeMutableRawBufferPointer) -> Event? {
        let piece = consume(min(bytes.count, frame.payloadLength - received), from: &bytes)
        let before = received
        received += piece.count
        let isWhole = received == frame.payloadLength

        if frame.opcode.isControl {
            if frame.isMasked { Masking.apply(frame.maskingKey, offset: before, to: piece) }
            if isWhole && scratch.isEmpty {
                stage = .header
                if assembler.isIdle { isMarkedIncomplete = false }
                return .control(frame.opcode, piece)
            }
            scratch.append(UnsafeRawBufferPointer(piece))
            guard isWhole else { return .needsMore }
            stage = .payloadDelivered
            return .control(frame.opcode, scratch.mutableBytes)
        }

        let key = frame.isMasked ? frame.maskingKey : nil
        if let violation = assembler.append(UnsafeRawBufferPointer(piece), maskingKey: key, offset: before) {
            return .violation(violation)
        }
        guard isWhole else { return .needsMore }
        guard frame.isFinal else {
            stage = .header
            return nil
        }
        if !assembler.isCompressed, let violation = assembler.finish() { return .violation(violation) }
        guard !assembler.isCompressed, assembler.message.count <= Self.largeMessage else {
            stage = .complete
            return .complete
        }
        stage = .payloadDelivered
        return .message(assembler.opcode ?? .binary, assembler.message)
    }

    private func consume(
        _ count: Int, from bytes: inout UnsafeMutableRawBufferPointer
    ) -> UnsafeMutableRawBufferPointer {
        let taken = UnsafeMutableRawBufferPointer(rebasing: bytes[..<count])
        bytes = UnsafeMutableRawBufferPointer(rebasing: bytes[count...])
        return taken
    }
}
