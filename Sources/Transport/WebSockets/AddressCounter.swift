internal import Networking
internal import Synchronization
internal import Transports

/// Counts the connections of each host and each network, and enforces their limits.
final class AddressCounter: Sendable {
    /// The outcome of counting a connection.
    enum Decision {
        /// Admitted. The entry counts as long as it is alive; nil for an address that does not count.
        case admitted(CountedConnection?)
        case refused
    }

    private let limit: Int
    private let counts = Mutex<[AddressKey: Int]>([:])

    init(limit: Int) { self.limit = limit }

    func enter(_ address: SocketAddress?) -> Decision {
        guard let address, let key = AddressKey(address), !key.isLoopback else { return .admitted(nil) }
        return reserve(key) ? .admitted(CountedConnection(key, self)) : .refused
    }

    /// Counts a client behind a proxy.
    func enter(_ client: IPAddress) -> Decision {
        let key = AddressKey(client)
        if key.isLoopback { return .admitted(CountedProxiedConnection(client, nil)) }
        return reserve(key) ? .admitted(CountedProxiedConnection(client, self)) : .refused
    }

    private func reserve(_ key: AddressKey) -> Bool {
        counts.withLock { counts in
            let (count, network) = (counts[key, default: 0], key.network)
            guard count < limit else { return false }
            if network != key {
                let all = counts[network, default: 0]
                guard all / AddressKey.hostQuotasPerNetwork < limit else { return false }
                counts[network] = all + 1
            }
            counts[key] = count + 1
            return true
        }
    }

    fileprivate func release(_ key: AddressKey) {
        counts.withLock { counts in
            for key in Set([key, key.network]) {
                let count = counts[key, default: 1]
                counts[key] = count > 1 ? count - 1 : nil
            }
        }
    }
}

/// The count of one connection for its host.
class CountedConnection {
    let key: AddressKey
    /// The counter, or nil for an address that does not count.
    private let counter: AddressCounter?

    fileprivate init(_ key: AddressKey, _ counter: AddressCounter?) {
        self.key = key
        self.counter = counter
    }

    deinit { counter?.release(key) }

    /// The client behind the proxy that made the connection; nil without a proxy.
    var client: SocketAddress? { nil }
}

/// The count of a connection from a proxy, with the client's address. Direct connections do not need the memory for it.
private final class CountedProxiedConnection: CountedConnection {
    private let address: IPAddress

    init(_ address: IPAddress, _ counter: AddressCounter?) {
        self.address = address
        super.init(AddressKey(address), counter)
    }

    /// The client's address with port 0: proxies do not report a useful port.
    override var client: SocketAddress? { SocketAddress(literal: address.description, port: 0) }
}
