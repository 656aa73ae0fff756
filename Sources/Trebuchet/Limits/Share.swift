internal import Bytes
internal import Synchronization

/// What may be used of something, counted from any thread.
struct Quota: ~Copyable, Sendable {
    let limit: Int
    private let used = Atomic<Int>(0)
    /// Where it counts too.
    private let memory: MemoryBudget?

    /// - Parameter memory: of bytes, where they count with all others.
    init(_ limit: Int, within memory: MemoryBudget? = nil) {
        self.limit = limit
        self.memory = memory
    }

    var count: Int { used.load(ordering: .relaxed) }

    /// False, and nothing is counted, when there is no room.
    func take(_ amount: Int = 1) -> Bool {
        guard memory?.take(amount) != false else { return false }
        if used.add(amount, ordering: .relaxed).newValue <= limit { return true }
        release(amount)
        return false
    }

    func release(_ amount: Int = 1) {
        used.subtract(amount, ordering: .relaxed)
        memory?.release(amount)
    }
}

/// The part of something that one party may use: a principal, or a host, with all of its connections.
final class Share<Party: Hashable & Sendable>: Sendable {
    let quota: Quota
    private let party: Party
    private let shares: Shares<Party>

    fileprivate init(_ party: Party, _ shares: Shares<Party>) {
        quota = Quota(shares.limit)
        self.party = party
        self.shares = shares
    }

    deinit { shares.forget(party) }
}

/// The shares of all parties. Who uses a share holds it, so that taking from it costs neither a lock nor a look-up; one
/// that nobody holds is gone.
final class Shares<Party: Hashable & Sendable>: Sendable {
    private struct Entry {
        weak var share: Share<Party>?
    }

    let limit: Int
    private let entries = Mutex<[Party: Entry]>([:])

    init(limit: Int) { self.limit = limit }

    /// How many parties hold theirs.
    var count: Int { entries.withLock { $0.count } }

    func share(of party: Party) -> Share<Party> {
        entries.withLock { entries in
            if let share = entries[party]?.share { return share }
            let share = Share(party, self)
            entries[party] = Entry(share: share)
            return share
        }
    }

    fileprivate func forget(_ party: Party) {
        let other: Share<Party>? = entries.withLock { entries in
            // Another one may have taken its place while this one went.
            if let other = entries[party]?.share { return other }
            entries[party] = nil
            return nil
        }
        // Held until here: freed within the lock, it would come here again.
        withExtendedLifetime(other) {}
    }
}
