internal import Glibc

/// An IP address without a port, in 128 bits. IPv4 addresses are stored as IPv4-mapped IPv6 (RFC 4291 §2.5.5.2), so that both
/// notations are equal.
package struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    let high: UInt64
    let low: UInt64

    private init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Parses an address; nil for anything else, including names, ports and zones.
    package init?(_ text: some StringProtocol) {
        let text = String(text)
        var four = in_addr()
        var six = in6_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            self.init(high: 0, low: 0xFFFF << 32 | UInt64(UInt32(bigEndian: four.s_addr)))
        } else if inet_pton(AF_INET6, text, &six) == 1 {
            let words = withUnsafeBytes(of: six) {
                ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            }
            self.init(high: UInt64(bigEndian: words.0), low: UInt64(bigEndian: words.1))
        } else {
            return nil
        }
    }

    var isIPv4: Bool { high == 0 && low >> 32 == 0xFFFF }

    /// Returns the address with all bits after the first `count` cleared.
    func prefix(_ count: Int) -> IPAddress {
        IPAddress(
            high: high & ~(count >= 64 ? 0 : UInt64.max >> UInt64(count)),
            low: low & ~(count <= 64 ? UInt64.max : count >= 128 ? 0 : UInt64.max >> UInt64(count - 64)))
    }

    package var description: String {
        if isIPv4 { return [24, 16, 8, 0].map { "\(low >> $0 & 0xFF)" }.joined(separator: ".") }
        var six = in6_addr()
        withUnsafeMutableBytes(of: &six) {
            $0.storeBytes(of: high.bigEndian, as: UInt64.self)
            $0.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
        }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        inet_ntop(AF_INET6, &six, &text, socklen_t(text.count))
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
