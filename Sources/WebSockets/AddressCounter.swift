internal import Networking
internal import Synchronization
internal import Transports

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
        return take(key) ? .admitted(AddressEntry(key, self)) : .refused
    }

    /// Counts a client behind a proxy.
    func enter(_ client: IPAddress) -> Decision {
        let key = AddressKey(client)
        if key.isLoopback { return .admitted(ClientEntry(client, nil)) }
        return take(key) ? .admitted(ClientEntry(client, self)) : .refused
    }

    private func take(_ key: AddressKey) -> Bool {
        counts.withLock { counts in
            let count = counts[key, default: 0]
            guard count < limit else { return false }
            counts[key] = count + 1
            return true
        }
    }

    fileprivate func leave(_ key: AddressKey) {
        counts.withLock { counts in
            let count = counts[key, default: 1]
            counts[key] = count > 1 ? count - 1 : nil
        }
    }
}

/// One connection in the count of its address.
class AddressEntry {
    let key: AddressKey
    /// Nil for an address that does not count.
    private let counter: AddressCounter?

    fileprivate init(_ key: AddressKey, _ counter: AddressCounter?) {
        self.key = key
        self.counter = counter
    }

    deinit { counter?.leave(key) }

    /// Who is behind the proxy that the connection comes from; nil when it comes from none.
    var client: SocketAddress? { nil }
}

/// The same of a connection that a proxy made: a class of its own, so that others do not pay for the address.
private final class ClientEntry: AddressEntry {
    private let address: IPAddress

    init(_ address: IPAddress, _ counter: AddressCounter?) {
        self.address = address
        super.init(AddressKey(address), counter)
    }

    /// The proxy says nothing of the port, or nothing that would help.
    override var client: SocketAddress? { SocketAddress(literal: address.description, port: 0) }
}
