import DocumentedDefaults
import Platform
import Testing

@testable import TrebuchetCluster

/// Slot management of a node, at an engine in memory with a manual clock.
struct ClusterMemberTests {
    private let cluster = SimulatedCluster()
    private static let lease = SimulatedCluster.settings.leaseDuration
    private static let interval = SimulatedCluster.settings.roundInterval

    @Test("a single node owns all slots after one round")
    func alone() async throws {
        let one = try cluster.start()
        try await cluster.round()
        #expect(one.member.slotCount == ClusterSlot.count && one.notes.owned.count == ClusterSlot.count)
    }

    @Test("nodes hand over to a joining node its share of the slots, a limited number at once, and no more")
    func coming() async throws {
        let one = try cluster.start()
        try await cluster.round()
        let two = try cluster.start()
        var steps: [Int] = []
        while !cluster.isSettled, steps.count < 50 {
            let before = one.member.slotCount
            try await cluster.round()
            steps.append(before - one.member.slotCount)
        }
        #expect(cluster.isSettled && steps.max()! == SimulatedCluster.settings.concurrentHandovers)
        #expect(one.member.slotCount + two.member.slotCount == ClusterSlot.count && two.member.slotCount > 400)
        #expect(one.notes.lost == 0 && two.notes.lost == 0)
    }

    @Test("an engine that lists nodes twice does not stop a member")
    func namedTwice() async throws {
        let (one, two) = (try cluster.start(), try cluster.start())
        var faults = FaultyEngine.Faults()
        faults.namesTwice = true
        for node in [one, two] { node.link.set(faults) }
        for _ in 0..<50 where !cluster.isSettled { try await cluster.round() }
        #expect(one.member.slotCount + two.member.slotCount == ClusterSlot.count && one.member.slotCount > 0)
    }

    @Test("the other nodes own a dead node's slots when its leases have expired, and not before")
    func dying() async throws {
        let (one, two) = (try cluster.start(), try cluster.start())
        #expect(try await cluster.settle(within: 40))
        let own = one.member.slotCount
        let died = cluster.clock.milliseconds
        cluster.kill(two)
        while one.member.slotCount < ClusterSlot.count, cluster.clock.milliseconds < died + 60_000 {
            try await cluster.round()
        }
        let passed = Duration.milliseconds(cluster.clock.milliseconds - died)
        #expect(own < ClusterSlot.count && one.member.slotCount == ClusterSlot.count)
        #expect(passed > Self.lease / 2 && passed <= Self.lease + SimulatedCluster.settings.leaseMargin, "\(passed)")
    }

    @Test("a process suspended for longer than its leases owns nothing when it resumes")
    func suspended() async throws {
        let (one, two) = (try cluster.start(), try cluster.start())
        #expect(try await cluster.settle(within: 40))
        let slot = try #require(one.notes.owned.first).slot
        one.stoppedUntil = cluster.clock.milliseconds + 6_000
        // Only its clock shows this.
        cluster.clock.advance(by: Self.lease - SimulatedCluster.settings.leaseMargin)
        #expect(one.member.lease(of: slot) == nil)
        while cluster.clock.milliseconds < one.stoppedUntil - 250 { try await cluster.round() }
        #expect(two.member.slotCount == ClusterSlot.count)
        try await cluster.round()
        #expect(try await cluster.settle(within: 40))
        #expect(one.notes.lost > 400)
    }

    @Test(
        "a node without its engine owns its slots for the lease duration less the margin, and again when the engine is back"
    )
    func away() async throws {
        let one = try cluster.start()
        try await cluster.round()
        one.link.set(.init(isAway: true))
        let left = cluster.clock.milliseconds
        while one.member.slotCount > 0, cluster.clock.milliseconds < left + 60_000 { try await cluster.round() }
        let passed = Duration.milliseconds(cluster.clock.milliseconds - left)
        let span = Self.lease - SimulatedCluster.settings.leaseMargin
        #expect(passed >= span && passed <= span + Self.interval)
        #expect(one.notes.owned.isEmpty && one.notes.lost == ClusterSlot.count)
        one.link.set(.init())
        try await cluster.round()
        #expect(one.member.slotCount == ClusterSlot.count && one.notes.owned.count == ClusterSlot.count)
        // No other node owned them: the fence is the same.
        #expect(one.notes.owned.allSatisfy { $0.fence == 1 })
    }

