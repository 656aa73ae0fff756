package import Bytes
internal import Networking

extension WebSocket {
    /// Sends a message whose payload `body` appends directly to the connection's output, without a copy.
    ///
    /// `expecting` is the approximate payload size; an estimate in the wrong length class (up to 125, up to 65,535, more) costs a
    /// move. It sends nothing if `body` throws, and does not call `body` if the socket is not open.
    @inline(__always)
    package func send(
        _ opcode: WebSocketOpcode, expecting: Int = 0, _ body: (inout ByteBuffer) throws -> Void
    ) rethrows {
        assert(!opcode.isControl && opcode != .continuation, "a message is text or binary")
        guard machine.phase == .open else { return }
        let keys = maskingKeys
        let isPlain = fragmentBytes == 0 && compression == nil
        try channel.write { buffer in
            let opening = FrameEncoder.open(&buffer, expecting: expecting, isMasked: keys != nil)
            do {
                try body(&buffer)
            } catch {
                buffer.truncate(to: opening.start)
                throw error
            }
            if isPlain {
                FrameEncoder.close(opening, in: &buffer, opcode: opcode, maskingKey: keys?.next())
            } else {
                closeSpecially(opening, in: &buffer, opcode)
            }
        }
    }

    /// Ends a message that is compressed or fragmented. A message whose compression takes long is removed and queued.
    @inline(never)
    package func closeSpecially(
        _ opening: FrameEncoder.Opening, in buffer: inout ByteBuffer, _ opcode: WebSocketOpcode
    ) {
        let start = opening.start + opening.room
        if let compression, outgoing != nil || !compression.sendsNow(buffer.count - start, in: reactor.turns.count) {
            queueMessage(opcode, Array(buffer.bytes[start...]), by: compression)
            return buffer.truncate(to: opening.start)
        }
        close(opening, in: &buffer, opcode, isCompressed: compression?.deflate(&buffer, from: start) ?? false)
    }

    func close(
        _ opening: FrameEncoder.Opening, in buffer: inout ByteBuffer, _ opcode: WebSocketOpcode, isCompressed: Bool
    ) {
        let nextKey = maskingKeys.map { $0.next }
        if fragmentBytes == 0 {
            FrameEncoder.close(
                opening, in: &buffer, opcode: opcode, isCompressed: isCompressed, maskingKey: nextKey?())
        } else {
            FrameEncoder.closeFragmented(
                opening, in: &buffer, opcode: opcode, size: fragmentBytes, isCompressed: isCompressed,
                nextKey: nextKey)
        }
    }

    /// Sends a message; `text` must be UTF-8. Only on the reactor.
    public func send(_ opcode: WebSocketOpcode, _ bytes: UnsafeRawBufferPointer) {
        send(opcode, expecting: bytes.count) { $0.append(bytes) }
    }

    /// Sends bytes of the message that the handler is processing, changed or not; `text` must be UTF-8. Only on the reactor,
    /// before the handler returns. The bytes must not change afterwards. Large messages are sent without a copy if possible.
    public func send(_ opcode: WebSocketOpcode, received bytes: UnsafeMutableRawBufferPointer) {
        let bytes = UnsafeRawBufferPointer(bytes)
        guard bytes.count >= ByteChannel.smallestLent, maskingKeys == nil, fragmentBytes == 0, compression == nil else {
            return send(opcode, expecting: bytes.count) { $0.append(bytes) }
        }
        guard machine.phase == .open else { return }
        channel.write { buffer in
            let opening = FrameEncoder.open(&buffer, expecting: bytes.count, isMasked: false)
            FrameEncoder.close(opening, in: &buffer, opcode: opcode, following: bytes.count)
        }
        channel.write(read: bytes)
    }

    /// Sends a text message. Callable from any thread. Does nothing when the connection is closing.
    public func send(text: String) {
        guard reactor.isCurrent else { return reactor.execute { self.send(text: text) } }
        send(.text, expecting: text.utf8.count) { $0.append(utf8: text) }
    }

    /// Sends a binary message. Callable from any thread. Does nothing when the connection is closing.
    public func send(binary bytes: [UInt8]) {
        guard reactor.isCurrent else { return reactor.execute { self.send(binary: bytes) } }
        send(.binary, expecting: bytes.count) { $0.append(bytes) }
    }

