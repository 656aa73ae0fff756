import Platform
import Testing

@testable import TrebuchetCluster

/// The readiness of a node, judged by its engine's state, with a manual clock.
struct MemberStandingTests {
    private let cluster = SimulatedCluster()
    private static let interval = SimulatedCluster.settings.roundInterval
    private static let span = SimulatedCluster.settings.leaseDuration - SimulatedCluster.settings.leaseMargin

    private func rounds(_ duration: Duration) async throws {
        let end = cluster.clock.milliseconds + UInt64(duration / .milliseconds(1))
        while cluster.clock.milliseconds < end { try await cluster.round() }
    }

    @Test("a node can serve from its first round on")
    func firstRounds() async throws {
        let one = try cluster.start()
        #expect(one.member.problem?.contains("has not joined the cluster yet") == true)
        try await cluster.round()
        #expect(one.member.problem == nil && one.member.engineError == nil)
        // This also holds for a node without slots: it sees the owners.
        let two = try cluster.start()
        try await cluster.round()
        #expect(two.member.slotCount == 0 && two.member.problem == nil)
    }

    @Test("an engine unavailable for less than a lease is a warning and no problem; for longer the node cannot serve")
    func away() async throws {
        let one = try cluster.start()
        try await cluster.round()
        one.link.set(.init(isAway: true))
        try await rounds(.seconds(2))
        #expect(one.member.engineError?.code == .unavailable && one.member.problem == nil)
        one.link.set(.init())
        // Failed writes have been retried by now.
        try await rounds(Self.span / 3)
        #expect(one.member.engineError == nil && one.member.problem == nil)

        one.link.set(.init(isAway: true))
        while one.member.slotCount > 0 { try await cluster.round() }
        let problem = try #require(one.member.problem)
        #expect(
            problem.contains("owns no slots") || problem.contains("no confirmation of the coordination store"),
            "\(problem)")
        #expect(problem.hasSuffix("away"))
        one.link.set(.init())
        try await cluster.round()
        #expect(one.member.problem == nil && one.member.slotCount == ClusterSlot.count)
    }

    @Test("an engine that responds but refuses writes is a warning until it accepts one, and every node cannot serve")
    func full() async throws {
        let (one, two) = (try cluster.start(), try cluster.start())
        #expect(try await cluster.settle(within: 40))
        for node in [one, two] { node.link.set(.init(takesNoWrites: true)) }
        try await rounds(Self.span / 3)
        for node in [one, two] {
            #expect(node.member.engineError?.message == "no memory left" && node.member.problem == nil)
        }
        try await rounds(Self.span)
        for node in [one, two] {
            #expect(node.member.problem?.hasSuffix("no memory left") == true)
            node.link.set(.init())
        }
        #expect(try await cluster.settle(within: 40))
        try await rounds(Self.span / 3)
        for node in [one, two] { #expect(node.member.engineError == nil && node.member.problem == nil) }
    }

    @Test("unanswered requests are a warning after two seconds, and none once one is answered")
    func silence() {
        var contact = EngineConnectivity()
        func seconds(_ count: UInt64) -> UInt64 { count * 1_000_000_000 }
        contact.beginRequest(at: seconds(10))
        contact.beginRequest(at: seconds(11))
        #expect(contact.engineError(at: seconds(11)) == nil)
        #expect(contact.engineError(at: seconds(13))?.message == "no response for 3 s")
        contact.endRequest(begunAt: seconds(10), at: seconds(13), isWrite: true, error: nil)
        #expect(contact.engineError(at: seconds(14)) == nil && contact.confirmedAt == seconds(10))
        #expect(contact.engineError(at: seconds(15)) != nil)
        contact.endRequest(begunAt: seconds(11), at: seconds(16), isWrite: false, error: nil)
        #expect(contact.engineError(at: seconds(30)) == nil)
    }

    @Test("a drained node has no problem, although the engine does not confirm it any more")
    func draining() async throws {
        let (one, two) = (try cluster.start(), try cluster.start())
        #expect(try await cluster.settle(within: 40))
        two.member.beginDraining()
        while !two.member.isOver {
            #expect(two.member.problem == nil)
            try await cluster.round()
        }
        #expect(one.member.problem == nil)
    }

    // MARK: An engine that has lost its data

    @Test("a running node acquires nothing of an emptied engine, even when other nodes use it again")
    func emptied() async throws {
        let (one, two) = (try cluster.start(), try cluster.start())
        #expect(try await cluster.settle(within: 40))
        cluster.engine.loseEverything()
        let three = try cluster.start()
        // It is the only live node, as the others do not announce themselves now: the plan assigns it all slots.
        await three.member.round()
        #expect(three.member.slotCount == ClusterSlot.count)
        cluster.clock.advance(by: Self.interval)
        for node in [one, two] {
            await node.member.round()
            #expect(node.member.isOver && node.member.slotCount == 0)
            #expect(node.member.problem?.contains("the coordination store has lost data") == true)
        }
        for slot in ClusterSlot.all {
            #expect(try await cluster.engine.owner(of: slot)?.lease.owner == three.member.node)
        }
    }

    @Test("a slot is not assigned to a node of another generation, nor without a generation")
    func acquiring() async throws {
        let node = try ClusterNode(name: "a")
        let generation = try await cluster.engine.createGeneration()
        #expect(try await cluster.engine.createGeneration() == generation)
        let slot = ClusterSlot(of: "x")
        _ = try await cluster.engine.acquireSlot(slot, for: node, duration: .seconds(5), generation: generation)
        cluster.engine.loseEverything()
        #expect(try await cluster.engine.generation() == nil)
        for _ in 0..<2 {
            let error = await #expect(throws: ClusterEngineError.self) {
                try await cluster.engine.acquireSlot(slot, for: node, duration: .seconds(5), generation: generation)
            }
            #expect(error?.code == .dataLoss)
            #expect(try await cluster.engine.owner(of: slot) == nil)
            #expect(try await cluster.engine.createGeneration() != generation)
        }
    }

    @Test("a write refused because the engine has lost the fence ends the ownership immediately")
    func refusedWrite() async throws {
        let one = try cluster.start()
        try await cluster.round()
        let lease = try #require(one.notes.owned.first)
        let error = ClusterEngineError.fenceFell(of: lease, to: 0)
        one.member.didLose(SlotLease(lease.slot, owner: lease.owner, fence: lease.fence + 1), error)
        one.member.didLose(lease, ClusterEngineError(.failed, "something else"))
        #expect(one.member.slotCount == ClusterSlot.count)
        one.member.didLose(lease, error)
        #expect(one.member.slotCount == 0 && one.member.isOver && one.member.problem == error.message)
    }

    @Test("a restarted member owns slots under higher fences than before")
    func again() async throws {
        let one = try cluster.start()
        try await cluster.round()
        let before = one.notes.owned
        cluster.engine.loseEverything()
        await one.member.round()
        await #expect(throws: ClusterEngineError.self) { try await one.member.run() }
        #expect(one.member.restart())
        #expect(!one.member.isOver && one.member.engineError == nil)
        try await cluster.round()
        let after = one.notes.owned
        #expect(after.count == ClusterSlot.count && one.member.problem == nil)
        #expect(after.map(\.fence).min()! > before.map(\.fence).max()!)
    }
}
