internal import Platform

/// The leases known to one node, at times that the caller passes: nanoseconds of the node's clock.
///
/// A lease ends here a margin before it can end in the coordination store, counted from before the request was sent.
struct LeaseTable: Sendable {
    /// An owned slot.
    private struct OwnedSlot {
        let lease: SlotLease
        var requestedAt: UInt64
        /// The time since which the slot is being handed over.
        var leavingSince: UInt64?
    }

    /// The time from a request to the end of its lease, and to its renewal.
    private let span: UInt64
    private let renewal: UInt64
    private var ownedSlots: [ClusterSlot: OwnedSlot] = [:]
    /// The times until which other nodes own slots, unless they renew.
    private var elsewhere: [ClusterSlot: UInt64] = [:]
    /// Leases whose release is unconfirmed. Their slots are not acquired until then: a late release would end the new
    /// lease, which has the same fence.
    private(set) var released: [ClusterSlot: SlotLease] = [:]
    /// The highest fence of each slot that this node was given.
    private var fences: [ClusterSlot: UInt64] = [:]

    init(span: UInt64) {
        self.span = span
        renewal = span / 3
    }

    // MARK: Queries

    var isEmpty: Bool { ownedSlots.isEmpty }
    var count: Int { ownedSlots.count }

    /// The number of slots being handed over.
    var leavingCount: Int { ownedSlots.values.count { $0.leavingSince != nil } }

    /// Returns the lease for writes now.
    func lease(of slot: ClusterSlot, at now: UInt64) -> SlotLease? {
        guard let owned = ownedSlots[slot], now < expiration(of: owned) else { return nil }
        return owned.lease
    }

    /// Returns the lease that counts as owned, even if it has just expired: a renewal in progress may still confirm it.
    func known(_ slot: ClusterSlot) -> SlotLease? { ownedSlots[slot]?.lease }

    /// Returns true if the lease counts as owned, even if it has just expired.
    func isOwned(_ lease: SlotLease) -> Bool { known(lease.slot) == lease }

    /// The time at which the first lease ends.
    var nextEnd: UInt64? { ownedSlots.values.map { expiration(of: $0) }.min() }

    /// Returns the leases to renew.
    func due(at now: UInt64) -> [SlotLease] {
        ownedSlots.values.filter { now >= $0.requestedAt &+ renewal }.map(\.lease).sorted { $0.slot < $1.slot }
    }

    private func expiration(of owned: OwnedSlot) -> UInt64 { owned.requestedAt &+ span }

    // MARK: Results of the coordination store

    /// Adds a lease; false if it has already expired. Throws if the coordination store has lost fences.
    mutating func acquired(_ lease: SlotLease, askedAt: UInt64, now: UInt64) throws(ClusterEngineError) -> Bool {
        try check(lease)
        fences[lease.slot] = lease.fence
        elsewhere[lease.slot] = nil
        guard now < askedAt &+ span else { return false }
        ownedSlots[lease.slot] = OwnedSlot(lease: lease, requestedAt: askedAt)
        return true
    }

    /// Records the other owner of a slot. Throws if the coordination store has lost fences of leases that this node
    /// was given. The fence of another node's lease may be unconfirmed by replicas, and is then lost in a regular
    /// failover.
    mutating func recordOwner(_ holder: SlotOwner, at now: UInt64) throws(ClusterEngineError) {
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
        guard let known = ownedSlots[lease.slot], known.lease == lease else { return }
        ownedSlots[lease.slot]?.requestedAt = max(known.requestedAt, askedAt)
    }

    /// Removes a lease; false if it was not present.
    mutating func lose(_ lease: SlotLease) -> Bool {
        guard ownedSlots[lease.slot]?.lease == lease else { return false }
        ownedSlots[lease.slot] = nil
        return true
    }

    /// Removes and returns the expired leases.
    mutating func expire(at now: UInt64) -> [SlotLease] {
        let span = span
        return remove { now >= $0.requestedAt &+ span }
    }

    mutating func loseAll() -> [SlotLease] { remove { _ in true } }

    private mutating func remove(_ isOver: (OwnedSlot) -> Bool) -> [SlotLease] {
        let over = ownedSlots.values.filter(isOver).map(\.lease).sorted { $0.slot < $1.slot }
        for lease in over { ownedSlots[lease.slot] = nil }
        return over
    }

    // MARK: Releases

    mutating func dropLease(_ lease: SlotLease) -> Bool {
        guard lose(lease) else { return false }
        released[lease.slot] = lease
        return true
    }

    mutating func didRelease(_ lease: SlotLease) {
        if released[lease.slot] == lease { released[lease.slot] = nil }
    }

    // MARK: Planning

    /// Returns the slots to acquire: all planned ones that may be free, and the first of those owned by others, which
    /// hand these over first.
    func claims(_ planned: [ClusterSlot], atMost polls: Int, now: UInt64) -> [ClusterSlot] {
        var left = polls
        return planned.filter { slot in
            guard ownedSlots[slot] == nil, released[slot] == nil else { return false }
            guard let end = elsewhere[slot], now < end else { return true }
            left -= 1
            return left >= 0
        }
    }

    /// Begins handovers of the first slots for which `isOthers` is true, so that at most `limit` are in progress.
    mutating func beginHandovers(atMost limit: Int, at now: UInt64, _ isOthers: (ClusterSlot) -> Bool) -> [SlotLease] {
        let free = limit - leavingCount
        guard free > 0 else { return [] }
        let leaving = ownedSlots.values.filter { $0.leavingSince == nil && isOthers($0.lease.slot) }.map(\.lease)
            .sorted { $0.slot < $1.slot }.prefix(free)
        for lease in leaving { ownedSlots[lease.slot]?.leavingSince = now }
        return Array(leaving)
    }

    /// Returns the leases whose handover began at or before `time`.
    func leaving(since time: UInt64) -> [SlotLease] {
        ownedSlots.values.filter { $0.leavingSince.map { $0 <= time } ?? false }.map(\.lease)
            .sorted { $0.slot < $1.slot }
    }
}
