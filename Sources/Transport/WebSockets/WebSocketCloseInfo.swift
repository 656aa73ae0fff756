internal import Transports

/// The reason of a connection's end, for logs and metrics.
package struct WebSocketCloseInfo: Sendable, Equatable {
    /// The category of the reason.
    package enum Cause: Sendable {
        /// The peer closed the connection.
        case peer
        /// The connection broke, or the peer disconnected without a close frame.
        case lost
        /// The peer gave no sign of life, or accepted no output, for too long.
        case silent
        /// The peer sent invalid WebSocket data.
        case violation
        /// The peer exceeded a limit.
        case limit
        /// The local side closed the connection.
        case here
    }

    package let cause: Cause
    /// The close code; 1006 without a close frame.
    package let code: WebSocketCloseCode
    package let reason: String
}

extension WebSocket {
    /// Returns the original reason of the end. The handler receives the code and reason of the peer's close frame instead.
    package func recordClose(_ code: WebSocketCloseCode, _ reason: String) -> WebSocketCloseInfo {
        if let violation { return Self.violated(violation) }
        return closeInfo ?? WebSocketCloseInfo(cause: code == .abnormal ? .lost : .peer, code: code, reason: reason)
    }

    private static func violated(_ violation: ProtocolViolation) -> WebSocketCloseInfo {
        let isLimit = [.messageTooBig, .policyViolation].contains(violation.code)
        return WebSocketCloseInfo(cause: isLimit ? .limit : .violation, code: violation.code, reason: violation.reason)
    }

    /// Records that the local side closes the connection.
    func willEnd(_ code: WebSocketCloseCode, _ reason: String) {
        let isLimit = [.messageTooBig, .policyViolation, .tryAgainLater].contains(code)
        recordCloseInfo(WebSocketCloseInfo(cause: isLimit ? .limit : .here, code: code, reason: reason))
    }

    /// Records that the peer is considered dead.
    func willDrop(_ reason: String) {
        let waiting = pendingBytes
        let more = waiting > 0 ? ": it reads nothing; \(waiting) bytes are queued" : ""
        recordCloseInfo(WebSocketCloseInfo(cause: .silent, code: .abnormal, reason: reason + more))
    }

    /// Records the end of the TCP connection.
    func willEnd(with error: TransportError) {
        switch error.code {
        case .timedOut: recordCloseInfo(WebSocketCloseInfo(cause: .silent, code: .abnormal, reason: error.message))
        case .tooLarge: recordCloseInfo(WebSocketCloseInfo(cause: .limit, code: .abnormal, reason: error.message))
        default: break
        }
    }

    private func recordCloseInfo(_ end: WebSocketCloseInfo) {
        // The first recorded reason counts.
        guard machine.phase == .open, closeInfo == nil else { return }
        endings = Storage(end)
    }

    private var closeInfo: WebSocketCloseInfo? { endings?.end }

    /// A box that is allocated for a closing connection, so that other connections need only a pointer.
    final class Storage {
        let end: WebSocketCloseInfo

        init(_ end: WebSocketCloseInfo) { self.end = end }
    }
}
