/// An IPv4 or IPv6 address with a port.
public struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address in its usual notation, `127.0.0.1` or `::1`.
    public let host: String
    /// The port, from 0 to 65,535.
    public let port: Int
    package let isIPv6: Bool

    package init(host: String, port: Int, isIPv6: Bool) {
        self.host = host
        self.port = port
        self.isIPv6 = isIPv6
    }

    /// The address with its port: `127.0.0.1:8080`, `[::1]:8080`.
    public var description: String { isIPv6 ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
