import NodeSupport
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// Nodes whose coordination store has lost its data or refuses writes, and their reported readiness.
@Suite(.timeLimit(.minutes(5))) struct DataLossTests {
    private func problem(_ server: TrebuchetServer) async -> String? {
        await server.readiness().first { $0.name == "cluster" }?.failureReason
    }

    @Test("after the coordination store was emptied nothing is acknowledged, and run() ends with the reason")
    func ends() async throws {
        let engine = MemoryEngine()
        let node = try Node("a", engine)
        try await node.start()
        let running = Task { try await node.server.run(shutdownOn: [], drain: .zero) }
        await ownAll([node])
        let tally = try await node.client().resolve(Tally.self, id: "tallies/x")
        #expect(try await tally.add(1) == 1)
        #expect(await problem(node.server) == nil)
        engine.loseEverything()
        await #expect(throws: TrebuchetError.self) { try await tally.add(10) }
        let error = await #expect(throws: ClusterEngineError.self) { try await running.value }
        #expect(error?.code == .dataLoss && node.server.status == .stopped)
        #expect(await problem(node.server)?.contains("the coordination store has lost data") == true)
        // Metrics throw while other tests of this process block a reactor.
        #expect(await eventually { (try? await node.server.metricList().now.isReady) == false })
        #expect(try await engine.owner(of: ClusterSlot(of: "tallies/x")) == nil)
        await node.stop()
    }

    @Test("a node with the policy to continue keeps its connections, and logs the loss")
    func continues() async throws {
        let engine = MemoryEngine()
        let lines = Journal()
        let node = try Node("a", engine, afterDataLoss: .continue, log: ConsoleLog { lines.record($0) }) { server in
            let system = server.actorSystem
            server.expose(Tally.self, as: "tallies/*", placement: .cluster) { _ in Tally(actorSystem: system) }
        }
        try await node.start()
        let running = Task { try await node.server.run(shutdownOn: [], drain: .zero) }
        await ownAll([node])
        let client = try await node.client()
        let tally = try client.resolve(Tally.self, id: "tallies/x")
        #expect(try await tally.add(1) == 1)
        engine.loseEverything()
        // Until the node has given its actors up, a call can find the new contents and still be interrupted.
        #expect(
            await eventually {
                _ = try? await tally.add(0)
                return lines.entries.contains { $0.contains("continues with the remaining data") }
            })
        // From now on the remaining data counts: none.
        #expect(await eventually { (try? await tally.add(0)) == 0 })
        #expect(try await tally.add(10) == 10)
        #expect(await eventually { await problem(node.server) == nil })
        #expect(await node.server.connectionCount == 1 && node.server.status == .serving)
        #expect(lines.entries.contains { $0.contains("has lost data") })
        await node.server.shutdown(drain: .zero)
        try await running.value
        await node.stop()
    }

    @Test(
        "when the coordination store returns with older logs, nodes restore their acknowledged entries, with and without a call"
    )
    func older() async throws {
        let engine = MemoryEngine()
        let faulty = FaultyEngine(engine)
        let lines = Journal()
        let node = try Node("a", engine, through: faulty, log: ConsoleLog { lines.record($0) }) { server in
            let system = server.actorSystem
            server.expose(Tally.self, as: "tallies/*", placement: .cluster) { _ in Tally(actorSystem: system) }
        }
        try await node.start()
        await ownAll([node])
        let log = ClusterLog("tallies/x")
        let tally = try await node.client().resolve(Tally.self, id: log.id)
        for number in 1...3 { #expect(try await tally.add(1) == number) }
        let top = try await engine.read(log, after: nil).head
        engine.loseNewest(2, of: log)
        faulty.set { $0.connections += 1 }
        #expect(await eventually { (try? await engine.read(log, after: nil).head) == top })
        await lines.wait { $0.contains { $0.contains("of the log of actor 'tallies/x'") } }
        engine.loseNewest(2, of: log)
        #expect(try await tally.add(1) == 4)
        #expect(try await engine.read(log, after: nil).head.offset > top.offset)
        #expect(await problem(node.server) == nil)
        await node.stop()
    }

    @Test("older logs that cannot be restored are a data loss", arguments: DataLossPolicy.allCases)
    func cannotRestore(policy: DataLossPolicy) async throws {
        let engine = MemoryEngine()
        let node = try Node("a", engine, afterDataLoss: policy) { server in
            let system = server.actorSystem
            server.expose(Tally.self, as: "tallies/*", placement: .cluster) { _ in Tally(actorSystem: system) }
        }
        try await node.start()
        let running = Task { try await node.server.run(shutdownOn: [], drain: .zero) }
        await ownAll([node])
        let log = ClusterLog("tallies/x")
        let tally = try await node.client().resolve(Tally.self, id: log.id)
        for number in 1...3 { #expect(try await tally.add(1) == number) }
        // A diverged log: an entry of another writer has replaced one of this node.
        engine.loseNewest(2, of: log)
        let lease = try #require(try await engine.owner(of: log.slot)?.lease)
        let top = try await engine.read(log, after: nil).head
        let other = LogAppend(ActorLogEntry.bytes(of: []), expectedHead: top.offset)
        #expect(try await engine.append(other, to: log, lease: lease) == .accepted(top.offset + 1))
        await #expect(throws: TrebuchetError.self) { try await tally.add(10) }
        if policy == .end {
            let error = await #expect(throws: ClusterEngineError.self) { try await running.value }
            #expect(error?.code == .dataLoss && error?.message.contains("the log of 'tallies/x' ended at") == true)
        } else {
            #expect(await eventually { (try? await tally.add(0)) == 1 })
            #expect(await eventually { await problem(node.server) == nil })
            await node.server.shutdown(drain: .zero)
            try await running.value
        }
        await node.stop()
    }

    @Test("a server with accounts in the coordination store ends regardless of the policy")
    func accounts() async throws {
        let engine = MemoryEngine()
        var access = AccessPolicy.open
        access.accountsProblem = { nil }
        let node = try Node("a", engine, access: access, afterDataLoss: .continue) { _ in }
        try await node.start()
        let running = Task { try await node.server.run(shutdownOn: [], drain: .zero) }
        await ownAll([node])
        #expect(await node.server.readiness().contains(.init(name: "accounts", failureReason: nil)))
        engine.loseEverything()
        await #expect(throws: ClusterEngineError.self) { try await running.value }
        await node.stop()
    }

    @Test(
        "readiness, metrics and the log agree when a node loses its slots as the coordination store is unavailable, and afterwards"
    )
    func away() async throws {
        let clock = ManualEngineClock()
        let engine = MemoryEngine(clock: clock)
        let faulty = FaultyEngine(engine)
        let lines = Journal()
        let node = try Node("a", engine, through: faulty, clock: clock, log: ConsoleLog { lines.record($0) }) { _ in }
        try await node.start()
        await ownAll([node])
        #expect(await eventually { await problem(node.server) == nil })
        #expect(await eventually { (try? await node.server.metricList().now.isReady) == true })
        // The log reports only a node that it has seen ready.
        await lines.wait { $0.contains { $0.contains("a joined") } }
        faulty.set { $0.isAway = true }
        clock.advance(by: Node.settings.leaseDuration)
        #expect(await eventually { node.member.slotCount == 0 })
        #expect(await eventually { await problem(node.server)?.hasSuffix("at 10.1.2.3, say") == true })
        #expect(await eventually { (try? await node.server.metricList().now.isReady) == false })
        #expect(
            await eventually {
                let metrics = try? await node.server.metricList().now.router
                return metrics?.first { $0.name == "trebuchet_cluster_engine_up" }?.value == 0
            })
        await lines.wait { $0.contains { $0.contains("node a cannot serve") } }
        faulty.set { $0.isAway = false }
        #expect(await eventually { await problem(node.server) == nil })
        #expect(await eventually { (try? await node.server.metricList().now.isReady) == true })
        await lines.wait { $0.contains { $0.contains("node a can serve again") } }
        await node.stop()
    }
}
