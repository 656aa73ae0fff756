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

    /// Returns the first quota scope, from the narrowest on, that meets a condition.
    func firstScope(where condition: (QuotaScope) -> Bool) -> QuotaScope? {
        if let principal, condition(.principal(principal)) { return .principal(principal) }
        guard let host else { return nil }
        if condition(.host(host.number)) { return .host(host.number) }
        let network = host.network
        return network != host && condition(.network(network.number)) ? .network(network.number) : nil
    }
}

/// Counts the uses of one resource per principal, per host and per network of hosts. Pure.
struct HolderQuotaUsage: Sendable {
    let perPrincipal: Int
    let perHost: Int
    private var counts = UsageCounts<QuotaScope, Int>()

    init(perPrincipal: Int, perHost: Int) {
        self.perPrincipal = perPrincipal
        self.perHost = perHost
    }

    /// The number of scopes with at least one use.
    var scopeCount: Int { counts.count }

    private func limit(of scope: QuotaScope) -> Int {
        switch scope {
        case .principal: perPrincipal
        case .network: NetworkQuota.limit(perHost)
        default: perHost
        }
    }

    /// Returns the limit that `amount` more uses would exceed; nil when all quotas have room.
    func exceeded(_ holder: QuotaHolder, by amount: Int = 1) -> Int? {
        holder.firstScope { counts[$0] + amount > limit(of: $0) }.map { limit(of: $0) }
    }

    /// Returns the largest of the uses counted for the holder's principal, for its host, and for its network, of which a part
    /// counts.
    func most(of holder: QuotaHolder) -> Int {
        var most = 0
        _ = holder.firstScope { scope in
            let isNetwork = if case .network = scope { true } else { false }
            most = max(most, isNetwork ? counts[scope] / NetworkQuota.hosts : counts[scope])
            return false
        }
        return most
    }

    mutating func reserve(_ holder: QuotaHolder, _ amount: Int = 1) {
        _ = holder.firstScope { scope in
            counts.add(amount, to: scope)
            return false
        }
    }

    mutating func release(_ holder: QuotaHolder, _ amount: Int = 1) { reserve(holder, -amount) }
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
