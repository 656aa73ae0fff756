internal import Platform

/// The planned owners of slots: for each slot the live node with the highest weight for it (rendezvous hashing). Nodes
/// with the same view have the same plan, and when a node joins or leaves, only its slots move.
struct SlotAssignment: Equatable, Sendable {
    private let owners: [ClusterNode]

    /// Creates a plan. Without nodes it is empty.
    init(_ nodes: some Sequence<ClusterNode>) {
        // By the name, so that a restarted node gets its former slots. Two nodes with one name share its slots.
        let all = nodes.map { (node: $0, name: Self.digest($0.name), incarnation: Self.digest($0.incarnation)) }
        guard !all.isEmpty else {
            owners = []
            return
        }
        owners = ClusterSlot.all.map { slot in
            all.max { left, right in
                let (one, other) = (Self.weight(left.name, slot), Self.weight(right.name, slot))
                return one != other
                    ? one < other : Self.weight(left.incarnation, slot) < Self.weight(right.incarnation, slot)
            }!.node
        }
    }

    func owner(of slot: ClusterSlot) -> ClusterNode? { owners.isEmpty ? nil : owners[slot.number] }

    /// Returns the slots of a node, in order.
    func slots(of node: ClusterNode) -> [ClusterSlot] {
        zip(ClusterSlot.all, owners).filter { $0.1 == node }.map(\.0)
    }

    private static func digest(_ text: String) -> UInt64 {
        var digest = StableDigest()
        digest.combine(text)
        return digest.value
    }

    private static func weight(_ digest: UInt64, _ slot: ClusterSlot) -> UInt64 {
        // Mixed first, so that similar numbers have different beginnings.
        var source = RandomSource(seed: digest)
        var mixed = RandomSource(seed: source.next() ^ UInt64(slot.number))
        return mixed.next()
    }
}
