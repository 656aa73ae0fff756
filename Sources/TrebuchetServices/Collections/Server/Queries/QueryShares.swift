internal import Trebuchet

/// How many different queries there are at a server, and how many of them are those of one principal and of one host. Pure.
///
/// A query is in the share of each who reads it, once however many connections they read it over, and in that of its last reader as
/// long as it stays ready.
struct QueryShares {
    /// In whose shares a query is, each for how many of its readers.
    struct Stakes {
        private var principals: [ByteText: Int] = [:]
        private var hosts: [CallerHost: Int] = [:]

        /// What of a holder has no place in the query.
        func missing(_ holder: Holder) -> Holder {
            var missing = holder
            if let principal = holder.principal, principals[principal] != nil { missing.principal = nil }
            if let host = holder.host, hosts[host] != nil { missing.host = nil }
            return missing
        }

        mutating func add(_ holder: Holder) {
            if let principal = holder.principal { principals[principal, default: 0] += 1 }
            if let host = holder.host { hosts[host, default: 0] += 1 }
        }

        /// What of the holder has no place any more.
        mutating func remove(_ holder: Holder) -> Holder {
            if let principal = holder.principal { Self.decrement(&principals, principal) }
            if let host = holder.host { Self.decrement(&hosts, host) }
            return missing(holder)
        }

        private static func decrement<Party>(_ counts: inout [Party: Int], _ party: Party) {
            guard let count = counts[party] else { return }
            counts[party] = count > 1 ? count - 1 : nil
        }
    }

    private let limit: Int
    private(set) var count = 0
    private var shares: HolderShares

    init(_ limits: CollectionLimits) {
        limit = limits.queries
        shares = HolderShares(perPrincipal: limits.queriesPerPrincipal, perHost: limits.queriesPerHost)
    }

    /// Takes a place for what of a holder has none in a query; and one for the query itself, when that is new.
    mutating func take(_ holder: Holder, isNew: Bool) throws(CollectionError) {
        if isNew, count >= limit { throw .tooManyQueries(limit: limit) }
        if let limit = shares.exceeded(holder) { throw .tooManyQueries(limit: limit) }
        if isNew { count += 1 }
        shares.take(holder)
    }

    mutating func release(_ holder: Holder) { shares.release(holder) }

    /// A query has gone.
    mutating func remove() { count -= 1 }
}
