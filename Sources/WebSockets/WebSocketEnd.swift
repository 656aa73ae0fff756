internal import Transports

/// Why a connection has ended, for who looks after a server.
package struct WebSocketEnd: Sendable, Equatable {
    package enum Cause: Sendable {
        /// The peer has closed it.
        case peer
        /// It broke, or the peer went away without a word.
        case lost
        /// The peer gave no sign of life, or took nothing, for too long.
        case silent
        /// What the peer sent was no WebSocket.
        case violation
        /// The peer has passed a limit.
        case limit
        /// This side has closed it.
        case here
    }

    package let cause: Cause
    /// 1006 where there was no close frame.
    package let code: WebSocketCloseCode
    package let reason: String
}

extension WebSocket {
    /// What the handler is told of the end says what the peer has answered; this is why it came to it.
    package func end(_ code: WebSocketCloseCode, _ reason: String) -> WebSocketEnd {
        if let violation { return Self.violated(violation) }
        return given ?? WebSocketEnd(cause: code == .abnormal ? .lost : .peer, code: code, reason: reason)
    }

    private static func violated(_ violation: ProtocolViolation) -> WebSocketEnd {
        let isLimit = [.messageTooBig, .policyViolation].contains(violation.code)
        return WebSocketEnd(cause: isLimit ? .limit : .violation, code: violation.code, reason: violation.reason)
    }

    /// This side closes it.
    func willEnd(_ code: WebSocketCloseCode, _ reason: String) {
        let isLimit = [.messageTooBig, .policyViolation, .tryAgainLater].contains(code)
        note(WebSocketEnd(cause: isLimit ? .limit : .here, code: code, reason: reason))
    }

    /// The peer is given up.
    func willGiveUp(_ reason: String) {
        let waiting = pendingBytes
        let more = waiting > 0 ? ": it took nothing, and \(waiting) bytes wait for it" : ""
        note(WebSocketEnd(cause: .silent, code: .abnormal, reason: reason + more))
    }

    /// The TCP connection has ended.
    func willEnd(with error: TransportError) {
        switch error.code {
        case .timedOut: note(WebSocketEnd(cause: .silent, code: .abnormal, reason: error.message))
        case .tooLarge: note(WebSocketEnd(cause: .limit, code: .abnormal, reason: error.message))
        default: break
        }
    }

    private func note(_ end: WebSocketEnd) {
        // What came first is why.
        guard machine.phase == .open, given == nil else { return }
        endings = Endings(end)
    }

    private var given: WebSocketEnd? { endings?.end }

    /// Made for a connection that ends, so that all others have room for a pointer alone.
    final class Endings {
        let end: WebSocketEnd

        init(_ end: WebSocketEnd) { self.end = end }
    }
}
