internal import Bytes

extension ServerEvent {
    /// Why a connection has ended.
    public struct Closing: Sendable, Equatable {
        /// Who has ended it, or what.
        public enum Cause: String, Sendable, CaseIterable {
            /// The client has closed it.
            case client
            /// It broke, or the client went away without a word.
            case lost
            /// The client gave no sign of life, or took nothing of what it was sent, for too long.
            case silent
            /// What the client sent was no WebSocket.
            case violation
            /// The client has passed a limit, or an operator has cut it.
            case limit
            /// The server has closed it: as it ends, or as no message came for too long.
            case server
        }

        /// Who has ended it, or what.
        public let cause: Cause
        /// The code of the close frame (RFC 6455 §7.4), 1006 where there was none; nil for a client in this process.
        public let code: UInt16?
        /// The words of whoever has closed it, which may be the client's: at most 512 bytes.
        public let reason: String

        package init(_ cause: Cause, code: UInt16? = nil, reason: String = "") {
            self.cause = cause
            self.code = code
            self.reason = reason.prefix(bytes: 512)
        }

        package static let lost = Closing(.lost)
        package static let server = Closing(.server)
    }
}

extension ServerEvent.Closing.Cause {
    package var figure: Figure {
        switch self {
        case .client: .closedByClient
        case .lost: .closedLost
        case .silent: .closedSilent
        case .violation: .closedViolation
        case .limit: .closedLimit
        case .server: .closedByServer
        }
    }
}
