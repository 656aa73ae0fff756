internal import Trebuchet

extension BucketTable {
    /// Returns the time in milliseconds until `key` may take one, at a time in milliseconds; nil when it may now. Takes nothing.
    func wait(for key: Key, atMilliseconds now: Int64) -> Int? { wait(for: key, at: UInt64(max(0, now)) * 1_000_000) }

    /// Takes one, at a time in milliseconds, whether it is there or not.
    mutating func take(_ key: Key, atMilliseconds now: Int64) { take(key, at: UInt64(max(0, now)) * 1_000_000) }
}

/// The consumption of one rate by each host, and by each network, which has the rates of several hosts. Pure: the time is given, in
/// milliseconds.
struct HostRateTable<Host: QuotaHost> {
    private struct RateIndex: Hashable {
        let host: Host
        let subject: String
    }

    private var hosts: BucketTable<RateIndex>
    private var networks: BucketTable<RateIndex>

    init(_ limit: RateLimit, capacity: Int) {
        hosts = BucketTable(limit, capacity: capacity, inheritsConsumption: true)
        networks = BucketTable(limit.ofNetwork, capacity: capacity, inheritsConsumption: true)
    }

    /// Returns the time until `host` may take one, in milliseconds; nil when it may now. Takes nothing.
    ///
    /// - Parameter subject: separate subjects, such as addresses, have separate rates.
    func wait(for host: Host, _ subject: String = "", at now: Int64) -> Int? {
        let wait = hosts.wait(for: RateIndex(host: host, subject: subject), atMilliseconds: now)
        guard host.network != host else { return wait }
        let network = networks.wait(for: RateIndex(host: host.network, subject: subject), atMilliseconds: now)
        return [wait, network].compactMap { $0 }.max()
    }

    /// Takes one; see `wait`.
    mutating func consume(_ host: Host, _ subject: String = "", at now: Int64) {
        hosts.take(RateIndex(host: host, subject: subject), atMilliseconds: now)
        if host.network != host { networks.take(RateIndex(host: host.network, subject: subject), atMilliseconds: now) }
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
