package import Bytes
package import Transports

/// What connections of one kind may make us keep; one object for all of them.
package final class ChannelLimits: Sendable {
    /// Above this many waiting bytes a connection is not writable.
    package let high: Int
    /// Below this many it is again.
    package let low: Int
    /// Above this many it is ended.
    package let limit: Int
    /// Who has more than this many shared bytes waiting, and does not take as many within `sharedPatience`, is ended: they are old
    /// versions that nobody else may need any more.
    package let sharedBytes: Int
    package let sharedPatience: Duration
    /// Where what is kept is counted; nil for nowhere.
    package let accounts: (any MemoryAccounts)?

    /// - Parameters:
    ///   - high: default 256 KiB.
    ///   - low: default 64 KiB.
    ///   - limit: default 64 MiB.
    package init(
        high: Int = 256 << 10, low: Int = 64 << 10, limit: Int = 64 << 20, sharedBytes: Int = .max,
        sharedPatience: Duration = .seconds(10), accounts: (any MemoryAccounts)? = nil
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

/// Who counts what is held for connections.
package protocol MemoryAccounts: AnyObject, Sendable {
    /// The account of one connection, made when something is held for it for the first time.
    func makeAccount(for address: SocketAddress?) -> MemoryAccount
}
