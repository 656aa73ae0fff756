internal import Bytes
internal import Networking

/// The messages of one connection whose compression takes longer than one step of its reactor, and those behind them. Confined to
/// the reactor.
///
/// Each step compresses one piece of a message. Messages are sent in order and in one frame each, as without this queue.
final class OutgoingCompression: Resumable {
    /// A message that waits.
    private final class Message {
        let opcode: WebSocketOpcode
        /// The bytes of the message, up to the shared ones.
        let own: [UInt8]
        let shared: SharedBytes?
        /// The number of compressed bytes of the message.
        var done = 0
        /// The compressed form: of the whole message, or of the shared bytes in pieces that other connections share.
        var compressed = ByteBuffer()
        var pieces: [SharedBytes] = []

        init(_ opcode: WebSocketOpcode, own: [UInt8], shared: SharedBytes?) {
            (self.opcode, self.own, self.shared) = (opcode, own, shared)
        }

        var count: Int { own.count + (shared?.count ?? 0) }

        /// Returns the bytes of a piece, at most up to the start of the shared bytes or the end.
        func withPiece(_ count: Int, _ body: (UnsafeRawBufferPointer) -> Void) {
            guard let shared, done >= own.count else {
                return own.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[done...].prefix(count))) }
            }
            body(UnsafeRawBufferPointer(rebasing: shared.bytes[(done - own.count)...].prefix(count)))
        }
    }

    /// The number of waiting bytes from which all messages are sent uncompressed.
    static let maximumBytes = 16 << 20

    private unowned let socket: WebSocket
    private let compression: MessageCompression
    /// The messages; those before `first` are sent.
    private var messages: [Message?] = []
    private var first = 0
    private var isScheduled = false
    private var bytes = 0
    private var ownBytes = 0

    init(_ socket: WebSocket, _ compression: MessageCompression) {
        self.socket = socket
        self.compression = compression
    }

    /// Queues a message that consists of these bytes and of bytes that many connections share.
    func append(_ opcode: WebSocketOpcode, _ own: [UInt8], shared: SharedBytes? = nil) {
        messages.append(Message(opcode, own: own, shared: shared))
        bytes += own.count + (shared?.count ?? 0)
        ownBytes += own.count
        socket.channel.setDeferredBytes(bytes, own: ownBytes)
        schedule()
    }

    private func schedule() {
        guard !isScheduled else { return }
        isScheduled = true
        socket.reactor.scheduleLongStep(self)
    }

    /// Compresses a piece and sends the messages that are complete.
    func resume() {
        isScheduled = false
        guard next != nil else { return }
        guard bytes <= Self.maximumBytes else { return sendUncompressed() }
        var room = compression.pieceBytes
        while room > 0, let message = next {
            guard message.opcode.isControl || !compression.compresses(message.count) else {
                room -= deflatePiece(of: message)
                guard message.done == message.count else { continue }
                removeFirst()
                send(message)
                continue
            }
            removeFirst()
            // Sending costs far less than compressing, but there may be many small messages.
            room -= 128 + message.count / 32
            socket.sendNow(message.opcode, message.own, shared: message.shared)
        }
        socket.channel.setDeferredBytes(bytes, own: ownBytes)
        if next == nil { socket.outgoing = nil } else { schedule() }
    }

    /// Sends all messages uncompressed: the connection is about to close, or produces more than can be compressed.
    func sendUncompressed() {
        // The peer does not receive the bytes that the compressor has added to its context.
        if let next, next.done > 0 { compression.dropOutgoingContext() }
        while let message = next {
            removeFirst()
            socket.sendNow(message.opcode, message.own, shared: message.shared)
        }
        drop()
    }

    /// Drops all messages, because the connection is closed.
    func drop() {
        (messages, first) = ([], 0)
        (bytes, ownBytes) = (0, 0)
        socket.channel.setDeferredBytes(0, own: 0)
        socket.outgoing = nil
    }

    /// The next message to send; nil if none waits.
    private var next: Message? { first < messages.count ? messages[first] : nil }

    private func removeFirst() {
        guard let message = next else { return }
        messages[first] = nil
        first += 1
        // Half of the array at a time, so that each message is moved once on average.
        if first * 2 > messages.count {
            messages.removeFirst(first)
            first = 0
        }
        bytes -= message.count
        ownBytes -= message.own.count
    }

    /// Whether the compressed form of the shared bytes is shared too.
    private func sharesPieces(of message: Message) -> Bool {
        message.shared != nil && !compression.retainsOutgoing && socket.sendsSharedBytes
    }

    /// Compresses the next piece of a message. Returns the number of compressed bytes.
    private func deflatePiece(of message: Message) -> Int {
        if sharesPieces(of: message), let shared = message.shared {
            // The first bytes are sent uncompressed.
            message.done = max(message.done, message.own.count)
            let (piece, isNew) = compression.deflatedPiece(message.pieces.count, of: shared)
            let count = min(compression.pieceBytes, message.count - message.done)
            message.pieces.append(piece)
            message.done += count
            return isNew ? count : 0
        }
        var count = 0
        message.withPiece(compression.pieceBytes) { piece in
            count = piece.count
            guard count > 0 else { return }
            compression.deflate(piece, isLast: message.done + count == message.count, into: &message.compressed)
        }
        message.done += count
        return count
    }

    private func send(_ message: Message) {
        if sharesPieces(of: message) {
            let count = message.pieces.reduce(MessageCompression.storedHead) { $0 + $1.count }
            guard let shared = message.shared, count < shared.count else {
                return socket.sendNow(message.opcode, message.own, shared: message.shared)
            }
            return socket.sendDeflated(
                message.opcode, headCount: message.own.count, head: { $0.append(message.own) }, deflated: message.pieces
            )
        }
        // With context takeover the peer must receive the bytes that the compressor has added to its context.
        guard compression.retainsOutgoing || message.compressed.count < message.count else {
            return socket.sendNow(message.opcode, message.own, shared: message.shared)
        }
        socket.sendNow(message.opcode, message.compressed.bytes, isCompressed: true)
    }
}

