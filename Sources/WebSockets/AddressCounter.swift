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
    let key: AddressKey
    private let counter: AddressCounter

    fileprivate init(_ key: AddressKey, _ counter: AddressCounter) {
        self.key = key
        self.counter = counter
    }

    deinit { counter.leave(key) }
}
