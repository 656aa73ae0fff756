import Foundation
import NodeSupport
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetClient
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// Alarms of actors with `placement: .cluster`.
@Suite(.timeLimit(.minutes(5))) struct ClusterAlarmTests {
    private let tower = BellTower()
    private let engine = MemoryEngine()
    /// Far enough for any machine.
    private let hour = Duration.seconds(3_600)

    private func time(in duration: Duration) -> Int64 {
        Int64(Date().timeIntervalSince1970 * 1_000) + Int64(duration / .milliseconds(1))
    }

    private func bell(_ client: TrebuchetClient, _ name: String) throws -> Bell {
        try client.resolve(Bell.self, id: name)
    }

    private func shift(_ nodes: [Node], by duration: Duration) async {
        for node in nodes { await node.server.shiftAlarmClock(by: duration) }
    }

    /// The number of rows in the coordination store.
    private func rowCount() async throws -> Int {
        var count = 0
        for table in SlotAlarmRows.tables {
            count += try await engine.rows(of: table, prefix: "", after: nil, limit: 1_000).rows.count
        }
        return count
    }

    @Test("the owner delivers an alarm at its time, wherever it was set, and wakes an actor that is not active")
    func delivered() async throws {
        let nodes = try ["a", "b"].map { try tower.node($0, engine, idle: .seconds(300)) }
        try await Node.with(nodes) {
            let client = try await nodes[0].client()
            let names = [nodes[0], nodes[1]].flatMap { $0.names("bells") }
            for name in names { try await bell(client, name).set("dawn", at: time(in: hour), everySeconds: nil) }
            for node in nodes { for _ in 0..<2 { await node.server.advanceIdleTime(by: .seconds(301)) } }
            #expect(await eventually { nodes.allSatisfy { $0.server.actorCount == 0 } })
            await shift(nodes, by: hour / 2)
            #expect(tower.journal.entries.isEmpty)
            #expect(try await rowCount() == 2)
            await shift(nodes, by: hour)
            for name in names { await tower.journal.wait(for: "\(name) dawn") }
            for name in names {
                #expect(try await eventually { try await bell(client, name).counts() == ["dawn": 1] })
                #expect(try await bell(client, name).pending() == [])
            }
            #expect(try await eventually { try await rowCount() == 0 })
        }
        #expect(tower.journal.entries.count == 2)
        #expect(tower.earlyRings == [])
    }

    @Test(
        "the next owner delivers the alarms of a node that was killed, or has handed its slots over",
        arguments: [true, false])
    func moved(isKilled: Bool) async throws {
        let nodes = try ["a", "b"].map { try tower.node($0, engine) }
        try await Node.with(nodes) {
            let client = try await nodes[0].client()
            let names = nodes[1].names("bells", 3)
            for name in names { try await bell(client, name).set("noon", at: time(in: hour), everySeconds: nil) }
            if isKilled { try await nodes[1].kill() } else { await nodes[1].server.shutdown() }
            await shift([nodes[0]], by: hour + .seconds(1))
            for name in names { await tower.journal.wait(for: "\(name) noon") }
            for name in names {
                #expect(try await eventually { try await bell(client, name).counts() == ["noon": 1] })
            }
            #expect(try await eventually { try await rowCount() == 0 })
        }
        #expect(tower.journal.entries.count == 3)
    }

    @Test("alarms that became due while no node ran are delivered in the order of their times, few at once")
    func outage() async throws {
        let first = try tower.node("a", engine)
        try await first.start()
        #expect(await Node.ownAll([first]))
        let client = try await first.client()
        // In one slot, so that the next node owns all of them at once.
        let names = (0..<20).map { "bells/{x}\($0)" }
        for (index, name) in names.enumerated() {
            // The times are so far apart that a slow machine does not set two of them in another order.
            try await bell(client, name).set("late", at: time(in: .seconds(4_000 - 100 * index)), everySeconds: nil)
        }
        try await bell(client, names[7]).set("often", at: time(in: .seconds(100)), everySeconds: 1_000)
        await first.stop()
        try engine.expire(first.member.node)
        var limits = ServerLimits()
        limits.alarms.concurrent = 1
        let second = try tower.node("b", engine, limits: limits)
        await second.server.shiftAlarmClock(by: .seconds(5_000))
        try await second.start()
        await tower.journal.wait { $0.count == 21 }
        // One delivery has both alarms of an actor.
        let rest = names.enumerated().filter { $0.offset != 7 }.reversed().map { "\($0.element) late" }
        #expect(tower.journal.entries == ["\(names[7]) often", "\(names[7]) late"] + rest)
        #expect(try await eventually { try await rowCount() == 1 })
        await second.stop()
    }

    @Test(
        "a clock that is set back delays alarms, one that is set forward delivers them, and a failed one follows later")
    func clocks() async throws {
        let node = try tower.node("a", engine)
        try await Node.with([node]) {
            let client = try await node.client()
            let one = try bell(client, "bells/1")
            try await one.set("x", at: time(in: hour), everySeconds: nil)
            await node.server.shiftAlarmClock(by: hour * -2)
            await node.server.shiftAlarmClock(by: hour * 2 + hour / 2)
            #expect(tower.journal.entries.isEmpty)
            await node.server.shiftAlarmClock(by: hour)
            await tower.journal.wait(for: "bells/1 x")
            try await one.set("failing", at: time(in: hour), everySeconds: nil)
            await tower.journal.wait(for: "bells/1 failing")
            await node.server.shiftAlarmClock(by: hour)
            await tower.journal.wait { $0.count { $0 == "bells/1 failing" } == 2 }
            #expect(try await eventually { try await one.counts() == ["x": 1, "failing": 1] })
            #expect(try await one.cancel("x") == false)
        }
        #expect(tower.earlyRings == [])
    }

    @Test(
        "while the coordination store accepts no writes, the outcome of a method waits, and the method does not run again"
    )
    func refusedWrites() async throws {
        let engineRoute = FaultyEngine(engine)
        let node = try tower.node("a", engine, through: engineRoute)
        try await Node.with([node]) {
            let client = try await node.client()
            let one = try bell(client, "bells/1")
            try await one.set("x", at: time(in: hour), everySeconds: nil)
            engineRoute.set { $0.failsAppends = true }
            await node.server.shiftAlarmClock(by: hour * 2)
            // The method runs, and its outcome is not written.
            await tower.journal.wait(for: "bells/1 x")
            engineRoute.set { $0.failsAppends = false }
            #expect(try await eventually { try await one.counts() == ["x": 1] })
            #expect(try await eventually { try await rowCount() == 0 })
        }
        #expect(tower.journal.entries.count == 1)
    }

    @Test("an actor that only one node has cannot set alarms without a store of that node")
    func withoutStore() async throws {
        let node = try Node("a", engine) { server in
            let (system, place) = (server.actorSystem, BellTower.Place(tower, "a"))
            server.expose(Bell.self, as: "bells/*") { name in Bell(name: name, tower: place, actorSystem: system) }
        }
        try await Node.with([node]) {
            let client = try await node.client()
            let error = await #expect(throws: TrebuchetError.self) {
                try await bell(client, "bells/1").set("x", at: 0, everySeconds: nil)
            }
            #expect(error?.code == .internal && error?.message.contains("placement: .cluster") == true)
        }
    }
}
