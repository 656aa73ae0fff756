internal import Bytes
internal import Networking
internal import Synchronization
internal import Transports

/// The buffered memory of a server, in total and by address.
final class ServerMemory: MemoryAccountProvider, Sendable {
    /// The memory of one address.
    private struct Address {
        let budget: MemoryBudget
        /// The number of accounts that share the budget.
        var accounts: Int
    }

    private let server: MemoryBudget
    private let bytesPerAddress: Int
    private let bytesPerNetwork: Int
    private let bytesPerConnection: Int
    /// The addresses with buffered memory.
    private let addresses = Mutex<[AddressKey: Address]>([:])

    init(_ limits: WebSocketLimits, shared: MemoryBudget?) {
        let server = shared ?? MemoryBudget(limit: limits.bufferedBytes)
        self.server = server
        bytesPerAddress = limits.bufferedBytesPerHost ?? server.limit / 4
        // At most a half, so that two networks do not use all of the memory.
        let perNetwork = bytesPerAddress.multipliedReportingOverflow(by: AddressKey.hostQuotasPerNetwork)
        bytesPerNetwork = max(
            bytesPerAddress, min(perNetwork.overflow ? .max : perNetwork.partialValue, server.limit / 2))
        bytesPerConnection = limits.bufferedBytesPerConnection
    }

    func makeAccount(for address: SocketAddress?) -> MemoryAccount {
        guard let address, let key = AddressKey(address) else {
            return MemoryAccount(limit: bytesPerConnection, server: server)
        }
        let budget = addresses.withLock { addresses in
            let network = key.network
            let shared = network == key ? nil : Self.enter(network, bytesPerNetwork, within: nil, &addresses)
            return Self.enter(key, bytesPerAddress, within: shared, &addresses)
        }
        return MemoryAccount(limit: bytesPerConnection, address: budget, server: server) { [weak self] in
            self?.release(key)
        }
    }

    private static func enter(
        _ key: AddressKey, _ limit: Int, within network: MemoryBudget?, _ addresses: inout [AddressKey: Address]
    ) -> MemoryBudget {
        var entry = addresses[key] ?? Address(budget: MemoryBudget(limit: limit, within: network), accounts: 0)
        entry.accounts += 1
        addresses[key] = entry
        return entry.budget
    }

    private func release(_ key: AddressKey) {
        addresses.withLock { addresses in
            for key in Set([key, key.network]) {
                let left = (addresses[key]?.accounts ?? 1) - 1
                if left > 0 { addresses[key]?.accounts = left } else { addresses[key] = nil }
            }
        }
    }

    /// Returns the reason to reject a new connection from an address, or nil.
    func refusal(of address: SocketAddress?) -> MemoryLimitExceeded? {
        if server.isExhausted { return MemoryLimitExceeded(.server, server.limit) }
        guard let address, let key = AddressKey(address) else { return nil }
        let isExhausted = addresses.withLock { addresses in
            [key, key.network].contains { addresses[$0]?.budget.isExhausted == true }
        }
        return isExhausted ? MemoryLimitExceeded(.address, bytesPerAddress) : nil
    }
}
