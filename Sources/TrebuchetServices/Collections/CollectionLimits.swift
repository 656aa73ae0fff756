public import Trebuchet

/// What collections may grow to, and how fast. Each limit has its own error.
public struct CollectionLimits: Sendable {
    /// Bytes of JSON that one document may have, its id too. Default 64 KiB.
    public var documentBytes = 64 << 10
    /// Documents of one collection. Default 10,000.
    public var documentsPerCollection = 10_000
    /// Bytes of all documents of one collection. Default 8 MiB: readers without a filter get it as one message at first.
    public var collectionBytes = 8 << 20
    /// Which part of the documents and bytes of a collection one principal may have in any case: of 16 a sixteenth. He may have
    /// more as long as at least as much is free. 1 for all of it. Default 16.
    public var principalShare = 16
    /// The same for what was created from one host, an IPv4 address or a /64 network of IPv6; this machine's own do not count.
    /// Default 16.
    public var hostShare = 16
    /// Collections that are in memory at once. For a new one the one goes that was not used for the longest time; it is refused
    /// when all are in use. Default 1,000.
    public var collections = 1_000
    /// Different queries that are open at the server. Default 10,000.
    public var queries = 10_000
    /// Of these, those that one principal reads, over all of its connections. Default 625, a sixteenth.
    public var queriesPerPrincipal = 625
    /// The same of one host, an IPv4 address or a /64 network of IPv6; this machine's own do not count. Default 625.
    public var queriesPerHost = 625
    /// Queries that one connection has open. Default 64.
    public var queriesPerConnection = 64
    /// Queries that one connection may open, close and get. Default 100 a second, 500 at once.
    public var reads = RateLimit(callsPerSecond: 100, burst: 500)
    /// Bytes of the documents that one result shows; more are cut off, and the result says that there are more. Default 4 MiB.
    public var resultBytes = 4 << 20
    /// The same of one page of a query that is read once. Default 1 MiB.
    public var pageBytes = 1 << 20
    /// Writes that one connection may make. Default 200 a second, 1,000 at once.
    public var writes = RateLimit(callsPerSecond: 200, burst: 1_000)
    /// Writes that one connection may make to one collection; they count for `writes` too. Default: none of its own.
    public var writesToCollection: RateLimit?
    /// Writes that all connections of one principal may make together. Default 400 a second, 2,000 at once.
    public var writesPerPrincipal = RateLimit(callsPerSecond: 400, burst: 2_000)
    /// The same of one host, as for ``hostShare``. Default 1,000 a second, 5,000 at once.
    public var writesPerHost = RateLimit(callsPerSecond: 1_000, burst: 5_000)
    /// Clients of one collection whose last writes are remembered, so that they are not done twice. Those that wrote longest
    /// ago are forgotten first. Default 10,000.
    public var rememberedClients = 10_000
    /// How long a query stays ready after its last reader has gone. Default 30 seconds: long enough to come back over
    /// another connection.
    public var idleQueryTime = Duration.seconds(30)

    /// How long a collection with documents stays in memory without writes and queries, unless others need its place. Default 5 minutes.
    public var idleTime = Duration.seconds(300)

    /// How long there are documents whose creator does not say it; nil, the default, for as long as nobody deletes them.
    public var lifetime: Duration?
    /// The same for the collections with these names, in place of `lifetime`.
    public var lifetimes: [String: Duration] = [:]

    /// Commands that are done at once or not at all. Each counts as a write.
    static let commandsPerTransaction = 100
    /// Bytes of JSON of one mutation: a larger one is not looked into.
    static let mutationBytes = 512 << 10
    /// How deep a document may nest arrays and objects, itself counted: it goes to clients within other things.
    static let deepest = JSONValue.deepest
    static let longestLifetime = Duration.seconds(100 * 366 * 86_400)

    /// What a collection that is kept at the engine of a cluster has at most, whatever the limits are: an engine keeps 16 MiB of one.
    static let placedBytes = 8 << 20
    static let placedDocuments = 10_000
    static let placedClients = 2_000

    /// Writes that are sent at once, and that are remembered of each client.
    static let mutationsPerCall = 32
    static let longestName = 128

    /// All limits at their defaults.
    public init() {}

    func lifetime(in collection: String) -> Duration? { lifetimes[collection] ?? lifetime }

    static func isName(_ name: some StringProtocol) -> Bool {
        (1...longestName).contains(name.utf8.count)
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
