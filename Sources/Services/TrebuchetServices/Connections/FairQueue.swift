internal import Platform

/// Waiting jobs of callers, in a fair order by cost. Pure.
///
/// Networks have equal shares; each loopback caller has a separate share, and so has all shared work. In a network, each
/// principal and each connection that is not signed in has an equal share of that. So a caller has one share, however many of
/// its jobs wait. The next job is that of the caller which has used the least. A caller that was idle begins with the cost of
/// the others. While no jobs wait, debts fall: a debt of an hour ago must not let a caller wait behind each of many others. The jobs of
/// a caller are in the order of their numbers.
struct FairQueue<Connection: Hashable, Network: Hashable, Job> {
    /// A principal, a connection that is not signed in, or shared work that callers wait for; nil is the server.
    enum Member: Hashable {
        case principal(ByteText)
        case connection(Connection)
        case shared(ObjectIdentifier)
    }

    struct Caller: Hashable {
        /// Nil for a loopback caller and for shared work.
        let network: Network?
        let member: Member?
    }

    private struct Group: Hashable {
        let network: Network?
        /// Nil if there is a network.
        let member: Member?

        init(_ caller: Caller) {
            network = caller.network
            if case .shared = caller.member {
                // All shared work has one share; otherwise a caller could have one for each of many collections.
                member = .shared(ObjectIdentifier(SharedWork.self))
            } else {
                member = caller.network == nil ? caller.member : nil
            }
        }
    }

    private enum SharedWork {}

    private typealias Jobs = [(number: UInt64, job: Job)]

    private var groups = FairShares<Group, FairShares<Member?, Jobs>>()
    private(set) var count = 0
    /// By how much debts have fallen in all.
    private var settled = 0

    var isEmpty: Bool { count == 0 }

    /// The number of networks with a known cost or with jobs; for tests.
    var groupCount: Int { groups.count }

    mutating func insert(_ job: Job, number: UInt64, of caller: Caller) {
        count += 1
        groups.insert(Group(caller), FairShares()) { members in
            members.settle(to: settled)
            members.insert(caller.member, []) { jobs in
                let place = jobs.last.map { $0.number < number } ?? true ? jobs.count : 0
                jobs.insert((number, job), at: jobs[place...].firstIndex { $0.number > number } ?? jobs.count)
            }
        }
    }

    /// Removes the next job, and adds to the cost of its caller.
    mutating func removeFirst(charging cost: Int = 0) -> Job? {
        guard !isEmpty else { return nil }
        count -= 1
        return groups.removeFirst(charging: cost) { members in
            members.removeFirst(charging: cost) { jobs in jobs.isEmpty ? nil : jobs.removeFirst().job }
        }
    }

    /// Adds to the cost of a caller; a negative number returns a cost.
    mutating func charge(_ cost: Int, to caller: Caller) {
        groups.charge(cost, to: Group(caller), FairShares()) { members in
            members.settle(to: settled)
            members.charge(cost, to: caller.member, []) { _ in }
        }
    }

    /// Reduces all debts, because no jobs have waited for as long as this cost takes.
    mutating func settle(_ cost: Int) {
        settled += cost
        groups.settle(to: settled)
    }

    /// The numbers of waiting jobs of a caller, and of its network.
    func waitingCounts(of caller: Caller) -> (caller: Int, network: Int) {
        let group = Group(caller)
        return (groups.content(of: group)?.waitingCount(of: caller.member) ?? 0, groups.waitingCount(of: group))
    }

    /// Returns whether jobs of the caller wait, or its network has used more than others.
    func mustWait(_ caller: Caller) -> Bool { groups.mustWait(Group(caller)) }
}

/// The costs of equal shares, with their waiting jobs. Pure.
private struct FairShares<Key: Hashable, Content> {
    private struct Share {
        var content: Content
        /// The cost, counted from that of the share that had used the least.
        var used: Int
        /// The number of waiting jobs.
        var waiting = 0
    }

    /// The maximum cost that a share owes when no jobs wait.
    private var maximumDebt: Int { 10_000_000 }
    /// Above this number, all shares without waiting jobs are removed.
    private var maximumIdleShares: Int { 1_024 }

    private var shares: [Key: Share] = [:]
    private var waiting = 0
    /// The number of shares above which some are removed.
    private var maximumCount = 64
    /// The cost of the share with the last job, before that job.
    private var least = 0
    /// The part of `least` by which debts have fallen without jobs.
    private var settled = 0

    var count: Int { shares.count }

    mutating func insert(_ key: Key, _ empty: @autoclosure () -> Content, _ body: (inout Content) -> Void) {
        waiting += 1
        with(key, empty()) { share in
            share.waiting += 1
            body(&share.content)
        }
    }

    /// Removes a job from the share that has used the least.
    mutating func removeFirst<Job>(charging cost: Int, _ body: (inout Content) -> Job?) -> Job? {
        var next: (key: Key, used: Int)?
        for (key, share) in shares where share.waiting > 0 && share.used < next?.used ?? .max {
            next = (key, share.used)
        }
        guard let next, let place = shares.index(forKey: next.key) else { return nil }
        waiting -= 1
        least = max(least, next.used)
        shares.values[place].waiting -= 1
        shares.values[place].used += cost
        return body(&shares.values[place].content)
    }

    mutating func charge(
        _ cost: Int, to key: Key, _ empty: @autoclosure () -> Content, _ body: (inout Content) -> Void
    ) {
        let used = with(key, empty()) { share in
            share.used += cost
            body(&share.content)
            return share.used
        }
        if waiting == 0 { least = max(least, used - maximumDebt) }
        if shares.count > maximumCount { removeIdle() }
    }

    mutating func settle(to total: Int) {
        least += total - settled
        settled = total
    }

    /// Removes shares without waiting jobs: those without a debt, or all if there are many others.
    private mutating func removeIdle() {
        shares = shares.filter { $0.value.waiting > 0 || $0.value.used > least }
        if shares.count > maximumIdleShares { shares = shares.filter { $0.value.waiting > 0 } }
        maximumCount = max(64, 2 * shares.count)
    }

    func content(of key: Key) -> Content? { shares[key]?.content }

    func waitingCount(of key: Key) -> Int { shares[key]?.waiting ?? 0 }

    func mustWait(_ key: Key) -> Bool { shares[key].map { $0.waiting > 0 || $0.used > least } ?? false }

    private mutating func with<Result>(
        _ key: Key, _ empty: @autoclosure () -> Content, _ body: (inout Share) -> Result
    ) -> Result {
        let least = least
        return Self.change(&shares[key, default: Share(content: empty(), used: least)], least, body)
    }

    private static func change<Result>(
        _ share: inout Share, _ least: Int, _ body: (inout Share) -> Result
    ) -> Result {
        share.used = max(share.used, least)
        return body(&share)
    }
}
