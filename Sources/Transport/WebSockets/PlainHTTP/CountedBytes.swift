internal import Bytes

/// Bytes that count as buffered memory of a connection, its host and its principal as long as the object exists, even after the
/// connection has ended.
package final class CountedBytes: Sendable {
    private let count: Int
    private let account: MemoryAccount
    /// Keeps the principal's budget the one that other connections of the principal use.
    private let owner: (any AnyObject & Sendable)?

    /// Takes over bytes that the account counts already.
    init(_ count: Int, in account: MemoryAccount, owner: (any AnyObject & Sendable)?) {
        (self.count, self.account, self.owner) = (count, account, owner)
    }

    deinit { account.release(count) }
}
