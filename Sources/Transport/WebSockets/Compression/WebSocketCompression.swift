/// The settings of message compression: permessage-deflate (RFC 7692). It is used with peers that support it.
///
/// It is off by default, because it costs far more CPU time than sending. Also, text chosen by an attacker that is compressed
/// together with a secret reveals the secret through its length. Enable it where bandwidth is expensive.
///
/// A reactor compresses large messages in pieces and does other work between them. Messages of more than 32 KiB, and later messages
/// of the connection, therefore leave in later steps, in order; they count as unsent output. When more than 16 MiB wait, and when
/// the connection closes, they are sent uncompressed.
///
/// Memory: without context takeover, the default, a server connection keeps no state between messages. Each of the server's
/// reactors has one compressor (256 KiB) and one decompressor (48 KiB) for all connections. A client has its own codecs, from its
/// first compressed message on. With context takeover each connection has its own codec in each negotiated direction.
public struct WebSocketCompression: Sendable, Equatable {
    /// The size in bytes from which messages are compressed. Default 1,024: small ones gain little. At least 1.
    public var threshold = 1024
    /// The compression level from 1, the fastest, to 9, the smallest. Default 1: on JSON it has most of the gain for a third of
    /// the work.
    public var level = 1
    /// Whether the server compresses each message independently. Default true. False makes similar small messages smaller, but
    /// costs 256 KiB per connection, and a broadcast is compressed again for each subscriber.
    public var serverNoContextTakeover = true
    /// Whether the client compresses each message independently. Default true. False costs a server 48 KiB per connection.
    public var clientNoContextTakeover = true
    /// The window of the server's compressor, as a power of two: 9 to 15, the default. 9 takes 132 KiB instead of 256.
    public var serverMaxWindowBits = 15
    /// The window of the client's compressor. A server can set it only for clients that offer the choice.
    public var clientMaxWindowBits = 15

    /// Creates the default settings.
    public init() {}

    /// The settings, clamped to their bounds.
    var bounded: WebSocketCompression {
        var copy = self
        copy.threshold = max(threshold, 1)
        copy.level = min(max(level, 1), 9)
        copy.serverMaxWindowBits = min(max(serverMaxWindowBits, 9), 15)
        copy.clientMaxWindowBits = min(max(clientMaxWindowBits, 9), 15)
        return copy
    }
}
