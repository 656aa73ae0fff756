internal import Platform

/// Which node is to own which slot: for each the live node with the highest number for it (rendezvous hashing). Whoever knows the same
/// nodes has the same plan, and when a node comes or goes the slots of that node alone move.
struct SlotPlan: Equatable, Sendable {
    private let owners: [ClusterNode]

    /// Without nodes it plans nothing.
    init(_ nodes: some Sequence<ClusterNode>) {
        // By the name, so that a node that starts again is to have what it had. Of two with one name each gets a part.
        let all = nodes.map { (node: $0, name: Self.digest($0.name), life: Self.digest($0.incarnation)) }
        guard !all.isEmpty else {
            owners = []
            return
        }
        owners = ClusterSlot.all.map { slot in
            all.max { left, right in
                let (one, other) = (Self.weight(left.name, slot), Self.weight(right.name, slot))
                return one != other ? one < other : Self.weight(left.life, slot) < Self.weight(right.life, slot)
            }!.node
        }
    }

    func owner(of slot: ClusterSlot) -> ClusterNode? { owners.isEmpty ? nil : owners[slot.number] }

    /// In their order.
    func slots(of node: ClusterNode) -> [ClusterSlot] {
        zip(ClusterSlot.all, owners).filter { $0.1 == node }.map(\.0)
    }

    private static func digest(_ text: String) -> UInt64 {
        var digest = StableDigest()
        digest.combine(text)
        return digest.value
    }

    private static func weight(_ digest: UInt64, _ slot: ClusterSlot) -> UInt64 {
        // Mixed first: numbers that are near to each other begin far apart.
        var source = RandomSource(seed: digest)
        var mixed = RandomSource(seed: source.next() ^ UInt64(slot.number))
        return mixed.next()
    }
}
