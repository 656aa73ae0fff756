internal import Platform
internal import Bytes
internal import WebSockets

/// The quotas of calls to clients, for the server and each scope. Taking from them needs no table lookup.
final class ClientCallQuotas: Sendable {
    let limits: ServerLimits
    let calls: Quota
    let principals: QuotaTable<PrincipalName>
    let hosts: HostQuotaTable
    /// The bytes of calls to the clients of a host.
    let hostBytes: HostQuotaTable
    let memory: MemoryBudget
    let principalMemory: PrincipalMemory

    init(_ limits: ServerLimits, memory: MemoryBudget, principalMemory: PrincipalMemory) {
        self.limits = limits
        calls = Quota(limits.callsToClients)
        principals = QuotaTable(limit: limits.callsToClientsPerPrincipal)
        hosts = HostQuotaTable(limit: limits.callsToClientsPerHost)
        hostBytes = HostQuotaTable(limit: limits.bufferedBytesPerHost ?? limits.bufferedBytes / 4)
        self.memory = memory
        self.principalMemory = principalMemory
    }
}

/// The use of one client. On the client's reactor.
final class ClientCallQuotaUsage {
    private let quotas: ClientCallQuotas
    private let principal: ScopedQuota<PrincipalName>?
    private let host: HostQuota?
    private let hostBytes: HostQuota?
    /// Keeps the principal's budget alive.
    private let part: PrincipalMemory.ConnectionUsage?
    private let account: MemoryAccount
    private var count = 0
    private var bytes = 0

    init(_ quotas: ClientCallQuotas, _ scopes: QuotaScopes) {
        self.quotas = quotas
        principal = scopes.principal.map { quotas.principals.share(of: PrincipalName($0)) }
        host = scopes.host.map { quotas.hosts.share(of: $0) }
        hostBytes = scopes.host.map { quotas.hostBytes.share(of: $0) }
        part = scopes.principal.map { quotas.principalMemory.usage(of: $0) }
        account = MemoryAccount(limit: .max, server: quotas.memory)
        if let part { account.join(part.budget) }
    }

    /// Counts a call. Throws `rateLimited`, and counts nothing, if a quota is full.
    func reserve(_ amount: Int) throws(TrebuchetError) {
        let limits = quotas.limits
        guard count < limits.callsPerClient else {
            throw refusal("\(limits.callsPerClient) calls to this client are", "callsPerClient")
        }
        guard bytes + amount <= limits.callBytesPerClient else {
            throw refusal(
                "\(bytes) bytes, of \(limits.callBytesPerClient), in calls to this client are", "callBytesPerClient")
        }
        guard quotas.calls.reserve() else {
            throw refusal("\(limits.callsToClients) calls to clients are", "callsToClients")
        }
        guard principal?.quota.reserve() != false else {
            quotas.calls.release()
            let text = "\(limits.callsToClientsPerPrincipal) calls to clients of the same principal are"
            throw refusal(text, "callsToClientsPerPrincipal")
        }
        guard host?.reserve() != false else {
            quotas.calls.release()
            principal?.quota.release()
            let text = "\(limits.callsToClientsPerHost) calls to clients of the same host are"
            throw refusal(text, "callsToClientsPerHost")
        }
        do throws(MemoryLimitExceeded) {
            try account.reserve(amount)
            guard hostBytes?.reserve(amount) != false else {
                account.release(amount)
                throw MemoryLimitExceeded(.address, hostBytes?.limit ?? 0)
            }
        } catch {
            release(calls: 1)
            throw TrebuchetError(.rateLimited, "a call to a client exceeds the buffered memory limit: \(error.reason)")
        }
        count += 1
        bytes += amount
    }

    func release(_ amount: Int) {
        release(calls: 1)
        account.release(amount)
        hostBytes?.release(amount)
        count -= 1
        bytes -= amount
    }

    private func release(calls: Int) {
        quotas.calls.release(calls)
        principal?.quota.release(calls)
        host?.release(calls)
    }

    private func refusal(_ what: String, _ setting: String) -> TrebuchetError {
        TrebuchetError(.rateLimited, "\(what) in flight, which is the limit (ServerLimits.\(setting))")
    }
}
