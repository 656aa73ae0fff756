internal import Trebuchet

/// The consumption of one rate by key. Pure: the time is given, in milliseconds.
///
/// A full table evicts the keys whose rate is restored soonest, so a flood of keys evicts its own. A key that is new to a full
/// table starts with the consumption of the evicted keys, and at least one unit. So eviction restores no rate: one more unit for
/// an evicted key costs as many other requests as the table has keys.
struct RateTable<Key: Hashable> {
    /// The time after which a unit is available again, in milliseconds.
    private let interval: Double
    private let burst: Int
    private let capacity: Int
    /// The time at which the rate of each key is fully restored.
    private var restored: [Key: Double] = [:]
    /// The latest such time of an evicted key.
    private var evicted = -Double.infinity

    init(_ limit: RateLimit, capacity: Int) {
        interval = 1000 / limit.callsPerSecond
        burst = limit.burst
        self.capacity = max(1, capacity)
    }

    var count: Int { restored.count }

    /// Returns the time until `key` may take one, in milliseconds; nil when it may now. Takes nothing.
    func wait(for key: Key, at now: Int64) -> Int? {
        guard let end = restored[key] else { return nil }
        let wait = end - Double(now) - Double(burst - 1) * interval
        // A smaller value is a rounding error.
        return wait > 0.001 ? Int(wait.rounded(.up)) : nil
    }

    /// Takes one; see `wait`.
    mutating func consume(_ key: Key, at now: Int64) {
        let now = Double(now)
        if let end = restored[key] {
            restored[key] = max(now, end) + interval
            return
        }
        if restored.count >= capacity { makeRoom(at: now) }
        restored[key] = min(max(now, evicted), now + Double(burst - 1) * interval) + interval
    }

    /// Restores the rate of `key`.
    mutating func remove(_ key: Key) { restored[key] = nil }

    /// Gives one back that `key` has taken.
    mutating func giveBack(_ key: Key) { if let end = restored[key] { restored[key] = end - interval } }

    /// Evicts a sixteenth of the keys at once, so that the search costs each insertion little.
    private mutating func makeRoom(at now: Double) {
        restored = restored.filter { $0.value > now }
        guard restored.count >= capacity else { return }
        for (key, end) in restored.sorted(by: { $0.value < $1.value }).prefix(max(1, capacity / 16)) {
            restored[key] = nil
            evicted = max(evicted, end)
        }
    }
}

/// The consumption of one rate by each host, and by each network, which has the rates of several hosts. Pure.
struct HostRateTable<Host: QuotaHost> {
    private struct RateIndex: Hashable {
        let host: Host
        let subject: String
    }

    private var hosts: RateTable<RateIndex>
    private var networks: RateTable<RateIndex>

    init(_ limit: RateLimit, capacity: Int) {
        hosts = RateTable(limit, capacity: capacity)
        networks = RateTable(limit.ofNetwork, capacity: capacity)
    }

    /// Returns the time until `host` may take one, in milliseconds; nil when it may now. Takes nothing.
    ///
    /// - Parameter subject: separate subjects, such as addresses, have separate rates.
    func wait(for host: Host, _ subject: String = "", at now: Int64) -> Int? {
        let wait = hosts.wait(for: RateIndex(host: host, subject: subject), at: now)
        guard host.network != host else { return wait }
        let network = networks.wait(for: RateIndex(host: host.network, subject: subject), at: now)
        return [wait, network].compactMap { $0 }.max()
    }

    /// Takes one; see `wait`.
    mutating func consume(_ host: Host, _ subject: String = "", at now: Int64) {
        hosts.consume(RateIndex(host: host, subject: subject), at: now)
        if host.network != host { networks.consume(RateIndex(host: host.network, subject: subject), at: now) }
    }

    /// Gives one back that `host` has taken.
    mutating func giveBack(_ host: Host) {
        hosts.giveBack(RateIndex(host: host, subject: ""))
        if host.network != host { networks.giveBack(RateIndex(host: host.network, subject: "")) }
    }

    /// Restores the rates of `host` and its network.
    mutating func remove(_ host: Host, _ subject: String) {
        hosts.remove(RateIndex(host: host, subject: subject))
        networks.remove(RateIndex(host: host.network, subject: subject))
    }
}
