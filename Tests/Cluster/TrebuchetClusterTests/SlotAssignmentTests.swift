import Testing

@testable import TrebuchetCluster

struct SlotAssignmentTests {
    private let nodes: [ClusterNode]

    init() throws { nodes = try (0..<8).map { try ClusterNode(name: "n\($0)") } }

    @Test("all members that know the same nodes make the same plan, in whatever order they learned of them")
    func same() {
        #expect(SlotAssignment(nodes) == SlotAssignment(nodes.reversed()))
        #expect(SlotAssignment([]).owner(of: ClusterSlot.all[0]) == nil && SlotAssignment([]).slots(of: nodes[0]) == [])
    }

    @Test("each slot has one owner, and nodes own about equally many", arguments: 1...8)
    func balance(_ count: Int) {
        let plan = SlotAssignment(nodes.prefix(count))
        let parts = nodes.map { plan.slots(of: $0) }
        #expect(parts.joined().sorted() == ClusterSlot.all)
        let fair = ClusterSlot.count / count
        for part in parts.prefix(count) { #expect((fair * 3 / 5...fair * 7 / 5).contains(part.count)) }
        #expect(parts.dropFirst(count).allSatisfy { $0.isEmpty })
    }

    @Test("when a node joins or leaves, only its slots move", arguments: 1...7)
    func moves(_ count: Int) {
        let (fewer, more) = (SlotAssignment(nodes.prefix(count)), SlotAssignment(nodes.prefix(count + 1)))
        let moved = ClusterSlot.all.filter { fewer.owner(of: $0) != more.owner(of: $0) }
        #expect(moved == more.slots(of: nodes[count]))
    }

    @Test("a restarted node is assigned its earlier slots, and beside its earlier incarnation a part of them")
    func again() throws {
        let next = try ClusterNode(name: "n0")
        let (before, after) = (SlotAssignment(nodes), SlotAssignment(nodes.dropFirst() + [next]))
        #expect(before.slots(of: nodes[0]) == after.slots(of: next))
        let both = SlotAssignment(nodes + [next])
        let parts = [both.slots(of: nodes[0]), both.slots(of: next)]
        #expect(parts.joined().sorted() == before.slots(of: nodes[0]))
        #expect(parts.allSatisfy { $0.count > 30 })
    }

    @Test("the plan is the same in every version: nodes of two versions must agree")
    func frozen() throws {
        let incarnation = String(repeating: "0", count: 32)
        let plan = SlotAssignment(try ["a", "b", "c"].map { try #require(ClusterNode("\($0)#\(incarnation)")) })
        let first = ClusterSlot.all.prefix(16).map { plan.owner(of: $0)!.name }.joined()
        #expect(first == "ccbabaabaacbcabb")
    }
}
