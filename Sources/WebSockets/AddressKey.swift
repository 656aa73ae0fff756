internal import Glibc
package import Networking

/// Who counts as one host: an IPv4 address, or a /64 network of IPv6.
package struct AddressKey: Hashable, Sendable {
    private let bits: UInt64
    private let isIPv6: Bool
    /// This machine itself.
    package let isLoopback: Bool

    package init?(_ address: SocketAddress) {
        var four = in_addr()
        var six = in6_addr()
        if inet_pton(AF_INET, address.host, &four) == 1 {
            bits = UInt64(UInt32(bigEndian: four.s_addr))
            isIPv6 = false
            isLoopback = bits >> 24 == 127
        } else if inet_pton(AF_INET6, address.host, &six) == 1 {
            let words = withUnsafeBytes(of: six) {
                ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            }
            bits = UInt64(bigEndian: words.0)
            isIPv6 = true
            isLoopback = bits == 0 && UInt64(bigEndian: words.1) == 1
        } else {
            return nil
        }
    }
}
