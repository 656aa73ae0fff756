internal import Glibc
internal import Networking
internal import Synchronization

/// Counts the connections of each address.
final class AddressCounter: Sendable {
    enum Decision {
        /// The entry counts as long as it lives; nil for an address that does not count.
        case admitted(AddressEntry?)
        case refused
    }

    private let limit: Int
    private let counts = Mutex<[AddressKey: Int]>([:])

    init(limit: Int) { self.limit = limit }

    func enter(_ address: SocketAddress?) -> Decision {
        guard let address, let key = AddressKey(address), !key.isLoopback else { return .admitted(nil) }
        let isAdmitted = counts.withLock { counts in
            let count = counts[key, default: 0]
            guard count < limit else { return false }
            counts[key] = count + 1
            return true
        }
        return isAdmitted ? .admitted(AddressEntry(key, self)) : .refused
    }

    fileprivate func leave(_ key: AddressKey) {
        counts.withLock { counts in
            let count = counts[key, default: 1]
            counts[key] = count > 1 ? count - 1 : nil
        }
    }
}

/// One connection in the count of its address.
final class AddressEntry {
    private let key: AddressKey
    private let counter: AddressCounter

    fileprivate init(_ key: AddressKey, _ counter: AddressCounter) {
        self.key = key
        self.counter = counter
    }

    deinit { counter.leave(key) }
}

/// Who counts as one: an IPv4 address, or a /64 network of IPv6.
struct AddressKey: Hashable, Sendable {
    private let bits: UInt64
    private let isIPv6: Bool
    /// This machine itself.
    let isLoopback: Bool

    init?(_ address: SocketAddress) {
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
