internal import Bytes
internal import Synchronization

/// A limit with a use counter that any thread may change.
struct Quota: ~Copyable, Sendable {
    let limit: Int
    private let used = Atomic<Int>(0)
    /// The memory budget in which the use also counts.
    private let memory: MemoryBudget?

    /// - Parameter memory: the budget in which bytes also count.
    init(_ limit: Int, within memory: MemoryBudget? = nil) {
        self.limit = limit
        self.memory = memory
    }

    var count: Int { used.load(ordering: .relaxed) }

    /// Takes `amount`. Returns false, and counts nothing, if the quota or the memory budget is full.
    func reserve(_ amount: Int = 1) -> Bool {
        guard memory?.reserve(amount) != false else { return false }
        if used.add(amount, ordering: .relaxed).newValue <= limit { return true }
        release(amount)
        return false
    }

    func release(_ amount: Int = 1) {
        used.subtract(amount, ordering: .relaxed)
        memory?.release(amount)
    }
}

/// The quota of one scope: a principal or a host with all of its connections.
final class ScopedQuota<QuotaScope: Hashable & Sendable>: Sendable {
    let quota: Quota
    private let scope: QuotaScope
    private let shares: QuotaTable<QuotaScope>

    fileprivate init(_ scope: QuotaScope, _ shares: QuotaTable<QuotaScope>) {
        quota = Quota(shares.limit)
        self.scope = scope
        self.shares = shares
    }

    deinit { shares.remove(scope) }
}

/// The quotas of all scopes. Users of a quota hold a reference to it, so taking from it needs neither a lock nor a lookup; a
/// quota without references is freed.
final class QuotaTable<QuotaScope: Hashable & Sendable>: Sendable {
    /// A weak reference to the quota of one scope.
    private struct Entry {
        weak var share: ScopedQuota<QuotaScope>?
    }

    let limit: Int
    private let entries = Mutex<[QuotaScope: Entry]>([:])

    init(limit: Int) { self.limit = limit }

    /// The number of scopes with a referenced quota.
    var count: Int { entries.withLock { $0.count } }

    func share(of scope: QuotaScope) -> ScopedQuota<QuotaScope> {
        entries.withLock { entries in
            if let share = entries[scope]?.share { return share }
            let share = ScopedQuota(scope, self)
            entries[scope] = Entry(share: share)
            return share
        }
    }

    fileprivate func remove(_ scope: QuotaScope) {
        let other: ScopedQuota<QuotaScope>? = entries.withLock { entries in
            // Another thread may have created a new share for the scope during this deinit.
            if let other = entries[scope]?.share { return other }
            entries[scope] = nil
            return nil
        }
        // Keep `other` alive until the lock is released: if it were freed within it, its deinit would lock again.
        withExtendedLifetime(other) {}
    }
}
