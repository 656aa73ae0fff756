internal import Networking
package import Transports

/// Who counts as one host: an IPv4 address, or a /64 network of IPv6.
package struct AddressKey: Hashable, Sendable {
    private let bits: UInt64
    private let isIPv6: Bool
    /// This machine itself.
    package let isLoopback: Bool

    /// The same for the same host in every process.
    package var number: UInt64 { isIPv6 ? bits : bits &+ 1 << 32 }

    package init?(_ address: SocketAddress) {
        guard let address = IPAddress(address.host) else { return nil }
        self.init(address)
    }

    init(_ address: IPAddress) {
        isIPv6 = !address.isIPv4
        bits = isIPv6 ? address.high : address.low & 0xFFFF_FFFF
        isLoopback = isIPv6 ? address.high == 0 && address.low == 1 : bits >> 24 == 127
    }
}
