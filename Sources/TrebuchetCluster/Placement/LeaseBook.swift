internal import Platform

/// What one node knows of its leases, at times that the caller gives: nanoseconds of a clock of its own.
///
/// A lease ends here a margin before it can end at the engine: counted from before the engine was asked.
struct LeaseBook: Sendable {
    private struct Held {
        let lease: SlotLease
        var askedAt: UInt64
        /// Since when it is being given away.
        var leavingSince: UInt64?
    }

    /// From asking to the end, and to asking again.
    private let span: UInt64
    private let renewal: UInt64
    private var held: [ClusterSlot: Held] = [:]
    /// Until when others have slots, unless they renew.
    private var elsewhere: [ClusterSlot: UInt64] = [:]
    /// Leases that were let go, and of which the engine has not said yet that it knows. The slot is not asked for until then: a release
    /// that comes late to the engine would end the new lease, which has the same fence.
    private(set) var released: [ClusterSlot: SlotLease] = [:]
    /// The highest fence of each slot that this node was given.
    private var fences: [ClusterSlot: UInt64] = [:]

    init(span: UInt64) {
        self.span = span
        renewal = span / 3
    }

    // MARK: What there is

    var isEmpty: Bool { held.isEmpty }
    var count: Int { held.count }

    /// How many are being given away.
    var leavingCount: Int { held.values.count { $0.leavingSince != nil } }

    /// What may be written under now.
    func lease(of slot: ClusterSlot, at now: UInt64) -> SlotLease? {
        guard let held = held[slot], now < end(of: held) else { return nil }
        return held.lease
    }

    /// Whether it counts as owned, also where its time is just over.
    func holds(_ lease: SlotLease) -> Bool { held[lease.slot]?.lease == lease }

    /// When the first of them ends.
    var nextEnd: UInt64? { held.values.map { end(of: $0) }.min() }

    /// Those to be renewed.
    func due(at now: UInt64) -> [SlotLease] {
        held.values.filter { now >= $0.askedAt &+ renewal }.map(\.lease).sorted { $0.slot < $1.slot }
    }

    private func end(of held: Held) -> UInt64 { held.askedAt &+ span }

    // MARK: What the engine says

    /// Takes a lease that the engine gave; false when its time is over by now. Throws when the engine has forgotten fences.
    mutating func acquired(_ lease: SlotLease, askedAt: UInt64, now: UInt64) throws(ClusterEngineError) -> Bool {
        try check(lease)
        fences[lease.slot] = lease.fence
        elsewhere[lease.slot] = nil
        guard now < askedAt &+ span else { return false }
        held[lease.slot] = Held(lease: lease, askedAt: askedAt)
        return true
    }

    /// Notes who else has a slot. Throws when the engine has forgotten fences: those of leases that this node was given. Another one's may not
    /// be confirmed by the replicas that durability asks for, and then it is lost with the server in good order.
    mutating func isHeld(_ holder: SlotHolder, at now: UInt64) throws(ClusterEngineError) {
        try check(holder.lease)
        elsewhere[holder.lease.slot] = now &+ holder.remaining.nanoseconds
    }

    private func check(_ lease: SlotLease) throws(ClusterEngineError) {
        let known = fences[lease.slot] ?? 0
        guard lease.fence >= known else {
            throw .fenceFell(of: SlotLease(lease.slot, owner: lease.owner, fence: known), to: lease.fence)
        }
    }

    mutating func renewed(_ lease: SlotLease, askedAt: UInt64) {
        guard let known = held[lease.slot], known.lease == lease else { return }
        held[lease.slot]?.askedAt = max(known.askedAt, askedAt)
    }

    /// Forgets a lease; false when it was not there any more.
    mutating func lose(_ lease: SlotLease) -> Bool {
        guard held[lease.slot]?.lease == lease else { return false }
        held[lease.slot] = nil
        return true
    }

    /// Forgets those whose time is over.
    mutating func expire(at now: UInt64) -> [SlotLease] {
        let span = span
        return remove { now >= $0.askedAt &+ span }
    }

    mutating func loseAll() -> [SlotLease] { remove { _ in true } }

    private mutating func remove(_ isOver: (Held) -> Bool) -> [SlotLease] {
        let over = held.values.filter(isOver).map(\.lease).sorted { $0.slot < $1.slot }
        for lease in over { held[lease.slot] = nil }
        return over
    }

    // MARK: Letting go

    mutating func letGo(_ lease: SlotLease) -> Bool {
        guard lose(lease) else { return false }
        released[lease.slot] = lease
        return true
    }

    mutating func didRelease(_ lease: SlotLease) {
        if released[lease.slot] == lease { released[lease.slot] = nil }
    }

    // MARK: What to do

    /// What the node asks for: all that is its by the plan and may be free, and of what others have the first ones, which they give away
    /// first.
    func claims(_ planned: [ClusterSlot], atMost polls: Int, now: UInt64) -> [ClusterSlot] {
        var left = polls
        return planned.filter { slot in
            guard held[slot] == nil, released[slot] == nil else { return false }
            guard let end = elsewhere[slot], now < end else { return true }
            left -= 1
            return left >= 0
        }
    }

    /// Begins to give away: the first that `isOthers` says are for others, so that no more than `limit` are leaving at once.
    mutating func giveAway(atMost limit: Int, at now: UInt64, _ isOthers: (ClusterSlot) -> Bool) -> [SlotLease] {
        let free = limit - leavingCount
        guard free > 0 else { return [] }
        let leaving = held.values.filter { $0.leavingSince == nil && isOthers($0.lease.slot) }.map(\.lease)
            .sorted { $0.slot < $1.slot }.prefix(free)
        for lease in leaving { held[lease.slot]?.leavingSince = now }
        return Array(leaving)
    }

    /// Those that have been leaving for so long.
    func leaving(since moment: UInt64) -> [SlotLease] {
        held.values.filter { $0.leavingSince.map { $0 <= moment } ?? false }.map(\.lease)
            .sorted { $0.slot < $1.slot }
    }
}
