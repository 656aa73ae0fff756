internal import Bytes
internal import TrebuchetActors

/// The token buckets of one connection.
final class ConnectionBuckets {
    private var connection: TokenBucket?
    private var methods: [RatedMethod: TokenBucket] = [:]

    /// Takes a token for a call from each bucket that applies. Returns nil if the call is permitted, else the party over its
    /// limit, the setting and the time to wait in milliseconds.
    ///
    /// - Parameter type: The type of the called actor; nil where no rate of a method can apply.
    func consume(
        _ target: String, of type: ActorType?, _ rates: ServerLimits.CallRates,
        _ principals: ShardedBuckets<PrincipalName>?, _ principal: Principal?,
        at now: UInt64
    ) -> (what: String, setting: String, milliseconds: Int)? {
        if let method = type.map({ RatedMethod(target, of: $0) }), let limit = rates.perMethod[method],
            let wait = methods[method, default: TokenBucket(limit, now: now)].consume(at: now)
        {
            return ("calls of \(target.prefix(bytes: 128))", "calls.rate.perMethod", wait)
        }
        if let limit = rates.perConnection {
            if connection == nil { connection = TokenBucket(limit, now: now) }
            if let wait = connection?.consume(at: now) {
                return ("calls of this connection", "calls.rate.perConnection", wait)
            }
        }
        if let principals, let principal, let wait = principals.consume(principal.name, at: now) {
            return ("calls of '\(principal.id)'", "calls.rate.perPrincipal", wait)
        }
        return nil
    }
}
