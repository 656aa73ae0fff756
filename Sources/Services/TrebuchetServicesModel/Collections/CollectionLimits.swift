public import TrebuchetActors

/// Limits for the size of collections and the rate of their use. Each limit has its own error.
public struct CollectionLimits: Sendable {
    /// Bytes of JSON that one document may have, including its id. Default 64 KiB.
    public var documentBytes = 64 << 10
    /// Documents of one collection. Default 10,000.
    public var documentsPerCollection = 10_000
    /// Bytes of all documents of one collection. Default 8 MiB: readers without a filter get it as one message at first.
    public var collectionBytes = 8 << 20
    /// The divisor of a principal's quota of the documents and bytes of a collection: with 16, a sixteenth is always available.
    /// A principal may use more while at least as much stays free. With 1, there is no separate quota. Default 16.
    public var principalQuotaDivisor = 16
    /// The divisor of the quota of one host, here an IPv4 address or a /48 network of IPv6; loopback callers do not count.
    /// Default 16.
    public var hostQuotaDivisor = 16
    /// Collections that are in memory at once. A new one replaces the collection that was unused for the longest time; it is
    /// refused when all are in use. Default 1,000.
    public var collections = 1_000
    /// Different queries that are open at the server. Default 10,000.
    public var queries = 10_000
    /// Queries that one principal has open, over all of its connections. Default 625, a sixteenth.
    public var queriesPerPrincipal = 625
    /// Queries that one host, an IPv4 address or a /64 network of IPv6, has open; loopback callers do not count. Default 625.
    public var queriesPerHost = 625
    /// Queries that one connection has open. Default 64.
    public var queriesPerConnection = 64
    /// Bytes of the documents of all loaded collections, each counted with 256 more, and of all open queries, counted by their size
    /// and their results. They also count towards `ServerLimits.memory.total`, of which they use a half at most. Above the limit,
    /// unused collections are unloaded, queries are refused with `serverTooLarge`, and writes other than deletions wait. Default
    /// 256 MiB.
    public var storedBytes = 256 << 20
    /// Bytes of the queries that one connection has opened; more are refused with `clientTooLarge`. Default 32 MiB.
    public var storedBytesPerConnection = 32 << 20
    /// Bytes of the queries that one principal has opened, over all of its connections. Default 64 MiB.
    public var storedBytesPerPrincipal = 64 << 20
    /// Bytes of the queries that one host, an IPv4 address or a /64 network of IPv6, has opened, and of the collections that it has
    /// loaded; loopback callers do not count. At least as much as one collection at its limits. Default 64 MiB.
    public var storedBytesPerHost = 64 << 20
    /// Queries that one connection may open, close and get. Default 100 a second, 500 at once.
    public var readsPerConnection = RateLimit(callsPerSecond: 100, burst: 500)
    /// Bytes of the documents of one result; more are omitted, and the result indicates that. Default 4 MiB.
    public var resultBytes = 4 << 20
    /// Bytes of the documents of one page. Default 1 MiB.
    public var pageBytes = 1 << 20
    /// Writes that one connection may make. Default 200 a second, 1,000 at once.
    public var writesPerConnection = RateLimit(callsPerSecond: 200, burst: 1_000)
    /// Writes that one connection may make to one collection; they count for `writesPerConnection` too. Default: no separate limit.
    public var writesPerConnectionAndCollection: RateLimit?
    /// Writes that all connections of one principal may make together. Default 400 a second, 2,000 at once.
    public var writesPerPrincipal = RateLimit(callsPerSecond: 400, burst: 2_000)
    /// Writes that all connections of one host, as for ``hostQuotaDivisor``, may make together. Default 1,000 a second, 5,000 at once.
    public var writesPerHost = RateLimit(callsPerSecond: 1_000, burst: 5_000)
    /// Clients of one collection whose last writes are recorded, so that a repeated write is not executed twice. Clients
    /// whose writes have changed nothing are evicted first, then those of the host or user with the most. Default 10,000.
    public var deduplicatedClients = 10_000
    /// The time for which a query without readers stays open. Default 30 seconds: long enough to reconnect.
    public var idleQueryTime = Duration.seconds(30)

    /// The time for which a collection with documents stays in memory without writes and queries, unless others need its place.
    /// Default 5 minutes.
    public var idleTime = Duration.seconds(300)

    /// The lifetime of documents that are created without one; nil, the default, for no limit.
    public var documentLifetime: Duration?
    /// The lifetimes for the collections with these names, in place of `documentLifetime`.
    public var documentLifetimes: [String: Duration] = [:]

    /// The maximum number of commands in a transaction. Each counts as a write.
    package static let commandsPerTransaction = 100
    /// The maximum size of one mutation in bytes of JSON; a larger one is not decoded.
    package static let mutationBytes = 512 << 10
    /// The maximum nesting depth of a document, itself included. Clients receive it inside other values.
    package static let maximumDepth = JSONValue.maximumDepth
    static let maximumLifetime = Duration.seconds(100 * 366 * 86_400)

    /// The maximum size of a collection in the coordination store of a cluster, whatever the limits are: a store keeps 16 MiB
    /// of one.
    package static let clusteredBytes = 8 << 20
    package static let clusteredDocuments = 10_000
    package static let clusteredClients = 2_000

    /// The maximum number of writes in a call, and of recorded writes for each client.
    package static let mutationsPerCall = 32
    package static let maximumNameLength = 128
    /// The maximum size of the recorded writes of one collection in bytes.
    package static let outcomeBytes = 32 << 20

    /// Creates limits with the default values.
    public init() {}

    package func lifetime(in collection: String) -> Duration? { documentLifetimes[collection] ?? documentLifetime }

    package static func isName(_ name: some StringProtocol) -> Bool {
        (1...maximumNameLength).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                    true
                default: false
                }
            }
    }
}
