/// Calls that wait for their turn. It is fair to networks, and within a network to its hosts. Each network with waiting calls gets
/// one turn in each round, which one of its hosts uses. The calls of a host keep their order. Pure.
///
/// When too many wait, the newest call of the host with the most is refused, in the network with the most.
struct FairCallQueue<Host: QuotaHost> {
    private struct Network {
        var calls: [Host: ArraySlice<UInt64>] = [:]
        /// The hosts with waiting calls, in the order of their turns.
        var turns: ArraySlice<Host> = []
        var ranking = CountRanking<Host>()
    }

    private let limit: Int
    private var networks: [Host: Network] = [:]
    /// The networks with waiting calls, in the order of their turns.
    private var turns: ArraySlice<Host> = []
    private var ranking = CountRanking<Host>()
    private var lastNumber: UInt64 = 0
    private(set) var count = 0

    init(limit: Int) { self.limit = max(0, limit) }

    /// Adds a call.
    ///
    /// - Returns: its number, which `next()` returns when it has its turn, and the number of a call that is refused to make room,
    ///   perhaps the same.
    mutating func add(from host: Host) -> (number: UInt64, refused: UInt64?) {
        lastNumber += 1
        var network = networks.removeValue(forKey: host.network) ?? Network()
        if network.turns.isEmpty { turns.append(host.network) }
        if network.calls[host] == nil { network.turns.append(host) }
        network.calls[host, default: []].append(lastNumber)
        network.ranking.increment(host)
        networks[host.network] = network
        ranking.increment(host.network)
        count += 1
        return (lastNumber, count > limit ? refuse(preferring: host) : nil)
    }

    /// Removes the call whose turn it is; returns nil when none waits.
    mutating func next() -> UInt64? {
        guard let name = turns.popFirst(), var network = networks.removeValue(forKey: name),
            let host = network.turns.popFirst(), let number = network.calls[host]?.popFirst()
        else { return nil }
        didRemoveCall(of: host, &network)
        if network.calls[host] != nil { network.turns.append(host) }
        if !network.turns.isEmpty {
            networks[name] = network
            turns.append(name)
        }
        return number
    }

    /// - Parameter newest: the host of the newest call, which is refused when none has more calls.
    private mutating func refuse(preferring newest: Host) -> UInt64? {
        guard let name = ranking.largest(preferring: newest.network), var network = networks.removeValue(forKey: name),
            let host = network.ranking.largest(preferring: newest), let number = network.calls[host]?.popLast()
        else { return nil }
        didRemoveCall(of: host, &network)
        if network.calls[host] == nil { network.turns.removeAll { $0 == host } }
        if network.turns.isEmpty { turns.removeAll { $0 == name } } else { networks[name] = network }
        return number
    }

    private mutating func didRemoveCall(of host: Host, _ network: inout Network) {
        if network.calls[host]?.isEmpty == true { network.calls[host] = nil }
        network.ranking.decrement(host)
        ranking.decrement(host.network)
        count -= 1
    }
}
