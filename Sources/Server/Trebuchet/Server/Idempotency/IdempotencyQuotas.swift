internal import Platform
internal import Bytes
internal import WebSockets

/// The quotas of recorded responses and their bytes, for the server and for each quota scope. They are separate from the cache of
/// each reactor, since a principal or host may have connections on all reactors.
final class IdempotencyQuotas: Sendable {
    let recordedResponses: Quota
    let bytes: Quota
    fileprivate let principals: QuotaTable<PrincipalName>
    fileprivate let principalBytes: QuotaTable<PrincipalName>
    fileprivate let hosts: HostQuotaTable
    fileprivate let hostBytes: HostQuotaTable

    init(_ limits: ServerLimits, within memory: MemoryBudget? = nil) {
        recordedResponses = Quota(limits.recordedResponses)
        bytes = Quota(limits.recordedResponseBytes, within: memory)
        principals = QuotaTable(limit: limits.recordedResponsesPerPrincipal)
        principalBytes = QuotaTable(limit: limits.recordedResponseBytesPerPrincipal)
        hosts = HostQuotaTable(limit: limits.recordedResponsesPerHost)
        hostBytes = HostQuotaTable(limit: limits.recordedResponseBytesPerHost)
    }

    /// The number of principals and hosts with recorded responses.
    var scopeCount: (principals: Int, hosts: Int) { (principals.count, hosts.count) }
}

/// The quotas that the responses of one connection use, besides the connection's own.
struct IdempotencyReservation {
    /// A limit that is reached: its scope, and the setting with its value.
    struct Full {
        let whose: String
        let setting: String

        init(_ whose: String, _ setting: String, _ limit: Int) {
            self.whose = whose
            self.setting = "\(setting): \(limit)"
        }
    }

    private let all: IdempotencyQuotas
    private let principal: ScopedQuota<PrincipalName>?
    private let principalBytes: ScopedQuota<PrincipalName>?
    private let host: HostQuota?
    private let hostBytes: HostQuota?

    init(_ all: IdempotencyQuotas, principal: String?, host: AddressKey?) {
        self.all = all
        self.principal = principal.map { all.principals.share(of: PrincipalName($0)) }
        principalBytes = principal.map { all.principalBytes.share(of: PrincipalName($0)) }
        self.host = host.map { all.hosts.share(of: $0) }
        hostBytes = host.map { all.hostBytes.share(of: $0) }
    }

    /// Reserves one more response. Returns nil, or the limit that is reached; then nothing is reserved.
    func reserve(bytes: Int) -> Full? {
        if let principal, !principal.quota.reserve() {
            return Full("of this principal", "recordedResponsesPerPrincipal", principal.quota.limit)
        }
        if let host, !host.reserve() {
            principal?.quota.release()
            return Full("of this host", "recordedResponsesPerHost", host.limit)
        }
        var full: Full?
        if all.recordedResponses.reserve() {
            full = reserveBytes(bytes)
            if full != nil { all.recordedResponses.release() }
        } else {
            full = Full("of all", "recordedResponses", all.recordedResponses.limit)
        }
        guard full != nil else { return nil }
        principal?.quota.release()
        host?.release()
        return full
    }

    /// Reserves more bytes for a response that is reserved already.
    func reserveBytes(_ bytes: Int) -> Full? {
        if let principalBytes, !principalBytes.quota.reserve(bytes) {
            return Full("of this principal", "recordedResponseBytesPerPrincipal", principalBytes.quota.limit)
        }
        if let hostBytes, !hostBytes.reserve(bytes) {
            principalBytes?.quota.release(bytes)
            return Full("of this host", "recordedResponseBytesPerHost", hostBytes.limit)
        }
        guard !all.bytes.reserve(bytes) else { return nil }
        principalBytes?.quota.release(bytes)
        hostBytes?.release(bytes)
        return Full("of all", "recordedResponseBytes", all.bytes.limit)
    }

    /// Releases one response of this size.
    func release(bytes: Int) {
        all.recordedResponses.release()
        principal?.quota.release()
        host?.release()
        releaseBytes(bytes)
    }

    /// Releases bytes of a response.
    func releaseBytes(_ bytes: Int) {
        all.bytes.release(bytes)
        principalBytes?.quota.release(bytes)
        hostBytes?.release(bytes)
    }
}
