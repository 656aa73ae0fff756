package import Bytes
package import Transports

/// The limits on unsent output, shared by all connections of one kind.
package final class ChannelLimits: Sendable {
    /// The high watermark: with more unsent bytes a connection is not writable.
    package let high: Int
    /// The low watermark: with fewer unsent bytes a connection is writable again.
    package let low: Int
    /// The number of unsent bytes above which a connection is closed.
    package let limit: Int
    /// The maximum number of unsent shared bytes. A peer with more that does not accept as many within `sharedPatience` is
    /// disconnected: they are old versions that possibly no other connection needs.
    package let sharedBytes: Int
    package let sharedPatience: Duration
    /// The provider of memory accounts, or nil to count nothing.
    package let accounts: (any MemoryAccountProvider)?

    /// Creates limits.
    ///
    /// - Parameters:
    ///   - high: default 256 KiB.
    ///   - low: default 64 KiB.
    ///   - limit: default 64 MiB.
    package init(
        high: Int = 256 << 10, low: Int = 64 << 10, limit: Int = 64 << 20, sharedBytes: Int = .max,
        sharedPatience: Duration = .seconds(10), accounts: (any MemoryAccountProvider)? = nil
    ) {
        self.high = high
        self.low = low
        self.limit = limit
        self.sharedBytes = sharedBytes
        self.sharedPatience = sharedPatience
        self.accounts = accounts
    }

    package static let standard = ChannelLimits()
}

/// A provider of memory accounts for connections.
package protocol MemoryAccountProvider: AnyObject, Sendable {
    /// Creates the account of one connection, when memory is first held for it.
    func makeAccount(for address: SocketAddress?) -> MemoryAccount
}
