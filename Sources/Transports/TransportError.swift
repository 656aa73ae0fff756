/// A failure of a connection or a listener: wider than any one call.
public struct TransportError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What kind of failure it is; new kinds may come.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Kind: String {
            case addressInUse, addressInvalid, refused, timedOut, closed, tooLarge, handshake, tls, token, system
        }
        private let kind: Kind

        /// The port is taken by another program.
        public static let addressInUse = Code(kind: .addressInUse)
        /// The host name does not resolve, or the address is not one of this machine.
        public static let addressInvalid = Code(kind: .addressInvalid)
        /// Nobody listens there.
        public static let refused = Code(kind: .refused)
        /// Something took longer than its limit: connecting, the handshake, or an answer to a ping.
        public static let timedOut = Code(kind: .timedOut)
        /// The connection is closed.
        public static let closed = Code(kind: .closed)
        /// A limit on sizes was passed.
        public static let tooLarge = Code(kind: .tooLarge)
        /// The peer does not speak the protocol expected of it.
        public static let handshake = Code(kind: .handshake)
        /// Certificates, keys or the TLS of a connection.
        public static let tls = Code(kind: .tls)
        /// The client's token provider gave none; the cause is its error.
        public static let token = Code(kind: .token)
        /// Any other error of the operating system.
        public static let system = Code(kind: .system)

        public var description: String { kind.rawValue }
    }

    /// What kind of failure it is.
    public let code: Code
    /// What happened, to which thing, and what can be done.
    public let message: String
    /// What it failed with, one level below; nil where nothing more is known.
    public let cause: (any Error)?

    /// - Parameters:
    ///   - message: what happened, to which thing, and what can be done.
    ///   - cause: what it failed with, one level below; it is not compared.
    public init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }

    public var description: String { message }

    /// Whether code and message are the same; causes are not compared.
    public static func == (left: TransportError, right: TransportError) -> Bool {
        left.code == right.code && left.message == right.message
    }
}

/// The status that a server answered an upgrade with instead of 101: the cause of a `TransportError`.
public struct UnexpectedStatus: Error, Hashable, Sendable {
    /// The code of the answer's status line (RFC 9110 §15).
    public let status: Int

    /// For a transport of your own, whose server has answered the upgrade with this status.
    public init(_ status: Int) { self.status = status }
}

/// A server was reached and does not speak the subprotocol that was asked for: the cause of a `TransportError`.
public struct UnspokenProtocol: Error, Hashable, Sendable {
    /// What was asked for, as `Sec-WebSocket-Protocol` has it.
    public let name: String

    /// For a transport of your own, whose server has agreed to the upgrade without this subprotocol.
    public init(_ name: String) { self.name = name }
}
