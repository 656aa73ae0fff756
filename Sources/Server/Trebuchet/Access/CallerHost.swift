internal import Transports
internal import WebSockets

/// The network origin of a connection for quotas and rates: an IPv4 address or an IPv6 /64 network.
package struct CallerHost: Hashable, Sendable {
    private let key: AddressKey

    init(_ key: AddressKey) { self.key = key }

    /// A number that is equal in every process for the same host.
    package var number: UInt64 { key.number }

    /// The IPv6 /48 network of the host, as a host; the host itself for IPv4.
    package var network: CallerHost { CallerHost(key.network) }
}

extension CallerHost {
    /// Creates the host of an address, formatted as `SocketAddress.host`; nil for loopback addresses and for invalid text.
    package init?(address: String) {
        let isIPv6 = address.utf8.contains(UInt8(ascii: ":"))
        guard let key = AddressKey(SocketAddress(host: address, port: 0, isIPv6: isIPv6)), !key.isLoopback else {
            return nil
        }
        self.init(key)
    }
}

extension CallerConnection {
    /// The host of the connection; nil for loopback connections and clients in this process, which have no host quota.
    package var host: CallerHost? {
        guard let key = remoteAddress.flatMap({ AddressKey($0) }), !key.isLoopback else { return nil }
        return CallerHost(key)
    }
}
