/// The reason code of a closed connection (RFC 6455 §7.4).
public struct WebSocketCloseCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The number in the close frame; 1005 and 1006 never occur in one.
    public let rawValue: UInt16

    /// Creates a code from any number, without validation. 4000 to 4999 are for applications (RFC 6455 §7.4.2).
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// 1000: the connection has fulfilled its purpose.
    public static let normal = Self(rawValue: 1000)
    /// 1001: the server shuts down or the user leaves the page.
    public static let goingAway = Self(rawValue: 1001)
    /// 1002: the peer violated the protocol.
    public static let protocolError = Self(rawValue: 1002)
    /// 1003: the endpoint does not accept this type of data.
    public static let unsupportedData = Self(rawValue: 1003)
    /// 1005: the peer's close frame had no code. Never sent.
    public static let noStatus = Self(rawValue: 1005)
    /// 1006: the connection was lost without a close frame. Never sent.
    public static let abnormal = Self(rawValue: 1006)
    /// 1007: a text is not UTF-8.
    public static let invalidPayload = Self(rawValue: 1007)
    /// 1008: a rule of the application was violated.
    public static let policyViolation = Self(rawValue: 1008)
    /// 1009: a frame or a message exceeds the limit.
    public static let messageTooBig = Self(rawValue: 1009)
    /// 1010: the server did not accept an extension that the client needs.
    public static let mandatoryExtension = Self(rawValue: 1010)
    /// 1011: the server failed.
    public static let internalError = Self(rawValue: 1011)
    /// 1012: the server restarts.
    public static let serviceRestart = Self(rawValue: 1012)
    /// 1013: the server is overloaded.
    public static let tryAgainLater = Self(rawValue: 1013)

    public var description: String { String(rawValue) }

    /// Whether the code is allowed in a close frame: codes of the RFC and its registry that are not reserved for local use, and
    /// 3000–4999 for libraries and applications (§7.4.2).
    public var isSendable: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}
