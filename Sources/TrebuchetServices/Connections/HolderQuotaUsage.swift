internal import Platform
internal import Trebuchet

/// The parties that a use of a shared resource is counted for: the signed-in principal and the host.
struct QuotaHolder: Hashable, Sendable {
    var principal: ByteText?
    /// Nil for a loopback caller.
    var host: CallerHost?

    init(principal: String?, host: CallerHost?) {
        self.principal = principal.map { ByteText($0) }
        self.host = host
    }
}

/// Counts the uses of one resource per principal and per host. Pure.
struct HolderQuotaUsage: Sendable {
    let perPrincipal: Int
    let perHost: Int
    private var principals: [ByteText: Int] = [:]
    private var hosts: [CallerHost: Int] = [:]

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
        if let host = holder.host, hosts[host, default: 0] + amount > perHost { return perHost }
        return nil
    }

    /// Returns the larger of the uses counted for the holder's principal and for its host.
    func most(of holder: QuotaHolder) -> Int {
        max(holder.principal.flatMap { principals[$0] } ?? 0, holder.host.flatMap { hosts[$0] } ?? 0)
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
        }
    }
}
