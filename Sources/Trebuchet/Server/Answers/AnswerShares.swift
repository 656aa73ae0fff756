internal import Platform
internal import Bytes
internal import WebSockets

/// How many answers of `@Idempotent` calls a server keeps, and of how many bytes, for all and for each party: beside the memory of
/// each reactor, since a party may have connections on all of them.
final class AnswerShares: Sendable {
    let answers: Quota
    let bytes: Quota
    fileprivate let principals: Shares<PrincipalName>
    fileprivate let principalBytes: Shares<PrincipalName>
    fileprivate let hosts: Shares<AddressKey>
    fileprivate let hostBytes: Shares<AddressKey>

    init(_ limits: ServerLimits, within memory: MemoryBudget? = nil) {
        answers = Quota(limits.answers)
        bytes = Quota(limits.answerBytes, within: memory)
        principals = Shares(limit: limits.answersPerPrincipal)
        principalBytes = Shares(limit: limits.answerBytesPerPrincipal)
        hosts = Shares(limit: limits.answersPerHost)
        hostBytes = Shares(limit: limits.answerBytesPerHost)
    }

    /// Principals and hosts that answers are kept for.
    var partyCount: (principals: Int, hosts: Int) { (principals.count, hosts.count) }
}

/// The shares that the answers of one connection count in, beside its own.
struct AnswerHolding {
    /// A limit that is reached: whose, and the setting with its value.
    struct Full {
        let whose: String
        let setting: String

        init(_ whose: String, _ setting: String, _ limit: Int) {
            self.whose = whose
            self.setting = "\(setting): \(limit)"
        }
    }

    private let all: AnswerShares
    private let principal: Share<PrincipalName>?
    private let principalBytes: Share<PrincipalName>?
    private let host: Share<AddressKey>?
    private let hostBytes: Share<AddressKey>?

    init(_ all: AnswerShares, principal: String?, host: AddressKey?) {
        self.all = all
        self.principal = principal.map { all.principals.share(of: PrincipalName($0)) }
        principalBytes = principal.map { all.principalBytes.share(of: PrincipalName($0)) }
        self.host = host.map { all.hosts.share(of: $0) }
        hostBytes = host.map { all.hostBytes.share(of: $0) }
    }

    /// Counts one more answer. Nil, or the limit that has no room for it; then nothing is counted.
    func take(bytes: Int) -> Full? {
        if let principal, !principal.quota.take() {
            return Full("of this principal", "answersPerPrincipal", principal.quota.limit)
        }
        if let host, !host.quota.take() {
            principal?.quota.release()
            return Full("of this host", "answersPerHost", host.quota.limit)
        }
        var full: Full?
        if all.answers.take() {
            full = takeBytes(bytes)
            if full != nil { all.answers.release() }
        } else {
            full = Full("of all", "answers", all.answers.limit)
        }
        guard full != nil else { return nil }
        principal?.quota.release()
        host?.quota.release()
        return full
    }

    /// Counts more bytes of an answer that counts already.
    func takeBytes(_ bytes: Int) -> Full? {
        if let principalBytes, !principalBytes.quota.take(bytes) {
            return Full("of this principal", "answerBytesPerPrincipal", principalBytes.quota.limit)
        }
        if let hostBytes, !hostBytes.quota.take(bytes) {
            principalBytes?.quota.release(bytes)
            return Full("of this host", "answerBytesPerHost", hostBytes.quota.limit)
        }
        guard !all.bytes.take(bytes) else { return nil }
        principalBytes?.quota.release(bytes)
        hostBytes?.quota.release(bytes)
        return Full("of all", "answerBytes", all.bytes.limit)
    }

    /// One answer of so many bytes is not kept any more.
    func release(bytes: Int) {
        all.answers.release()
        principal?.quota.release()
        host?.quota.release()
        releaseBytes(bytes)
    }

    /// So many bytes of an answer are not kept any more.
    func releaseBytes(_ bytes: Int) {
        all.bytes.release(bytes)
        principalBytes?.quota.release(bytes)
        hostBytes?.quota.release(bytes)
    }
}
