internal import WebSockets

/// The quotas of all hosts and of their networks, which have the quotas of several hosts.
final class HostQuotaTable: Sendable {
    private let hosts: QuotaTable<AddressKey>
    private let networks: QuotaTable<AddressKey>

    init(limit: Int) {
        hosts = QuotaTable(limit: limit)
        networks = QuotaTable(limit: NetworkQuota.limit(limit))
    }

    /// The number of hosts with a referenced quota.
    var count: Int { hosts.count }

    func share(of host: AddressKey) -> HostQuota {
        HostQuota(
            host: hosts.share(of: host), network: host.network == host ? nil : networks.share(of: host.network))
    }
}

/// The quota of one host, and that of its network if it has one.
struct HostQuota {
    fileprivate let host: ScopedQuota<AddressKey>
    fileprivate let network: ScopedQuota<AddressKey>?

    var limit: Int { host.quota.limit }
    /// The amount that the host has taken.
    var count: Int { host.quota.count }

    /// Takes `amount`. Returns false, and counts nothing, if a quota is full.
    func reserve(_ amount: Int = 1) -> Bool {
        guard host.quota.reserve(amount) else { return false }
        guard network?.quota.reserve(amount) == false else { return true }
        host.quota.release(amount)
        return false
    }

    func release(_ amount: Int = 1) {
        host.quota.release(amount)
        network?.quota.release(amount)
    }
}

/// The quotas and rates of a network of hosts, relative to those of one host.
package enum NetworkQuota {
    /// The number of hosts whose quotas a network has.
    package static let hosts = AddressKey.hostQuotasPerNetwork

    /// Returns the quota of a network.
    ///
    /// - Parameter perHost: the quota of a host.
    package static func limit(_ perHost: Int) -> Int { perHost > .max / hosts ? .max : perHost * hosts }
}
