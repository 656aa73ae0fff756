internal import Bytes

extension ServerEvent {
    /// The reason why a connection has closed.
    public struct Closing: Sendable, Equatable {
        /// The party or condition that has closed a connection.
        public enum Cause: String, Sendable, CaseIterable {
            /// The client has closed the connection.
            case client
            /// The connection broke, or the client disconnected without a close frame.
            case connectionLost = "lost"
            /// The client sent no data, or read none, for too long.
            case pingTimeout = "silent"
            /// The client violated the WebSocket protocol.
            case protocolViolation = "violation"
            /// The client exceeded a limit, or an operator closed the connection.
            case limit
            /// The server closed the connection: because it shuts down, or because no message arrived for too long.
            case server
        }

        /// The party or condition that has closed the connection.
        public let cause: Cause
        /// The code of the close frame (RFC 6455 §7.4), 1006 without one; nil for a client in this process.
        public let code: UInt16?
        /// The reason given by the closing side, which may be the client: at most 512 bytes.
        public let reason: String

        package init(_ cause: Cause, code: UInt16? = nil, reason: String = "") {
            self.cause = cause
            self.code = code
            self.reason = reason.prefix(bytes: 512)
        }

        package static let lost = Closing(.connectionLost)
        package static let server = Closing(.server)
    }
}

extension ServerEvent.Closing.Cause {
    package var metric: Metric {
        switch self {
        case .client: .closedByClient
        case .connectionLost: .closedLost
        case .pingTimeout: .closedSilent
        case .protocolViolation: .closedViolation
        case .limit: .closedLimit
        case .server: .closedByServer
        }
    }
}
