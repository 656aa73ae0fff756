internal import Platform
internal import Trebuchet

/// The scopes that a use of a shared resource is counted for: the signed-in principal and the host.
struct QuotaHolder: Hashable, Sendable {
    var principal: ByteText?
    /// Nil for a loopback caller.
    var host: CallerHost?

    /// A loopback caller that is not signed in: nothing counts for it.
    static let anonymous = QuotaHolder(principal: nil, host: nil)

    init(principal: String?, host: CallerHost?) {
        self.principal = principal.map { ByteText($0) }
        self.host = host
    }
}

/// Counts the uses of one resource per principal, per host and per network of hosts. Pure.
struct HolderQuotaUsage: Sendable {
    let perPrincipal: Int
    let perHost: Int
    private var principals: [ByteText: Int] = [:]
    private var hosts: [CallerHost: Int] = [:]
    private var networks: [CallerHost: Int] = [:]

    init(perPrincipal: Int, perHost: Int) {
        self.perPrincipal = perPrincipal
        self.perHost = perHost
    }

    /// The numbers of principals and hosts with at least one use.
    var holderCount: (principals: Int, hosts: Int) { (principals.count, hosts.count) }

    /// Returns the limit that `amount` more uses would exceed; nil when both quotas have room.
    func exceeded(_ holder: QuotaHolder, by amount: Int = 1) -> Int? {
        if let principal = holder.principal, principals[principal, default: 0] + amount > perPrincipal {
            return perPrincipal
        }
        guard let host = holder.host else { return nil }
        if hosts[host, default: 0] + amount > perHost { return perHost }
        let (network, perNetwork) = (host.network, NetworkQuota.limit(perHost))
        return network != host && networks[network, default: 0] + amount > perNetwork ? perNetwork : nil
    }

    /// Returns the largest of the uses counted for the holder's principal, for its host, and for its network, of which a part
    /// counts.
    func most(of holder: QuotaHolder) -> Int {
        let ofNetwork = (holder.host.flatMap { networks[$0.network] } ?? 0) / NetworkQuota.hosts
        return max(
            holder.principal.flatMap { principals[$0] } ?? 0, holder.host.flatMap { hosts[$0] } ?? 0, ofNetwork)
    }

    mutating func reserve(_ holder: QuotaHolder, _ amount: Int = 1) { count(holder, amount) }

    mutating func release(_ holder: QuotaHolder, _ amount: Int = 1) { count(holder, -amount) }

    private mutating func count(_ holder: QuotaHolder, _ change: Int) {
        if let principal = holder.principal {
            let count = principals[principal, default: 0] + change
            principals[principal] = count > 0 ? count : nil
        }
        if let host = holder.host {
            let count = hosts[host, default: 0] + change
            hosts[host] = count > 0 ? count : nil
            guard host.network != host else { return }
            let all = networks[host.network, default: 0] + change
            networks[host.network] = all > 0 ? all : nil
        }
    }
}

/// A host with quotas and rates, in a network with `NetworkQuota.hosts` times as much.
protocol QuotaHost: Hashable {
    /// The network of the host; the host itself when it has no separate network.
    var network: Self { get }
}

extension CallerHost: QuotaHost {}

extension Optional: QuotaHost where Wrapped: QuotaHost {
    var network: Self { map(\.network) }
}
