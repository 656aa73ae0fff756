/// How much those who ask a server for pages may ask of it.
public struct PageLimits: Sendable {
    /// How long a connection is kept between the end of one answer and the next request; then it is ended. Default 15 s.
    public var idleTime = Duration.seconds(15)
    /// Requests of one connection; with the answer to the last of them the connection ends. Default 1,000.
    public var requestsPerConnection = 1_000
    /// In how much time a peer has to take `leastBytes` of an answer; who takes less is ended with a reset. It is also how long a
    /// disk may take to give a piece of a file. Default 20 s.
    public var patience = Duration.seconds(20)
    /// Bytes that a peer has to take in each `patience`, or the rest of the answer. Default 16 KiB.
    public var leastBytes = 16 << 10
    /// Files that are open at once because they are being sent; more are answered 503. Files of at most 60 KiB are read at once
    /// and do not count. Default 512.
    public var openFiles = 512
    /// The same for all connections from one host, an IPv4 address or a /64 network of IPv6; this machine's own do not count.
    /// Default 64.
    public var openFilesPerHost = 64

    /// The defaults: each property tells its own.
    public init() {}
}
