internal import Networking
package import Transports

/// The identity of a host for limits: an IPv4 address or an IPv6 /64 network. Also that of a network of hosts.
package struct AddressKey: Hashable, Sendable {
    private let bits: UInt64
    private let isIPv6: Bool
    /// True for a network of hosts.
    package let isNetwork: Bool
    /// True for a loopback address.
    package let isLoopback: Bool

    /// A number for the host that is the same in every process. A network may have the number of a host.
    package var number: UInt64 { isIPv6 ? bits : bits &+ 1 << 32 }

    /// The number of hosts whose quotas a network has.
    package static let hostQuotasPerNetwork = 4

    /// The IPv6 /48 network of the host; the host itself for IPv4 and loopback.
    package var network: AddressKey {
        isIPv6 && !isLoopback
            ? AddressKey(bits: bits & ~0xFFFF, isIPv6: true, isNetwork: true, isLoopback: false) : self
    }

    private init(bits: UInt64, isIPv6: Bool, isNetwork: Bool, isLoopback: Bool) {
        (self.bits, self.isIPv6, self.isNetwork, self.isLoopback) = (bits, isIPv6, isNetwork, isLoopback)
    }

    package init?(_ address: SocketAddress) {
        guard let address = IPAddress(address.host) else { return nil }
        self.init(address)
    }

    init(_ address: IPAddress) {
        isIPv6 = !address.isIPv4
        isNetwork = false
        bits = isIPv6 ? address.high : address.low & 0xFFFF_FFFF
        isLoopback = isIPv6 ? address.high == 0 && address.low == 1 : bits >> 24 == 127
    }
}
