/// Nodes and slots in memory, at a time that the caller passes, in milliseconds.
struct MemorySlots {
    /// The owner and the fence of a slot.
    private struct Slot {
        var owner: ClusterNode?
        var until: UInt64 = 0
        /// The fence of the newest owner; it stays after that owner has left.
        var fence: UInt64 = 0
    }

    /// The announced data and the expiry of a node.
    private struct Node {
        var info: [UInt8]
        var until: UInt64
    }

    private var slots: [ClusterSlot: Slot] = [:]
    private var nodes: [ClusterNode: Node] = [:]
    private(set) var generation: String?
    /// The number of generations so far.
    private var generations: UInt64 = 0

    mutating func beginGeneration() -> String {
        if let generation { return generation }
        generations += 1
        let begun = "generation \(generations)"
        generation = begun
        return begun
    }

    /// Deletes all data, including fences; later fences are higher.
    mutating func loseEverything() {
        let before = generations
        self = MemorySlots()
        generations = before
    }

    /// The number after which the fences of new slots begin.
    private var firstFence: UInt64 { generations > 1 ? (generations - 1) << 32 : 0 }

    mutating func announce(_ node: ClusterNode, _ info: [UInt8], until: UInt64, now: UInt64) {
        nodes = nodes.filter { $0.value.until > now }
        nodes[node] = Node(info: info, until: until)
    }

    mutating func withdraw(_ node: ClusterNode) { nodes[node] = nil }

    /// Expires a node and its leases.
    mutating func expire(_ node: ClusterNode) {
        nodes[node] = nil
        for (number, slot) in slots where slot.owner == node { slots[number]?.owner = nil }
    }

    func liveNodes(now: UInt64) -> [LiveNode] {
        nodes.filter { $0.value.until > now }
            .map { LiveNode($0.key, info: $0.value.info, remaining: .milliseconds($0.value.until - now)) }
            .sorted { $0.node.description < $1.node.description }
    }

    mutating func acquire(_ number: ClusterSlot, for node: ClusterNode, until: UInt64, now: UInt64) -> SlotAcquisition {
        if let holder = holder(of: number, now: now), holder.lease.owner != node { return .ownedByOther(holder) }
        var slot = slots[number] ?? Slot(fence: firstFence)
        if slot.owner != node { slot.fence += 1 }
        slot.owner = node
        slot.until = until
        slots[number] = slot
        return .acquired(SlotLease(number, owner: node, fence: slot.fence))
    }

    mutating func renew(_ lease: SlotLease, until: UInt64) throws(ClusterEngineError) -> Bool {
        guard try isNewest(lease) else { return false }
        slots[lease.slot]?.until = until
        return true
    }

    mutating func release(_ lease: SlotLease) throws(ClusterEngineError) -> Bool {
        guard try isNewest(lease) else { return false }
        slots[lease.slot]?.owner = nil
        return true
    }

    func holder(of number: ClusterSlot, now: UInt64) -> SlotOwner? {
        guard let slot = slots[number], let owner = slot.owner, slot.until > now else { return nil }
        return SlotOwner(
            SlotLease(number, owner: owner, fence: slot.fence), remaining: .milliseconds(slot.until - now))
    }

    /// Returns the reason to refuse a write under a lease; nil if it is accepted.
    func refusal(of lease: SlotLease, now: UInt64) throws(ClusterEngineError) -> SlotLeaseRejection? {
        guard try isNewest(lease) else { return .fenced(slots[lease.slot]?.fence ?? 0) }
        return slots[lease.slot]!.until > now ? nil : .leaseOver
    }

    func fence(of slot: ClusterSlot) -> UInt64 { slots[slot]?.fence ?? 0 }

    /// Restores the fence of an earlier process, without an owner.
    mutating func restore(_ fence: UInt64, of slot: ClusterSlot) { slots[slot] = Slot(fence: fence) }

    /// The reason to refuse a write under a lease.
    enum SlotLeaseRejection {
        case fenced(UInt64)
        case leaseOver
    }

    private func isNewest(_ lease: SlotLease) throws(ClusterEngineError) -> Bool {
        let slot = slots[lease.slot] ?? Slot()
        guard slot.fence >= lease.fence else { throw .fenceFell(of: lease, to: slot.fence) }
        return slot.owner == lease.owner && slot.fence == lease.fence
    }
}
