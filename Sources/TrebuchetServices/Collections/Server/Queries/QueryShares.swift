internal import Platform
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

    /// What a query makes of its collection: it is in use as long as it has queries.
    struct Use {
        /// What of the holder has no other query of the collection.
        var holder: Holder
        /// Whether the collection has no other query at all.
        var isFirst: Bool
    }

    /// Who keeps collections in use may have this part of them in any case, and more as long as at least as much is free.
    private static let collectionShare = 16

    private let limit: Int
    private(set) var count = 0
    private var shares: HolderShares
    private let collectionLimit: Int
    /// That have queries.
    private var collections = 0
    private var collectionShares = HolderShares(perPrincipal: .max, perHost: .max)

    init(_ limits: CollectionLimits) {
        limit = limits.queries
        shares = HolderShares(perPrincipal: limits.queriesPerPrincipal, perHost: limits.queriesPerHost)
        collectionLimit = limits.collections
    }

    /// Takes a place for what of a holder has none in a query; and one for the query itself, when that is new.
    mutating func take(_ holder: Holder, isNew: Bool, of use: Use) throws(CollectionError) {
        if isNew, count >= limit { throw .tooManyQueries(limit: limit) }
        if let limit = shares.exceeded(holder) { throw .tooManyQueries(limit: limit) }
        // Of so few that a part of them is none, nobody has one.
        let part = collectionLimit / Self.collectionShare
        let most = part > 0 ? max(part, collectionLimit - collections) : collectionLimit
        guard collectionShares.most(of: use.holder) < most else { throw .tooManyCollections(limit: most) }
        if isNew { count += 1 }
        if use.isFirst { collections += 1 }
        shares.take(holder)
        collectionShares.take(use.holder)
    }

    /// A holder has no place in a query any more.
    mutating func release(_ holder: Holder, _ use: Use) {
        shares.release(holder)
        collectionShares.release(use.holder)
        if use.isFirst { collections -= 1 }
    }

    /// A query has gone.
    mutating func remove() { count -= 1 }
}
