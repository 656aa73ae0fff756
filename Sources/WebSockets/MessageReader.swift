internal import Bytes

/// Reads messages and control frames from the bytes of a connection. Pure: bytes in, events out.
///
/// A frame that lies whole in the given bytes is unmasked there and handed out as a slice of them: no copy and no
/// memory of its own. Only what the network cut, and fragments, are gathered.
package struct MessageReader: ~Copyable {
    /// Payloads lie in the bytes that were given or in the reader; they are valid until the next call.
    package enum Event {
        /// All bytes are consumed.
        case needsMore
        case message(WebSocketOpcode, UnsafeMutableRawBufferPointer)
        /// `ping`, `pong` or `close`.
        case control(WebSocketOpcode, UnsafeMutableRawBufferPointer)
        /// Nothing that follows has a meaning.
        case violation(ProtocolViolation)
    }

    private enum Stage {
        /// The next byte begins a frame.
        case header
        /// The first bytes of a header are in `scratch`.
        case partOfHeader
        /// The payload of `frame`, of which `received` bytes have come.
        case payload
        /// The last event's payload lies in our memory, to be freed now.
        case handedOut
    }

    private var decoder: FrameDecoder
    private var stage = Stage.header
    private var frame = FrameHeader(isFinal: true, opcode: .continuation, payloadLength: 0)
    private var received = 0
    /// A part of a header or of a control frame's payload.
    private var scratch = ByteBuffer()
    private var assembler: MessageAssembler
    /// A beat has seen what is unfinished now.
    private var wasSeen = false

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

    /// From the next frame on.
    mutating func take(upTo bytes: Int) {
        decoder.maximumPayload = bytes
        assembler.maximumBytes = bytes
    }

    /// Memory that what is not whole takes.
    var heldBytes: Int { assembler.heldBytes }

    /// Whether something is not whole: a message, or a frame.
    var isUnfinished: Bool { stage == .partOfHeader || stage == .payload || !assembler.isIdle && stage == .header }

    /// To be asked at each beat: whether what is unfinished was so at the beat before.
    mutating func isOlderThanLastBeat() -> Bool {
        defer { wasSeen = isUnfinished }
        return isUnfinished && wasSeen
    }

    /// The next event in `bytes`, which are consumed from their start and changed in place.
    @inline(__always)
    package mutating func next(_ bytes: inout UnsafeMutableRawBufferPointer) -> Event {
        guard stage == .header, assembler.isIdle,
            case .header(let header, let length) = decoder.decode(UnsafeRawBufferPointer(bytes)),
            header.isFinal, !header.isCompressed, !header.opcode.isControl, header.opcode != .continuation,
            bytes.count - length >= header.payloadLength
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
            case .handedOut:
                scratch.reset(keepingAtMost: 0)
                if !frame.opcode.isControl { assembler.reset() }
                stage = .header
                guard assembler.isIdle else { continue }
                wasSeen = false
                // What follows a message that was cut lies whole in the bytes more often than not.
                return next(&bytes)
            case .header, .partOfHeader:
                switch readHeader(&bytes) {
                case .incomplete: return .needsMore
                case .violation(let violation): return .violation(violation)
                case .header(let header, _):
                    if !header.opcode.isControl, let violation = assembler.begin(header) {
                        return .violation(violation)
                    }
                    frame = header
                    received = 0
                    stage = .payload
                }
            case .payload:
                if let event = readPayload(&bytes) { return event }
            }
        }
    }

    private mutating func readHeader(_ bytes: inout UnsafeMutableRawBufferPointer) -> FrameDecoder.Result {
        if stage == .header {
            let result = decoder.decode(UnsafeRawBufferPointer(bytes))
            switch result {
            case .header(_, let length):
                _ = take(length, from: &bytes)
            case .incomplete where !bytes.isEmpty:
                scratch.append(UnsafeRawBufferPointer(take(bytes.count, from: &bytes)))
                stage = .partOfHeader
            case .incomplete, .violation: break
            }
            return result
        }
        while !bytes.isEmpty {
            scratch.append(UnsafeRawBufferPointer(take(1, from: &bytes)))
            let result = decoder.decode(scratch.bytes)
            if case .incomplete = result { continue }
            scratch.reset(keepingAtMost: 0)
            return result
        }
        return .incomplete
    }

    /// Takes what has come of the payload; nil when the next frame follows at once.
    private mutating func readPayload(_ bytes: inout UnsafeMutableRawBufferPointer) -> Event? {
        let piece = take(min(bytes.count, frame.payloadLength - received), from: &bytes)
        let before = received
        received += piece.count
        let isWhole = received == frame.payloadLength

        if frame.opcode.isControl {
            if frame.isMasked { Masking.apply(frame.maskingKey, offset: before, to: piece) }
            if isWhole && scratch.isEmpty {
                stage = .header
                if assembler.isIdle { wasSeen = false }
                return .control(frame.opcode, piece)
            }
            scratch.append(UnsafeRawBufferPointer(piece))
            guard isWhole else { return .needsMore }
            stage = .handedOut
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
        if let violation = assembler.finish() { return .violation(violation) }
        stage = .handedOut
        return .message(assembler.opcode ?? .binary, assembler.message)
    }

    private func take(
        _ count: Int, from bytes: inout UnsafeMutableRawBufferPointer
    ) -> UnsafeMutableRawBufferPointer {
        let taken = UnsafeMutableRawBufferPointer(rebasing: bytes[..<count])
        bytes = UnsafeMutableRawBufferPointer(rebasing: bytes[count...])
        return taken
    }
}
