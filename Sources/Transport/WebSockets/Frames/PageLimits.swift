/// Limits on the use of a server's pages by HTTP clients.
public struct PageLimits: Sendable {
    /// The maximum time from the end of one response to the next request on a connection. Default 15 s.
    public var idleTimeout = Duration.seconds(15)
    /// The maximum number of requests per connection; the connection ends with the last response. Default 1,000.
    public var requestsPerConnection = 1_000
    /// The time in which a peer must accept `minimumBytesPerInterval` of a response; otherwise the connection is reset. It also limits the
    /// time that a disk may take to read a piece of a file. Default 20 s.
    public var transferInterval = Duration.seconds(20)
    /// The number of bytes that a peer must accept in each `transferInterval`, unless the response has fewer left. Default 16 KiB.
    public var minimumBytesPerInterval = 16 << 10
    /// The maximum number of files that are open for sending. A further request replaces the slowest of them, whose connection is
    /// reset. If all are younger than a tenth of `transferInterval`, the request replaces a file of the host with the most files. It
    /// gets 503 if no host has more files than its own. Files of at most 60 KiB are read at once and do not count. Default 512.
    public var openFiles = 512
    /// The maximum number of open files for one host, an IPv4 address or an IPv6 /64 network. Loopback addresses do not count.
    /// Default 64.
    public var openFilesPerHost = 64

    /// Creates the default limits.
    public init() {}
}
