internal import Platform
internal import Trebuchet

/// Who uses a part of something that all share: somebody who is signed in, and a host.
struct Holder: Hashable, Sendable {
    var principal: ByteText?
    /// Nil for this machine itself.
    var host: CallerHost?

    init(principal: String?, host: CallerHost?) {
        self.principal = principal.map { ByteText($0) }
        self.host = host
    }
}

/// What each principal and each host uses of something. Pure.
struct HolderShares: Sendable {
    let perPrincipal: Int
    let perHost: Int
    private var principals: [ByteText: Int] = [:]
    private var hosts: [CallerHost: Int] = [:]

    init(perPrincipal: Int, perHost: Int) {
        self.perPrincipal = perPrincipal
        self.perHost = perHost
    }

    /// How many principals and hosts use anything.
    var holderCount: (principals: Int, hosts: Int) { (principals.count, hosts.count) }

    /// The limit over which `amount` more would be; nil when there is room.
    func exceeded(_ holder: Holder, by amount: Int = 1) -> Int? {
        if let principal = holder.principal, principals[principal, default: 0] + amount > perPrincipal {
            return perPrincipal
        }
        if let host = holder.host, hosts[host, default: 0] + amount > perHost { return perHost }
        return nil
    }

    /// How much the one of principal and host uses that uses more.
    func most(of holder: Holder) -> Int {
        max(holder.principal.flatMap { principals[$0] } ?? 0, holder.host.flatMap { hosts[$0] } ?? 0)
    }

    mutating func take(_ holder: Holder, _ amount: Int = 1) { count(holder, amount) }

    mutating func release(_ holder: Holder, _ amount: Int = 1) { count(holder, -amount) }

    private mutating func count(_ holder: Holder, _ change: Int) {
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
