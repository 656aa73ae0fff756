internal import Platform

/// The number of streams of one connection, including streams that are starting. A stream counts for its connection here, which
/// costs no memory, and for all other quota scopes in the quota ledger. Isolated to the reactor of the connection.
struct StreamQuotaUsage {
    private final class Holder {
        let account: QuotaAccount

        init(_ account: QuotaAccount) { self.account = account }
    }

    var streams: Int32 = 0
    /// The number of them that have a filter.
    var filtered: Int32 = 0
    /// The account in which they count besides the connection: that of the principal at the start of the last stream. Nil for that
    /// of the server alone, and before the first stream; a reference, since each idle connection has it.
    private var holder: Holder?

    /// Reserves a stream of a connection. Throws the limit that is reached.
    mutating func reserve(
        filtered isFiltered: Bool, _ scopes: QuotaScopes, in quotas: QuotaLedger
    ) throws(QuotaExceeded) {
        let account = move(to: scopes, in: quotas)
        if isFiltered { try account.reserve(.streams, with: .filters) } else { try account.reserve(.streams) }
        count(filtered: isFiltered)
    }

    /// Reserves a stream that continues because its actor has moved. No limit applies: it was admitted before.
    mutating func reserveMoved(filtered isFiltered: Bool, _ scopes: QuotaScopes, in quotas: QuotaLedger) {
        let account = move(to: scopes, in: quotas)
        account.add(.streams, 1)
        if isFiltered { account.add(.filters, 1) }
        count(filtered: isFiltered)
    }

    mutating func release(filtered isFiltered: Bool, in quotas: QuotaLedger) {
        let account = account(in: quotas)
        streams -= 1
        account.release(.streams)
        guard isFiltered else { return }
        filtered -= 1
        account.release(.filters)
    }

    /// Returns the resource whose limit the connection has reached; nil if it may have a further stream.
    func exceeded(filtered isFiltered: Bool, _ limits: ConnectionLimits) -> SharedResource? {
        guard streams < limits.streams else { return .streams }
        return isFiltered && filtered >= limits.filters ? .filters : nil
    }

    private mutating func count(filtered isFiltered: Bool) {
        streams += 1
        if isFiltered { filtered += 1 }
    }

    private func account(in quotas: QuotaLedger) -> QuotaAccount { holder?.account ?? quotas.account(for: .server) }

    /// Moves all streams to the account of the present principal, so that each is released from the account that has it.
    private mutating func move(to scopes: QuotaScopes, in quotas: QuotaLedger) -> QuotaAccount {
        let old = account(in: quotas)
        let principal = scopes.principal.map { QuotaScope.principal(PrincipalName($0)) }
        if holder != nil || scopes.host == nil, principal == old.principalScope { return old }
        let new = quotas.account(for: scopes)
        holder = Holder(new)
        for (resource, count) in [(SharedResource.streams, streams), (.filters, filtered)] {
            new.add(resource, Int(count))
            old.release(resource, Int(count))
        }
        return new
    }
}

extension FilterQuota {
    init(_ limits: ServerLimits, _ scopes: QuotaScopes) {
        self.init()
        maximumFilters = limits.filters.perState
        byteLimit = limits.filters.bytesPerState
        self.scopes = scopes.all
    }
}
