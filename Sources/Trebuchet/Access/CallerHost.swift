internal import Transports
internal import WebSockets

/// The host that a connection comes from, as shares and rates count it: an IPv4 address, or a /64 network of IPv6.
package struct CallerHost: Hashable, Sendable {
    private let key: AddressKey

    fileprivate init(_ key: AddressKey) { self.key = key }

    /// The same for the same host in every process.
    package var number: UInt64 { key.number }
}

extension CallerHost {
    /// The host of an address, in text as `SocketAddress.host` has it; nil for this machine itself and for what is none.
    package init?(address: String) {
        let isIPv6 = address.utf8.contains(UInt8(ascii: ":"))
        guard let key = AddressKey(SocketAddress(host: address, port: 0, isIPv6: isIPv6)), !key.isLoopback else {
            return nil
        }
        self.init(key)
    }
}

extension CallerConnection {
    /// Nil for this machine itself and for clients in this process, which have no share as a host.
    package var host: CallerHost? {
        guard let key = remoteAddress.flatMap({ AddressKey($0) }), !key.isLoopback else { return nil }
        return CallerHost(key)
    }
}
