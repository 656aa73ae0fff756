package import Bytes
public import Networking
package import Transports

extension WebSocket: ByteChannelDelegate, Resumable {
    /// The time slice in nanoseconds and the number of messages per turn of the reactor, while other work waits.
    private static let shareOfTurn: UInt64 = 100_000
    private static let messagesPerTurn = 256
    /// The minimum read size for a connection that sends more than its share.
    private static let minimumReadBytes = 4 << 10

    package func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
        // Input after the end is discarded.
        guard let handler, machine.phase != .closed else { return }
        keepalive.hasReceivedInput = true
        if isPaused || isQueued {
            bufferInput(bytes)
            updateBufferedInput()
        } else {
            var rest = bytes
            read(&rest, handler)
            if !rest.isEmpty {
                // The rest is buffered once: later reads are limited to the amount that was handled in this one.
                if isQueued { channel.maximumReadBytes = max(Self.minimumReadBytes, bytes.count - rest.count) }
                bufferInput(rest)
            } else if isQueued {
                // A message waits for its step. The end of the connection must not overtake it.
                channel.pauseReading()
            } else if channel.maximumReadBytes < Reactor.readBufferSize {
                channel.maximumReadBytes =
                    bytes.count < channel.maximumReadBytes ? Reactor.readBufferSize : bytes.count / 4 * 5
            }
            afterReading()
        }
    }

    package func channelDidBecomeWritable(_ channel: ByteChannel) {
        keepalive.hasReceivedInput = true
        guard machine.phase != .closed else { return }
        if machine.phase == .open { handler?.webSocketDidBecomeWritable(self) }
        continueReading()
    }

    package func channel(_ channel: ByteChannel, exceeds excess: MemoryLimitExceeded) {
        closeForMemoryLimit(for: excess)
    }

    package func channelDidClose(_ channel: ByteChannel, error: TransportError?) { transportDidClose(error) }

    /// Pauses reading. Messages that have arrived already are delivered after `resumeReading`.
    public func pauseReading() {
        guard !isPausedByUser else { return }
        isPausedByUser = true
        if !isReading { channel.pauseReading() }
    }

    /// Resumes reading, unless too much output is unsent.
    public func resumeReading() {
        guard isPausedByUser else { return }
        isPausedByUser = false
        // The handler of this socket must not be called from within its own call.
        if !isReading { reactor.execute { self.continueReading() } }
    }

    /// True if input is paused. A server does not read from a peer that does not accept output. A client that did the same could
    /// deadlock with its server.
    var isPaused: Bool { isPausedByUser || !channel.isWritable && machine.role == .server }

    /// Handles `bytes` until they are consumed, reading pauses or the connection's time slice is used up; `bytes` is then the
    /// rest. The caller calls `afterReading` at a suitable place.
    private func read(_ bytes: inout UnsafeMutableRawBufferPointer, _ handler: any WebSocketHandler) {
        if reactor.mustRunJobs(upTo: lastJob) { return continueInLaterTurn() }
        isReading = true
        var slice = reactor.connectionSlice(budget: Self.shareOfTurn, stride: stride)
        let jobs = reactor.jobCount
        defer {
            let count = reactor.jobCount
            if count > jobs { lastJob = count }
        }
        reading: while true {
            var size = 0
            switch nextEvent(&bytes) {
            case .message(let opcode, let payload):
                size = payload.count
                if case .deliver = machine.received(message: opcode) {
                    keepalive.hadMessage = true
                    handler.webSocket(self, didReceive: payload, opcode: opcode)
                }
                if isPaused || machine.phase == .closed { break reading }
            case .complete:
                guard deliverComplete(handler), !isPaused, machine.phase != .closed else { break reading }
                // Decompression takes long for its bytes.
                size = MessageReader.largeMessage
            case .needsMore: break reading
            case .control(let opcode, let payload):
                handle(opcode, payload, handler)
                if isPaused || machine.phase == .closed { break reading }
            case .violation(let violation):
                self.violation = violation
                perform(machine.received(violation))
                break reading
            }
            if slice.isCheckDue(bytes: size), isShareUsedUp(&slice, jobs, isMoreThere: !bytes.isEmpty) { break reading }
        }
    }

    /// Delivers a compressed or large message. A message that is large, also after decompression, waits for a long step: its decoding
    /// may take milliseconds, and many peers could fill a turn with one each. Returns false then, and after a violation.
    @inline(never)
    private func deliverComplete(_ handler: any WebSocketHandler) -> Bool {
        let isLong = longStep == .current
        longStep = .none
        switch takeMessage(atMost: isLong ? nil : MessageReader.largeMessage) {
        case .message(let opcode, let payload):
            guard case .deliver = machine.received(message: opcode) else { break }
            keepalive.hadMessage = true
            handler.webSocket(self, didReceive: payload, opcode: opcode)
        case .violation(let violation):
            self.violation = violation
            perform(machine.received(violation))
            return false
        case .needsMore, .complete, .control: break
        case nil:
            longStep = .queued
            isQueued = true
            reactor.scheduleLongStep(self)
            return false
        }
        return true
    }

    /// Returns whether the time slice is used up; then the connection is queued for a later turn.
    @inline(never)
    private func isShareUsedUp(_ slice: inout TimeSlice, _ jobs: UInt64, isMoreThere: Bool) -> Bool {
        guard isMoreThere else { return false }
        let isUsedUp = slice.isUsedUp(lastClockReading: &reactor.lastClockReading)
        stride = slice.stride
        guard isUsedUp || slice.count >= Self.messagesPerTurn || reactor.hasAddedJobs(to: jobs) else { return false }
        continueInLaterTurn()
        return true
    }

    @inline(never)
    private func continueInLaterTurn() {
        isQueued = true
        reactor.scheduleResume(self)
    }

    /// Continues reading; called by the reactor in a later turn.
    package func resume() {
        isQueued = false
        if longStep == .queued { longStep = .current }
        continueReading()
        if longStep == .current { longStep = .none }
    }

    private func handle(
        _ opcode: WebSocketOpcode, _ payload: UnsafeMutableRawBufferPointer, _ handler: any WebSocketHandler
    ) {
        guard keepalive.countControlFrame(times.keepalive) else {
            return perform(machine.received(.tooManyControlFrames))
        }
        let action = machine.received(control: opcode, UnsafeRawBufferPointer(payload))
        if action == .sendPong {
            sendControl(.pong, UnsafeRawBufferPointer(payload))
        } else if opcode == .pong, machine.phase == .open {
            handler.webSocket(self, didReceivePong: payload)
        } else {
            perform(action)
        }
    }

    /// Delivers the notifications that waited for the handler's return.
    @inline(__always)
    private func afterReading() {
        isReading = false
        updateBufferedInput()
        if unreportedClose != nil { notifyEnd() }
    }

    /// Buffers input that cannot be handled yet, and pauses the channel.
    @inline(never)
    private func bufferInput(_ bytes: UnsafeMutableRawBufferPointer) {
        guard machine.phase != .closed else { return }
        if let pausedInput {
            pausedInput.append(bytes)
        } else {
            pausedInput = PausedInputBuffer(bytes)
        }
        channel.pauseReading()
    }

    /// Handles buffered input, then resumes the channel.
    private func continueReading() {
        guard !isReading, !isPaused, !isQueued, machine.phase != .closed else { return }
        if let handler, pausedInput != nil || hasCompleteMessage {
            let pausedInput = pausedInput
            channel.corked {
                var rest = pausedInput?.rest ?? UnsafeMutableRawBufferPointer(start: nil, count: 0)
                let before = rest.count
                read(&rest, handler)
                pausedInput?.consumed += before - rest.count
            }
            if pausedInput?.rest.isEmpty == true { self.pausedInput = nil }
            afterReading()
        }
        if pausedInput == nil, !isPaused, !isQueued { channel.resumeReading() } else { channel.pauseReading() }
    }
}

/// The state of a message that is too large for the share of its connection.
enum LongStep {
    case none
    /// The message waits for a long step of the reactor.
    case queued
    /// The long step is running.
    case current
}
