package import Trebuchet
internal import TrebuchetCluster

extension ServerView {
    /// A cluster node as it sees itself and the cluster.
    package struct Node: Sendable {
        package let name: String
        package let slotCount: Int
        package let acquiredSlots: UInt64
        package let lostSlots: UInt64
        /// The error of the coordination store; nil while it responds.
        package let storeError: String?
        package let liveNodes: [String]
        package let slotOwners: [SlotOwner]
    }

    /// The owner of consecutive slots, as far as the node knows it without a query, else the planned owner, which the set of live
    /// nodes determines.
    package struct SlotOwner: Sendable {
        package let owner: String?
        /// True if the node knows the owner; false for a planned one.
        package let isKnown: Bool
        package let first: Int
        package fileprivate(set) var last: Int
    }

    /// The cluster node; nil if the server is none.
    package var node: Node? {
        guard let nodes = server.context.nodes else { return nil }
        let (acquired, lost) = nodes.watch.counts
        return Node(
            name: nodes.node.name, slotCount: nodes.member.slotCount, acquiredSlots: acquired, lostSlots: lost,
            storeError: nodes.member.engineError?.message, liveNodes: nodes.member.liveNodes.map(\.name),
            slotOwners: Self.owners(of: nodes))
    }

    private static func owners(of nodes: ClusterRouter) -> [SlotOwner] {
        var parts: [SlotOwner] = []
        for slot in ClusterSlot.all {
            let known = nodes.directory.knownOwner(of: slot)
            let owner = (known ?? nodes.member.plannedOwner(of: slot))?.name
            if let last = parts.last, last.owner == owner, last.isKnown == (known != nil) {
                parts[parts.count - 1].last = slot.number
            } else {
                parts.append(SlotOwner(owner: owner, isKnown: known != nil, first: slot.number, last: slot.number))
            }
        }
        return parts
    }
}
