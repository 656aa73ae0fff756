internal import Trebuchet

/// The services of a collection's host for its queries.
protocol QueryHost: AnyObject, Sendable {
    var limits: CollectionLimits { get }
    var memory: CollectionMemoryLedger { get }
    func caller(_ connection: CallerConnection) -> CollectionConnectionState
    /// Returns the reader identity of a principal, nil where all readers are alike, with the rules it belongs to.
    func reading(
        _ principal: Principal?, in collection: String
    ) -> (reader: CollectionReader?, rules: any CollectionRules)
    func consumeQuery(_ holder: QuotaHolder, isNew: Bool, of use: QueryQuotas.Use) throws(CollectionError)
    func releaseQuery(_ holder: QuotaHolder, _ use: QueryQuotas.Use)
    func didCloseQuery(_ name: String)
}

/// The state of a connection in the collection service: its open queries, observed results and rates.
typealias CollectionConnectionState = ServiceConnectionState<CollectionView, CollectionRate>

/// The rate-limited operations of a connection.
enum CollectionRate: Hashable {
    /// Calls that open, close and get queries.
    case reads
    case writes
    /// Writes to a collection with a separate rate.
    case writesTo(String)
}
