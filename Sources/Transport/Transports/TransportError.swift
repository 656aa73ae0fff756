/// A failure of a connection or a listener, not of a single call.
public struct TransportError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kind of a failure; later versions may add kinds.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of a kind.
        private enum Kind: String {
            case addressInUse, addressInvalid, refused, timedOut, closed, tooLarge, handshake, tls, token, system
        }
        private let kind: Kind

        /// Another program uses the port.
        public static let addressInUse = Code(kind: .addressInUse)
        /// The host name does not resolve, or the address is not an address of this machine.
        public static let addressInvalid = Code(kind: .addressInvalid)
        /// The connection was refused: nothing listens at the address.
        public static let refused = Code(kind: .refused)
        /// A time limit was exceeded: for connecting, the handshake, or a pong.
        public static let timedOut = Code(kind: .timedOut)
        /// The connection is closed.
        public static let closed = Code(kind: .closed)
        /// A size limit was exceeded.
        public static let tooLarge = Code(kind: .tooLarge)
        /// The peer does not use the expected protocol.
        public static let handshake = Code(kind: .handshake)
        /// A certificate, a key or the TLS of a connection is invalid.
        public static let tls = Code(kind: .tls)
        /// The client's token provider failed; the cause is its error.
        public static let token = Code(kind: .token)
        /// Any other error of the operating system.
        public static let system = Code(kind: .system)

        public var description: String { kind.rawValue }
    }

    /// The kind of the failure.
    public let code: Code
    /// A description: what happened, on which object, and what to do.
    public let message: String
    /// The underlying error, or nil if none is known.
    public let cause: (any Error)?

    /// - Parameters:
    ///   - message: what happened, on which object, and what to do.
    ///   - cause: the underlying error; it is not compared.
    public init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }

    public var description: String { message }

    /// Returns whether code and message are equal; causes are not compared.
    public static func == (left: TransportError, right: TransportError) -> Bool {
        left.code == right.code && left.message == right.message
    }
}

/// The status with which a server answered an upgrade instead of 101: the cause of a `TransportError`.
public struct UnexpectedHTTPStatus: Error, Hashable, Sendable {
    /// The status code (RFC 9110 §15).
    public let status: Int

    /// Creates the error, for a custom transport whose server answered the upgrade with this status.
    public init(_ status: Int) { self.status = status }
}

/// The server does not support the requested subprotocol: the cause of a `TransportError`.
public struct SubprotocolNotSupported: Error, Hashable, Sendable {
    /// The requested subprotocol, as in `Sec-WebSocket-Protocol`.
    public let name: String

    /// Creates the error, for a custom transport whose server accepted the upgrade without this subprotocol.
    public init(_ name: String) { self.name = name }
}