    @Test("a release that reaches the engine late does not end a lease acquired after it")
    func lateRelease() async throws {
        let one = try cluster.start()
        try await cluster.round()
        one.link.set(.init(delaysReleases: true))
        let two = try cluster.start()
        for _ in 0..<3 { try await cluster.round() }
        // The node owns them again, and the engine still has them.
        two.member.beginDraining()
        try await cluster.round()
        let left = ClusterSlot.count - one.member.slotCount
        for _ in 0..<3 { try await cluster.round() }
        #expect(
            left >= SimulatedCluster.settings.concurrentHandovers && one.member.slotCount == ClusterSlot.count - left)
        await one.link.deliver()
        try await cluster.check()
        one.link.set(.init())
        #expect(try await cluster.settle(within: 3))
        #expect(one.notes.owned.filter { $0.fence == 2 }.count == left)
    }

    @Test("a draining node releases all slots, acquires none, and is then no longer listed")
    func draining() async throws {
        let (one, two) = (try cluster.start(), try cluster.start())
        #expect(try await cluster.settle(within: 40))
        one.member.beginDraining()
        var rounds = 0
        while !one.member.isOver, rounds < 100 {
            try await cluster.round()
            rounds += 1
        }
        #expect(one.member.isOver && one.notes.owned.isEmpty && one.notes.lost == 0)
        // It had half of the slots, and one other node acquires twice as many in a round as a joining node gets.
        #expect(rounds <= ClusterSlot.count / 2 / (SimulatedCluster.settings.concurrentHandovers * 2) + 2)
        #expect(try await cluster.engine.nodes().map(\.node) == [two.member.node])
        #expect(try await cluster.settle(within: 3))
        #expect(two.member.slotCount == ClusterSlot.count)
    }

    @Test("the only node releases all its slots at once when it drains")
    func drainingAlone() async throws {
        let one = try cluster.start()
        #expect(try await cluster.settle(within: 40))
        one.member.beginDraining()
        for _ in 0..<3 { try await cluster.round() }
        #expect(one.member.isOver && one.notes.owned.isEmpty && one.notes.lost == 0)
    }

    @Test("a node that drains while its engine is unavailable ends when its leases have expired")
    func drainingAway() async throws {
        let one = try cluster.start()
        try await cluster.round()
        one.link.set(.init(isAway: true))
        one.member.beginDraining()
        let left = cluster.clock.milliseconds
        while !one.member.isOver, cluster.clock.milliseconds < left + 60_000 { try await cluster.round() }
        #expect(one.member.isOver)
        #expect(.milliseconds(cluster.clock.milliseconds - left) <= Self.lease * 2 + Self.interval * 2)
    }

    @Test(
        "after a new connection to the engine, nodes that were live before keep their slots for a while",
        arguments: [false, true])
    func reconnection(_ isBack: Bool) async throws {
        let (one, two) = (try cluster.start(), try cluster.start())
        #expect(try await cluster.settle(within: 40))
        let own = one.member.slotCount
        // An outage for longer than the leases. The first node reaches the engine again before the second one.
        cluster.clock.advance(by: Self.lease * 2)
        for node in [one, two] { node.link.reconnect() }
        let grace = SimulatedCluster.settings.reconnectionGrace
        for _ in 0..<Int(grace / Self.interval / 2) {
            cluster.clock.advance(by: Self.interval)
            await one.member.round()
        }
        #expect(one.member.slotCount == own && one.member.liveNodes.count == 2)
        if isBack {
            #expect(try await cluster.settle(within: 4))
            #expect(one.member.slotCount == own && two.member.slotCount == ClusterSlot.count - own)
        } else {
            cluster.kill(two)
            for _ in 0...Int(grace / Self.interval) { try await cluster.round() }
            #expect(one.member.slotCount == ClusterSlot.count && one.member.liveNodes.count == 1)
        }
    }

    @Test("a slot that a listener does not stop in time is released all the same, and reported as lost")
    func stuck() async throws {
        let one = try cluster.start()
        try await cluster.round()
        one.notes.blockRevocations()
        let two = try cluster.start()
        let member = two.member
        for _ in 0..<30 {
            cluster.clock.advance(by: Self.interval)
            await one.member.round()
            await member.round()
            try await cluster.check()
        }
        // 7.5 s: two steps with a timeout of 5 s, of which one has passed.
        #expect(one.notes.lost == SimulatedCluster.settings.concurrentHandovers)
        #expect(two.member.slotCount == one.notes.lost)
        #expect(one.notes.takeRevocationCount() == SimulatedCluster.settings.concurrentHandovers * 2)
        one.notes.unblockRevocations()
        #expect(try await cluster.settle(within: 40))
    }

    @Test(
        "an engine that has lost its data ends the ownership for good, and the member reports this",
        arguments: [false, true])
    func dataLoss(_ isNoticedFirst: Bool) async throws {
        let (one, two) = (try cluster.start(), try cluster.start())
        #expect(try await cluster.settle(within: 40))
        cluster.engine.loseEverything()
        let error = await #expect(throws: ClusterEngineError.self) {
            for _ in 0..<20 {
                cluster.clock.advance(by: Self.interval)
                for node in isNoticedFirst ? [one] : [two, one] { await node.member.round() }
                if one.member.isOver { try await one.member.run() }
            }
        }
        #expect(error?.code == .dataLoss)
        #expect(one.member.slotCount == 0 && one.notes.owned.isEmpty && one.notes.lost > 400)
        await one.member.round()
        #expect(one.member.slotCount == 0)
    }

    @Test("inconsistent settings are refused")
    func settings() throws {
        var wrong = [ClusterMemberSettings](repeating: ClusterMemberSettings(), count: 4)
        wrong[0].leaseMargin = .milliseconds(2_500)
        wrong[1].roundInterval = .seconds(2)
        wrong[2].concurrentHandovers = 0
        wrong[3].leaseDuration = .zero
        for settings in wrong {
            let error = #expect(throws: ClusterEngineError.self) {
                try ClusterMember(try ClusterNode(name: "a"), at: cluster.engine, settings: settings, listener: nil)
            }
            #expect(error?.code == .invalid)
        }
        let defaults = try DocumentedDefaults(
            of: ClusterMemberSettings(), in: "Cluster/TrebuchetCluster/Placement/ClusterMemberSettings.swift")
        #expect(defaults.wrong == [] && defaults.compared.count == 7)
    }

    @Test("the page of limits lists every setting of a coordination store and a member with its default")
    func page() throws {
        for settings in [ClusterEngineLimits(), ClusterMemberSettings()] as [any Sendable] {
            let table = try DocumentedTable(of: settings, in: "Reference/Limits.md")
            #expect(table.problems == [])
            #expect(table.count >= 6)
        }
    }
}
