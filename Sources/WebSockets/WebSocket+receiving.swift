package import Bytes
public import Networking
package import Transports

extension WebSocket: ByteChannelDelegate, InLine {
    /// Nanoseconds and messages that a connection may take of a turn of its reactor, while others wait.
    private static let shareOfTurn: UInt64 = 100_000
    private static let messagesPerTurn = 256
    /// The least that is read at once of a connection that has more to say than its share.
    private static let leastRead = 4 << 10

    package func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
        // After the end, what still comes is thrown away.
        guard let handler, machine.phase != .closed else { return }
        keepalive.wasHeard = true
        if isPaused || isInLine {
            hold(bytes)
            noteHeldInput()
        } else {
            var rest = bytes
            read(&rest, handler)
            if !rest.isEmpty {
                // What is left is kept, once: from now on no more is read at a time than was handled in this.
                if isInLine { channel.mostRead = max(Self.leastRead, bytes.count - rest.count) }
                hold(rest)
            } else if channel.mostRead < Reactor.readBufferSize {
                channel.mostRead = bytes.count < channel.mostRead ? Reactor.readBufferSize : bytes.count / 4 * 5
            }
            afterReading()
        }
    }

    package func channelDidBecomeWritable(_ channel: ByteChannel) {
        keepalive.wasHeard = true
        guard machine.phase != .closed else { return }
        if machine.phase == .open { handler?.webSocketDidBecomeWritable(self) }
        continueReading()
    }

    package func channel(_ channel: ByteChannel, exceeds excess: MemoryExcess) { end(for: excess) }

    package func channelDidClose(_ channel: ByteChannel, error: TransportError?) { transportDidClose(error) }

    /// Stops reading; messages that are here already come after `resumeReading`.
    public func pauseReading() {
        guard !isPausedByUser else { return }
        isPausedByUser = true
        if !isReading { channel.pauseReading() }
    }

    /// Reads again, unless too much waits to be sent.
    public func resumeReading() {
        guard isPausedByUser else { return }
        isPausedByUser = false
        // The handler of this socket is not called from inside its own call.
        if !isReading { reactor.execute { self.continueReading() } }
    }

    /// A server does not read from who does not take its answers. A client that did so too would wait for a server that
    /// waits for it.
    var isPaused: Bool { isPausedByUser || !channel.isWritable && machine.role == .server }

    /// Handles what lies in `bytes` until they are used up, reading pauses or the connection's share of the turn is used up;
    /// `bytes` is what is left. `afterReading` follows, when that is in its place.
    private func read(_ bytes: inout UnsafeMutableRawBufferPointer, _ handler: any WebSocketHandler) {
        isReading = true
        var slice = TimeSlice(budget: Self.shareOfTurn, stride: stride)
        reading: while true {
            switch nextEvent(&bytes) {
            case .message(let opcode, let payload):
                if case .deliver = machine.received(message: opcode) {
                    keepalive.hadMessage = true
                    handler.webSocket(self, didReceive: payload, opcode: opcode)
                }
                if isPaused || machine.phase == .closed { break reading }
            case .needsMore: break reading
            case .control(let opcode, let payload):
                handle(opcode, payload, handler)
                if isPaused || machine.phase == .closed { break reading }
            case .violation(let violation):
                self.violation = violation
                perform(machine.received(violation))
                break reading
            }
            if slice.isLookDue(), isShareUsedUp(&slice, isMoreThere: !bytes.isEmpty) { break reading }
        }
    }

    /// Stands in line when it is.
    @inline(never)
    private func isShareUsedUp(_ slice: inout TimeSlice, isMoreThere: Bool) -> Bool {
        guard isMoreThere else { return false }
        let isUsedUp = slice.isUsedUp(lastLook: &reactor.lastLook)
        stride = slice.stride
        guard isUsedUp || slice.count >= Self.messagesPerTurn else { return false }
        isInLine = true
        reactor.standInLine(self)
        return true
    }

    /// The reactor's call: it is this connection's turn again.
    package func goOn() {
        isInLine = false
        continueReading()
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

    /// Tells the handler what had to wait for its return.
    @inline(__always)
    private func afterReading() {
        isReading = false
        noteHeldInput()
        if untold != nil { tellEnd() }
    }

    /// Keeps what cannot be handled yet, and stops the network.
    @inline(never)
    private func hold(_ bytes: UnsafeMutableRawBufferPointer) {
        guard machine.phase != .closed else { return }
        if let held {
            held.append(bytes)
        } else {
            held = HeldInput(bytes)
        }
        channel.pauseReading()
    }

    /// Handles what was held, then lets the network bring more.
    private func continueReading() {
        guard !isReading, !isPaused, !isInLine, machine.phase != .closed else { return }
        if let held, let handler {
            channel.corked {
                var rest = held.rest
                let before = rest.count
                read(&rest, handler)
                held.consumed += before - rest.count
            }
            if held.rest.isEmpty { self.held = nil }
            afterReading()
        }
        if held == nil, !isPaused, !isInLine { channel.resumeReading() } else { channel.pauseReading() }
    }
}
