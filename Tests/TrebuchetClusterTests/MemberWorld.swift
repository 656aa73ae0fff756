import Platform
import Testing

@testable import TrebuchetCluster

/// Nodes, an engine and its clock; rounds are made by hand.
final class MemberWorld {
    final class Node {
        let member: ClusterMember
        let link: FaultyEngine
        let notes = SlotNotes()
        /// It does nothing until this time.
        var stoppedUntil: UInt64 = 0

        init(_ member: (SlotNotes) throws -> ClusterMember, _ link: FaultyEngine) rethrows {
            self.link = link
            self.member = try member(notes)
        }
    }

    static let settings: ClusterMemberSettings = {
        var settings = ClusterMemberSettings()
        // One question at a time: so each run with a seed is the same.
        (settings.requestsInFlight, settings.concurrentHandovers) = (1, 64)
        return settings
    }()

    let clock = ManualEngineClock()
    let engine: MemoryEngine
    private(set) var nodes: [Node] = []
    private var born = 0
    let seed: UInt64

    init(seed: UInt64 = 0) {
        self.seed = seed
        engine = MemoryEngine(clock: clock)
    }

    /// - Parameter rate: how many milliseconds of the node's clock are 1,000 of the engine's.
    @discardableResult
    func start(rate: UInt64 = 1_000) throws -> Node {
        born += 1
        let node = ClusterNode("n\(born)#" + String(repeating: "0", count: 32))!
        let link = FaultyEngine(engine, clock, seed: seed &* 31 &+ UInt64(born))
        let started = try Node(
            { [clock, born] notes in
                try ClusterMember(node, at: link, settings: Self.settings, listener: notes) {
                    // Each counts from a moment of its own.
                    clock.milliseconds * rate * 1_000 + UInt64(born) * 1_000_000_000_000
                }
            }, link)
        nodes.append(started)
        return started
    }

    func kill(_ node: Node) { nodes.removeAll { $0 === node } }

    /// Time passes, and each node makes a round.
    func round(_ duration: Duration = MemberWorld.settings.roundInterval) async throws {
        clock.advance(by: duration)
        try await check()
        for node in nodes where clock.milliseconds >= node.stoppedUntil {
            if node.link.isFrozen {
                await node.link.thaw()
            } else {
                let member = node.member
                await node.link.step {
                    await member.round()
                    await member.finishHandovers()
                }
            }
            #expect(node.notes.takeRevoked() <= handoverLimit(of: node.member), "seed \(seed)")
            try await check()
            if node.member.isOver {
                #expect(node.member.slotCount == 0)
                kill(node)
            }
        }
    }

    /// The most slots that a node gives away in a round. One that is drained gives twice as many to each other node that it
    /// knows of, and all at once where there is none.
    private func handoverLimit(of member: ClusterMember) -> Int {
        let limit = Self.settings.concurrentHandovers
        guard member.isDraining else { return limit }
        let others = member.liveNodes.count { $0 != member.node }
        return others == 0 ? ClusterSlot.count : limit * 2 * others
    }

    /// Checks that no node believes to own a slot that the engine assigns to another node, and that no two nodes own one slot.
    func check() async throws {
        for slot in ClusterSlot.all {
            var leases = leases(of: slot)
            while !leases.isEmpty {
                let holder = try await engine.owner(of: slot)
                if leases == [holder?.lease] { break }
                // A handover may have released the slot between the two reads.
                let now = self.leases(of: slot)
                guard now == leases else {
                    leases = now
                    continue
                }
                Issue.record("seed \(seed), at \(clock.milliseconds): \(leases), and the engine has \(holder as Any)")
                throw Broken()
            }
        }
    }

    private func leases(of slot: ClusterSlot) -> [SlotLease] { nodes.compactMap { $0.member.lease(of: slot) } }

    struct Broken: Error {}

    /// Whether each slot is owned by whom the plan says, and by nobody else.
    var isSettled: Bool {
        let plan = SlotAssignment(nodes.map(\.member.node))
        return ClusterSlot.all.allSatisfy { slot in
            nodes.allSatisfy { ($0.member.lease(of: slot) != nil) == (plan.owner(of: slot) == $0.member.node) }
        }
    }

    /// Rounds until it is so, at most so many.
    func settle(within rounds: Int) async throws -> Bool {
        for _ in 0..<rounds where !isSettled { try await round() }
        return isSettled
    }
}
