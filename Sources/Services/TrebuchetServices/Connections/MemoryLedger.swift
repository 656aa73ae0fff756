internal import Bytes
internal import Synchronization
internal import Trebuchet

/// The limits of a `MemoryLedger` in bytes.
struct MemoryLimits {
    var total: Int
    var perConnection: Int
    var perPrincipal: Int
    var perHost: Int
    /// The bytes that a host may use when others have used all but a quarter of the total. 0 reserves nothing.
    var guaranteed = 0

    /// The bytes that only hosts within their guaranteed bytes, and loopback callers, may use.
    var reserve: Int { guaranteed > 0 ? total / 4 : 0 }
}

/// An error of a service with stored bytes.
protocol MemoryLimitError: Error {
    /// The connection, its principal or its host has the maximum number of stored bytes.
    static func clientTooLarge(limit: Int) -> Self
    /// The service or the server has the maximum number of stored bytes.
    static func serverTooLarge(limit: Int) -> Self
}

/// The state of a connection that counts its stored bytes.
protocol StoredByteCounter: AnyObject, Sendable {
    /// Counts a change of the bytes that are stored for the connection; returns false, and counts nothing, when it grows above
    /// the limit.
    func countStoredBytes(_ change: Int, limit: Int) -> Bool
}

extension ServiceConnectionState: StoredByteCounter {}

/// Counts the bytes that a service of a server stores for clients: per connection, principal, host and network, and in total. The
/// server's `bufferedBytes` include the total.
final class MemoryLedger<Client: StoredByteCounter, Failure: MemoryLimitError>: Sendable {
    /// Counted bytes and the parties for which they count.
    struct Charge: Sendable {
        let bytes: Int
        let holder: QuotaHolder
        /// The state of the connection; nil when it has closed.
        weak var client: Client?
    }

    private struct Usage {
        var holders: HolderQuotaUsage
        var total = 0
    }

    private let limits: MemoryLimits
    /// The budget of the server.
    private let server: MemoryBudget
    private let usage: Mutex<Usage>

    init(_ limits: MemoryLimits, in server: MemoryBudget) {
        self.limits = limits
        self.server = server
        usage = Mutex(
            Usage(holders: HolderQuotaUsage(perPrincipal: limits.perPrincipal, perHost: limits.perHost)))
    }

    /// All counted bytes.
    var totalBytes: Int { usage.withLock { $0.total } }

    /// The largest number of bytes that counts for a holder.
    func bytes(of holder: QuotaHolder) -> Int { usage.withLock { $0.holders.most(of: holder) } }

    /// Whether any host may store more bytes, if its quota permits.
    var hasRoom: Bool { totalBytes < limits.total - limits.reserve && server.usedBytes < server.limit }

    /// Counts new bytes in place of released ones. Throws, and changes nothing, when a quota or the total would grow above its
    /// limit. Fewer bytes than the same parties release are never refused.
    func replace(_ released: [Charge], with new: Charge) throws(Failure) {
        let own = released.reduce(0) { $0 + ($1.client === new.client ? $1.bytes : 0) }
        if let client = new.client, !client.countStoredBytes(new.bytes - own, limit: limits.perConnection) {
            throw Failure.clientTooLarge(limit: limits.perConnection)
        }
        let problem = usage.withLock { usage -> Failure? in
            release(released, from: &usage)
            guard let problem = self.problem(with: new, insteadOf: released, in: usage) else {
                usage.holders.reserve(new.holder, new.bytes)
                usage.total += new.bytes
                return nil
            }
            for charge in released { count(charge, in: &usage) }
            return problem
        }
        if let problem {
            _ = new.client?.countStoredBytes(own - new.bytes, limit: .max)
            throw problem
        }
        for charge in released where charge.client !== new.client {
            _ = charge.client?.countStoredBytes(-charge.bytes, limit: .max)
        }
    }

    /// Reserves the bytes in the server's budget when it returns nil.
    private func problem(with new: Charge, insteadOf released: [Charge], in usage: Usage) -> Failure? {
        let growth = new.bytes - released.reduce(0) { $0 + $1.bytes }
        let own = released.reduce(0) { $0 + ($1.holder == new.holder ? $1.bytes : 0) }
        if new.bytes > own, let exceeded = usage.holders.exceeded(new.holder, by: new.bytes) {
            return Failure.clientTooLarge(limit: exceeded)
        }
        guard growth > 0 else {
            server.adjustUsage(by: growth)
            return nil
        }
        var most = limits.total
        if let host = new.holder.host,
            usage.holders.most(of: QuotaHolder(principal: nil, host: host)) + new.bytes > limits.guaranteed
        {
            most -= limits.reserve
        }
        guard usage.total + new.bytes <= most else { return Failure.serverTooLarge(limit: limits.total) }
        return server.reserve(growth) ? nil : Failure.serverTooLarge(limit: server.limit)
    }

    /// Counts bytes that are stored already, regardless of the limits.
    func add(_ charge: Charge) {
        _ = charge.client?.countStoredBytes(charge.bytes, limit: .max)
        server.adjustUsage(by: charge.bytes)
        usage.withLock { count(charge, in: &$0) }
    }

    func release(_ charges: [Charge]) {
        guard !charges.isEmpty else { return }
        for charge in charges { _ = charge.client?.countStoredBytes(-charge.bytes, limit: .max) }
        server.release(charges.reduce(0) { $0 + $1.bytes })
        usage.withLock { release(charges, from: &$0) }
    }

    private func count(_ charge: Charge, in usage: inout Usage) {
        usage.holders.reserve(charge.holder, charge.bytes)
        usage.total += charge.bytes
    }

    private func release(_ charges: [Charge], from usage: inout Usage) {
        for charge in charges {
            usage.holders.release(charge.holder, charge.bytes)
            usage.total -= charge.bytes
        }
    }
}
