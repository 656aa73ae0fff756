/// How messages are compressed with a peer that wants it too: permessage-deflate (RFC 7692).
///
/// Off by default: it costs a processor far more than sending does, and text that an attacker chooses, compressed
/// together with a secret, tells of the secret by its length. Turn it on where bytes are dear.
///
/// Memory: without context takeover, the default, a connection to a server keeps nothing between messages; each of the
/// server's reactors has one compressor (256 KiB) and one decompressor (48 KiB) for all. A client has its own, from its first
/// compressed message on. With context takeover each connection has its own in each direction where that is agreed.
public struct WebSocketCompression: Sendable, Equatable {
    /// Messages of fewer bytes are sent as they are. Default 1,024: small ones gain little. At least 1.
    public var threshold = 1024
    /// From 1, the fastest, to 9, the smallest. Default 1: on JSON it has most of the gain for a third of the work.
    public var level = 1
    /// Whether the server's messages are compressed each by itself. Default true. False makes similar small messages
    /// smaller; it costs 256 KiB for a connection, and a broadcast is compressed for each subscriber anew.
    public var serverNoContextTakeover = true
    /// Whether the client's messages are. Default true. False costs a server 48 KiB for a connection.
    public var clientNoContextTakeover = true
    /// How far back the server's compressor looks, as a power of two: 9 to 15, the default. 9 takes 132 KiB instead
    /// of 256.
    public var serverMaxWindowBits = 15
    /// How far back the client's looks. A server gets this from clients alone that offer the choice.
    public var clientMaxWindowBits = 15

    /// The defaults: each property tells its own.
    public init() {}

    /// The values within their bounds.
    var bounded: WebSocketCompression {
        var copy = self
        copy.threshold = max(threshold, 1)
        copy.level = min(max(level, 1), 9)
        copy.serverMaxWindowBits = min(max(serverMaxWindowBits, 9), 15)
        copy.clientMaxWindowBits = min(max(clientMaxWindowBits, 9), 15)
        return copy
    }
}
