internal import Platform
internal import Trebuchet

/// The quotas of different open queries: for the server, each principal and each host. Pure.
///
/// A query counts for each of its readers' holders, once for any number of connections. While it stays open without readers, it
/// counts for its last reader.
struct QueryQuotas {
    /// The holders whose quotas count a query, each with the number of its readers.
    struct Reservations {
        private var principals = UsageCounts<ByteText, Int>()
        private var hosts = UsageCounts<CallerHost, Int>()

        /// Returns the part of a holder that does not count the query yet.
        func missing(_ holder: QuotaHolder) -> QuotaHolder {
            var missing = holder
            if let principal = holder.principal, principals[principal] > 0 { missing.principal = nil }
            if let host = holder.host, hosts[host] > 0 { missing.host = nil }
            return missing
        }

        mutating func insert(_ holder: QuotaHolder) {
            if let principal = holder.principal { principals.add(1, to: principal) }
            if let host = holder.host { hosts.add(1, to: host) }
        }

        /// Removes a reader; returns the part of its holder that no longer counts the query.
        mutating func remove(_ holder: QuotaHolder) -> QuotaHolder {
            if let principal = holder.principal { principals.remove(1, from: principal) }
            if let host = holder.host { hosts.remove(1, from: host) }
            return missing(holder)
        }
    }

    /// The use of a collection by its queries: it is in use while it has queries.
    struct Use {
        /// The part of the holder without another query of the collection.
        var holder: QuotaHolder
        /// True when the collection has no other query.
        var isFirst: Bool
    }

    /// The divisor of a holder's quota of collections in use; a holder may use more while at least as much is free.
    private static let collectionShare = 16

    private let limit: Int
    private(set) var count = 0
    private var shares: HolderQuotaUsage
    private let collectionLimit: Int
    /// The number of collections with queries.
    private var collections = 0
    private var collectionShares = HolderQuotaUsage(perPrincipal: .max, perHost: .max)

    init(_ limits: CollectionLimits) {
        limit = limits.queries
        shares = HolderQuotaUsage(perPrincipal: limits.queriesPerPrincipal, perHost: limits.queriesPerHost)
        collectionLimit = limits.collections
    }

    /// Counts a query for the part of a holder that does not count it yet, and for the server when it is new.
    mutating func reserve(_ holder: QuotaHolder, isNew: Bool, of use: Use) throws(CollectionError) {
        if isNew, count >= limit { throw .tooManyQueries(limit: limit) }
        if let limit = shares.exceeded(holder) { throw .tooManyQueries(limit: limit) }
        // When a fraction of the limit would be zero, there is no separate quota.
        let part = collectionLimit / Self.collectionShare
        let most = part > 0 ? max(part, collectionLimit - collections) : collectionLimit
        guard collectionShares.most(of: use.holder) < most else { throw .tooManyCollections(limit: most) }
        if isNew { count += 1 }
        if use.isFirst { collections += 1 }
        shares.reserve(holder)
        collectionShares.reserve(use.holder)
    }

    /// Releases a holder's use of a query.
    mutating func release(_ holder: QuotaHolder, _ use: Use) {
        shares.release(holder)
        collectionShares.release(use.holder)
        if use.isFirst { collections -= 1 }
    }

    /// Releases a removed query.
    mutating func remove() { count -= 1 }
}
