/// The life of a connection after the upgrade (RFC 6455 §5.5, §7): what arrives goes in, what to do comes out.
///
/// Both roles. The one difference is who ends the TCP connection: the server, a client waits for it (§7.1.1).
package struct WebSocketStateMachine: Sendable {
    package enum Phase: UInt8, Sendable {
        /// Messages go both ways.
        case open
        /// Our close frame is out; the peer's is awaited, and its messages are thrown away.
        case closing
        /// Nothing is sent or delivered any more.
        case closed
    }

    /// How the connection ended, for its handler.
    package struct Ending: Equatable, Sendable {
        package var code: WebSocketCloseCode
        package var reason: String
        /// The close frame that is still to be sent.
        package var reply: ClosePayload?
        /// What becomes of the TCP connection.
        package var transport: Transport

        package enum Transport: Sendable {
            /// End it when everything is sent.
            case end
            /// The server ends it; we do when it takes too long.
            case awaitPeer
            /// End it at once.
            case drop
        }
    }

    package enum Action: Equatable, Sendable {
        case nothing
        /// Give the message to the handler.
        case deliver
        /// Answer with the same payload.
        case sendPong
        /// Send the close frame and give the peer a limited time for its own.
        case sendClose(ClosePayload)
        /// Tell the handler; the phase is closed.
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

    /// The peer broke the protocol: the connection is failed (§7.1.7).
    package mutating func received(_ violation: ProtocolViolation) -> Action {
        guard phase != .closed else { return .nothing }
        let payload = ClosePayload(code: violation.code, reason: violation.reason)
        let reply = phase == .open ? payload : nil
        phase = .closed
        return .finish(Ending(code: payload.code, reason: payload.reason, reply: reply, transport: .end))
    }

    /// We want to end it.
    package mutating func close(_ payload: ClosePayload) -> Action {
        guard phase == .open else { return .nothing }
        phase = .closing
        return .sendClose(payload)
    }

    /// The peer's close frame did not come in time.
    package mutating func closeTimedOut() -> Action { abort("no close frame came in time") }

    /// The connection is to end without a close handshake.
    package mutating func abort(_ reason: String) -> Action {
        guard phase != .closed else { return .nothing }
        phase = .closed
        return .finish(Ending(code: .abnormal, reason: reason, reply: nil, transport: .drop))
    }
}