/// Messages that wait for the compression of earlier ones.
extension WebSocket {
    /// Whether bytes that many connections share are sent without a copy.
    var sendsSharedBytes: Bool { maskingKeys == nil && fragmentBytes == 0 }

    /// Queues a message for compression in later steps.
    func queueMessage(
        _ opcode: WebSocketOpcode, _ own: [UInt8], shared: SharedBytes? = nil, by compression: MessageCompression
    ) {
        let queue = outgoing ?? OutgoingCompression(self, compression)
        outgoing = queue
        queue.append(opcode, own, shared: shared)
    }

    /// Sends a message or control frame as it is.
    func sendNow(_ opcode: WebSocketOpcode, _ own: [UInt8], shared: SharedBytes?) {
        guard let shared else {
            return own.withUnsafeBytes { bytes in
                if opcode.isControl { sendControl(opcode, bytes) } else { sendNow(opcode, bytes, isCompressed: false) }
            }
        }
        guard sendsSharedBytes else { return sendNow(opcode, own + Array(shared.bytes), shared: nil) }
        channel.write { buffer in
            let opening = FrameEncoder.open(&buffer, expecting: own.count + shared.count, isMasked: false)
            buffer.append(own)
            FrameEncoder.close(opening, in: &buffer, opcode: opcode, following: shared.count)
        }
        channel.write(shared: shared)
    }

    func sendNow(_ opcode: WebSocketOpcode, _ bytes: UnsafeRawBufferPointer, isCompressed: Bool) {
        let keys = maskingKeys
        channel.write { buffer in
            let opening = FrameEncoder.open(&buffer, expecting: bytes.count, isMasked: keys != nil)
            buffer.append(bytes)
            close(opening, in: &buffer, opcode, isCompressed: isCompressed)
        }
    }
}
