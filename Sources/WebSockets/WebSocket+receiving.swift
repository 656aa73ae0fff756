public import Networking

extension WebSocket: ByteChannelDelegate {
    package func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
        // After the end, what still comes is thrown away.
        guard let handler, machine.phase != .closed else { return }
        keepalive.wasHeard = true
        if isPaused {
            hold(bytes)
        } else {
            var rest = bytes
            read(&rest, handler)
            if !rest.isEmpty { hold(rest) }
            afterReading()
        }
    }

    package func channelDidBecomeWritable(_ channel: ByteChannel) {
        becameWritable = true
        keepalive.wasHeard = true
        if !isReading { tellWritable() }
    }

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

    private var isPaused: Bool { isPausedByUser || !channel.isWritable }

    /// Handles what lies in `bytes` until they are used up or reading pauses; `bytes` is what is left. `afterReading`
    /// follows, when that is in its place.
    private func read(_ bytes: inout UnsafeMutableRawBufferPointer, _ handler: any WebSocketHandler) {
        isReading = true
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
                perform(machine.received(violation))
                break reading
            }
        }
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
        if becameWritable { tellWritable() }
        if untold != nil { tellEnd() }
    }

    private func tellWritable() {
        becameWritable = false
        guard machine.phase != .closed else { return }
        if machine.phase == .open { handler?.webSocketDidBecomeWritable(self) }
        continueReading()
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
        guard !isReading, !isPaused, machine.phase != .closed else { return }
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
        if held == nil, !isPaused { channel.resumeReading() } else { channel.pauseReading() }
    }
}
