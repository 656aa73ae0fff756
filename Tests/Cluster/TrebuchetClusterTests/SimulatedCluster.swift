import Platform
import Testing

@testable import TrebuchetCluster

/// Nodes, an engine and its clock; the test runs the rounds.
final class SimulatedCluster {
    final class Node {
        let member: ClusterMember
        let link: FaultyEngine
        let notes = SlotRecorder()
        /// The node is inactive until this time.
        var stoppedUntil: UInt64 = 0

        init(_ member: (SlotRecorder) throws -> ClusterMember, _ link: FaultyEngine) rethrows {
            self.link = link
            self.member = try member(notes)
        }
    }

    static let settings: ClusterMemberSettings = {
        var settings = ClusterMemberSettings()
        // One request at a time: so each run with a seed is identical.
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

    /// - Parameter rate: the milliseconds of the node's clock in 1,000 ms of the engine's clock.
    @discardableResult
    func start(rate: UInt64 = 1_000) throws -> Node {
        born += 1
        let node = ClusterNode("n\(born)#" + String(repeating: "0", count: 32))!
        let link = FaultyEngine(engine, clock, seed: seed &* 31 &+ UInt64(born))
        let started = try Node(
            { [clock, born] notes in
                try ClusterMember(node, at: link, settings: Self.settings, listener: notes) {
                    // Each clock starts at another time.
                    clock.milliseconds * rate * 1_000 + UInt64(born) * 1_000_000_000_000
                }
            }, link)
        nodes.append(started)
        return started
    }

    func kill(_ node: Node) { nodes.removeAll { $0 === node } }

    /// Advances the clock, and runs a round of each node.
    func round(_ duration: Duration = SimulatedCluster.settings.roundInterval) async throws {
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
            #expect(node.notes.takeRevocationCount() <= handoverLimit(of: node.member), "seed \(seed)")
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

    /// True if each slot is owned by its planned owner only.
    var isSettled: Bool {
        let plan = SlotAssignment(nodes.map(\.member.node))
        return ClusterSlot.all.allSatisfy { slot in
            nodes.allSatisfy { ($0.member.lease(of: slot) != nil) == (plan.owner(of: slot) == $0.member.node) }
        }
    }

    /// Runs at most this number of rounds until the slots are settled.
    func settle(within rounds: Int) async throws -> Bool {
        for _ in 0..<rounds where !isSettled { try await round() }
        return isSettled
    }
}
