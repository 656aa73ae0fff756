internal import Networking
package import Transports

/// The identity of a host for limits: an IPv4 address or an IPv6 /64 network.
package struct AddressKey: Hashable, Sendable {
    private let bits: UInt64
    private let isIPv6: Bool
    /// True for a loopback address.
    package let isLoopback: Bool

    /// A number for the host that is the same in every process.
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
