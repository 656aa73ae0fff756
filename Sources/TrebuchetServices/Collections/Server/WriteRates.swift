internal import Trebuchet

/// How fast principals and hosts write, over all of their connections.
final class WriteRates: Sendable {
    private let principals: SharedBuckets<ByteText>
    private let hosts: SharedBuckets<CallerHost>

    init(_ limits: CollectionLimits) {
        principals = SharedBuckets(limits.writesPerPrincipal)
        hosts = SharedBuckets(limits.writesPerHost)
    }

    /// Nil when so many writes may be made; else the time to wait for that, in milliseconds.
    func take(_ count: Int, _ principal: String?, _ host: CallerHost?, at now: UInt64) -> Int? {
        if let principal, let wait = principals.take(ByteText(principal), count, at: now) { return wait }
        return host.flatMap { hosts.take($0, count, at: now) }
    }
}
