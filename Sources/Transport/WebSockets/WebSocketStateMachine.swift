/// The state machine of a connection after the upgrade (RFC 6455 §5.5, §7). It maps input to actions.
///
/// It covers both roles. Their only difference is that the server ends the TCP connection, and a client waits for that (§7.1.1).
package struct WebSocketStateMachine: Sendable {
    /// The phase of a connection.
    package enum Phase: UInt8, Sendable {
        /// Messages are sent and received.
        case open
        /// The local close frame is sent; messages are discarded until the peer's close frame arrives.
        case closing
        /// No messages are sent or delivered.
        case closed
    }

    /// The end of a connection, for its handler.
    package struct Ending: Equatable, Sendable {
        package var code: WebSocketCloseCode
        package var reason: String
        /// The close frame that is still to be sent.
        package var reply: ClosePayload?
        /// The handling of the TCP connection.
        package var transport: Transport

        /// The ways to end the TCP connection.
        package enum Transport: Sendable {
            /// End it when all output is sent.
            case end
            /// Wait for the server to end it, with a time limit.
            case awaitPeer
            /// End it immediately.
            case drop
        }
    }

    /// An action to be performed.
    package enum Action: Equatable, Sendable {
        case nothing
        /// Deliver the message to the handler.
        case deliver
        /// Send a pong with the same payload.
        case sendPong
        /// Send the close frame, and wait for the peer's with a time limit.
        case sendClose(ClosePayload)
        /// Notify the handler; the phase is closed.
        case finish(Ending)
    }

    package let role: WebSocketRole
    package private(set) var phase = Phase.open

    package init(role: WebSocketRole) { self.role = role }

    @inline(__always)
    package func received(message opcode: WebSocketOpcode) -> Action { phase == .open ? .deliver : .nothing }

    package mutating func received(control opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer) -> Action {
        switch opcode {
        case .ping: phase == .open ? .sendPong : .nothing
        case .close: receivedClose(ClosePayload.decode(payload))
        default: .nothing
        }
    }

    private mutating func receivedClose(_ payload: Result<ClosePayload, ProtocolViolation>) -> Action {
        switch payload {
        case .failure(let violation): return received(violation)
        case .success(let payload):
            guard phase != .closed else { return .nothing }
            let reply = phase == .open ? ClosePayload(code: payload.code) : nil
            phase = .closed
            return .finish(
                Ending(
                    code: payload.code, reason: payload.reason, reply: reply,
                    transport: role == .server ? .end : .awaitPeer))
        }
    }

    /// Fails the connection after a protocol violation by the peer (§7.1.7).
    package mutating func received(_ violation: ProtocolViolation) -> Action {
        guard phase != .closed else { return .nothing }
        let payload = ClosePayload(code: violation.code, reason: violation.reason)
        let reply = phase == .open ? payload : nil
        phase = .closed
        return .finish(Ending(code: payload.code, reason: payload.reason, reply: reply, transport: .end))
    }

    /// Starts to close the connection.
    package mutating func close(_ payload: ClosePayload) -> Action {
        guard phase == .open else { return .nothing }
        phase = .closing
        return .sendClose(payload)
    }

    /// Handles a missing close frame of the peer.
    package mutating func closeTimedOut() -> Action { abort("no close frame was received in time") }

    /// Ends the connection without a close handshake.
    package mutating func abort(_ reason: String) -> Action {
        guard phase != .closed else { return .nothing }
        phase = .closed
        return .finish(Ending(code: .abnormal, reason: reason, reply: nil, transport: .drop))
    }
}