    /// Sends one message that consists of the bytes that `head` appends, followed by bytes that many connections share. A server
    /// does not copy large ones; a client must, to mask them.
    package func sendShared(
        _ opcode: WebSocketOpcode, headCount: Int, head: (inout ByteBuffer) -> Void, shared: SharedBytes
    ) {
        guard maskingKeys == nil, fragmentBytes == 0 || compression == nil else {
            return send(opcode, expecting: headCount + shared.count) {
                head(&$0)
                $0.append(shared.bytes)
            }
        }
        guard machine.phase == .open else { return }
        if fragmentBytes > 0 {
            return sendShared(opcode, headCount: headCount, head: head, shared: shared, inFragmentsOf: fragmentBytes)
        }
        if let compression, outgoing != nil || headCount + shared.count >= compression.threshold {
            guard outgoing == nil,
                compression.hasDeflated(shared) || compression.sendsNow(shared.count, in: reactor.turns.count)
            else {
                var own = ByteBuffer(capacity: headCount)
                head(&own)
                return queueMessage(opcode, Array(own.bytes), shared: shared, by: compression)
            }
            guard let deflated = compression.deflatedOnce(shared) else {
                return send(opcode, expecting: headCount + shared.count) {
                    head(&$0)
                    $0.append(shared.bytes)
                }
            }
            if deflated.count + MessageCompression.storedHead < shared.count {
                return sendDeflated(opcode, headCount: headCount, head: head, deflated: [deflated])
            }
        }
        channel.write { buffer in
            let opening = FrameEncoder.open(&buffer, expecting: headCount + shared.count, isMasked: false)
            head(&buffer)
            FrameEncoder.close(opening, in: &buffer, opcode: opcode, following: shared.count)
        }
        channel.write(shared: shared)
    }

    /// Sends a head as the first fragment, followed by fragments that many connections share.
    private func sendShared(
        _ opcode: WebSocketOpcode, headCount: Int, head: (inout ByteBuffer) -> Void, shared: SharedBytes,
        inFragmentsOf size: Int
    ) {
        guard headCount <= size else {
            return send(opcode, expecting: headCount + shared.count) {
                head(&$0)
                $0.append(shared.bytes)
            }
        }
        // Other forms have numbers of -1 and more.
        let rest = shared.derived(-1 - size) { bytes in
            var frames = ByteBuffer()
            FrameEncoder.appendFragments(bytes, size: size, opcode: .continuation, to: &frames)
            return SharedBytes(frames.bytes)
        }
        channel.write { buffer in
            let opening = FrameEncoder.open(&buffer, expecting: headCount, isMasked: false)
            head(&buffer)
            FrameEncoder.close(opening, in: &buffer, opcode: opcode, isFinal: false)
        }
        channel.write(shared: rest)
    }

    /// Sends a head as a stored block, followed by compressed blocks that many connections share.
    func sendDeflated(
        _ opcode: WebSocketOpcode, headCount: Int, head: (inout ByteBuffer) -> Void, deflated: [SharedBytes]
    ) {
        let storedHead = MessageCompression.storedHead
        let deflatedCount = deflated.reduce(0) { $0 + $1.count }
        channel.write { buffer in
            let opening = FrameEncoder.open(
                &buffer, expecting: storedHead + headCount + deflatedCount, isMasked: false)
            let block = buffer.count
            buffer.append(count: storedHead) { _ in }
            head(&buffer)
            let count = buffer.count - block - storedHead
            precondition(count <= MessageCompression.largestStored, "invalid frame head of \(count) bytes")
            MessageCompression.putStoredHead(count: count, at: buffer.mutableBytes.baseAddress! + block)
            FrameEncoder.close(
                opening, in: &buffer, opcode: opcode, isCompressed: true, following: deflatedCount)
        }
        for piece in deflated { channel.write(shared: piece) }
    }

    /// Sends all output of `body` on this socket in one system call. Only on the reactor.
    package func inOneWrite(_ body: () -> Void) { channel.corked(body) }

    /// Works like `inOneWrite(_:)`, and passes the frames to `observer` before they are sent, so that other sockets can send them
    /// too. The call of `observer` is not guaranteed.
    package func inOneWrite(_ body: () -> Void, observing observer: (UnsafeRawBufferPointer) -> Void) {
        channel.corked(body, observing: observer)
    }

    /// True if frames of this socket are identical to those of all other sockets with a true value.
    package var framesAlike: Bool { maskingKeys == nil && fragmentBytes == 0 && compression == nil }

    /// Sends frames that were passed to `observer` for another socket. Does nothing when the connection is closing.
    package func sendSharedFrames(_ frames: UnsafeRawBufferPointer) {
        guard machine.phase == .open else { return }
        channel.writeShared(frames)
    }

    /// Sends a ping of at most 125 bytes. Callable from any thread. The response is delivered to `didReceivePong`.
    public func ping(_ payload: [UInt8] = []) {
        precondition(payload.count <= FrameHeader.shortPayload, "a ping carries at most 125 bytes")
        guard reactor.isCurrent else { return reactor.execute { self.ping(payload) } }
        guard machine.phase == .open else { return }
        // The pong shows that the peer has received all earlier messages.
        if let outgoing { return outgoing.append(.ping, payload) }
        sendControl(.ping, payload)
    }

    func sendControl(_ opcode: WebSocketOpcode, _ payload: [UInt8]) {
        payload.withUnsafeBytes { sendControl(opcode, $0) }
    }

    func sendControl(_ opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer) {
        let key = maskingKeys?.next()
        channel.write { FrameEncoder.append(opcode, payload, maskingKey: key, to: &$0) }
    }
}
