import NodeSupport
import TestSupport
import Testing
import Trebuchet
import TrebuchetActors
import TrebuchetCluster
import TrebuchetNodes

/// Nodes that lose slots while they cannot write.
@Suite(.timeLimit(.minutes(5))) struct OwnershipTests {
    @Test("a previous owner that failed to write a change does not overwrite the next owner's acknowledged changes")
    func ownerOfBefore() async throws {
        let engine = MemoryEngine()
        let faulty = FaultyEngine(engine)
        var settings = Node.settings
        settings.handoverTimeout = .milliseconds(300)
        let first = try Node("a", engine, through: faulty, settings: settings)
        let second = try Node("b", engine, settings: settings)
        try await first.start()
        await ownAll([first])
        let client = try await first.client()
        let tallies = try (0..<24).map { try client.resolve(Tally.self, id: "tallies/\($0)") }
        for tally in tallies { #expect(try await tally.add(1) == 1) }
        faulty.set { $0.refusesAppends = true }
        for tally in tallies { await #expect(throws: TrebuchetError.self) { try await tally.add(1) } }

        try await second.start()
        // The slots are taken away when the handover timeout has passed.
        func moved() -> [Int] { (0..<24).filter { second.member.lease(of: ClusterSlot(of: "tallies/\($0)")) != nil } }
        #expect(await eventually { moved().count > 5 })
        await ownAll([first, second])
        faulty.set { $0.refusesAppends = false }
        let moved = moved()
        for index in moved { #expect(try await tallies[index].add(100) == 101) }
        try await second.kill()
        for index in moved { #expect(try await tallies[index].add(0) == 101) }
        await first.stop()
    }

    @Test("an unwritten change is never acknowledged, even when the lease ends during a write")
    func hangingWrite() async throws {
        let clock = ManualEngineClock()
        let engine = MemoryEngine(clock: clock)
        let faulty = FaultyEngine(engine)
        let node = try Node("a", engine, through: faulty, clock: clock)
        try await node.start()
        await ownAll([node])
        let client = try await node.client()
        let tally = try client.resolve(Tally.self, id: "tallies/x")
        #expect(try await tally.add(1) == 1)
        // A call in flight keeps the actor active.
        let waiting = Task { try await tally.wait() }
        faulty.set { $0.hangsAppends = true }
        let calls = [10, 100].map { number in Task { try await tally.add(number) } }
        #expect(await eventually { await node.server.counters().callsUnderWay == 3 })
        faulty.set { $0.isAway = true }
        clock.advance(by: Node.settings.leaseDuration)
        #expect(await eventually { node.member.slotCount == 0 })
        faulty.set { $0.hangsAppends = false }
        var acknowledged = 1
        for call in calls { if let answer = try? await call.value { acknowledged = max(acknowledged, answer) } }
        waiting.cancel()
        faulty.set { $0.isAway = false }
        // The call may arrive before the node owns the slot again.
        var answer: Int?
        _ = await eventually {
            answer = try? await tally.add(0)
            return answer != nil
        }
        // A delayed write may reach the log later, where its call ended with `unknownOutcome`.
        #expect([acknowledged, 11, 101, 111].contains(answer) && (answer ?? 0) >= acknowledged)
        await node.stop()
    }

    @Test("an unconfirmed write is neither acknowledged nor shown by later reads")
    func unconfirmed() async throws {
        let engine = MemoryEngine()
        let faulty = FaultyEngine(engine)
        let node = try Node("a", engine, through: faulty)
        try await node.start()
        await ownAll([node])
        faulty.set { $0.confirms = true }
        let tally = try await node.client().resolve(Tally.self, id: "tallies/x")
        #expect(try await tally.add(1) == 1)
        // Written, but not confirmed until the fault ends.
        faulty.set { $0.losesAnswers = true }
        let answered = Flag()
        var calls: [Task<Int, any Error>] = []
        // One after the other: a read before the write has nothing to wait for.
        for number in [10, 0] {
            calls.append(
                Task {
                    defer { answered.set() }
                    return try await tally.add(number)
                })
            #expect(await eventually { await node.server.counters().callsUnderWay == calls.count })
        }
        #expect(try await eventually { try await engine.read(ClusterLog("tallies/x"), after: nil).entries.count > 2 })
        #expect(!answered.isSet)
        faulty.set { $0.losesAnswers = false }
        var last = 0
        for call in calls { last = max(last, try await call.value) }
        #expect(last == 11)
        #expect(try await tally.add(100) == 111)
        await node.stop()
    }

    @Test("a program that runs a node drains when an operator stops the node")
    func stopped() async throws {
        let engine = MemoryEngine()
        let node = try Node("a", engine)
        let running = Task { try await node.server.run(shutdownOn: []) }
        await ownAll([node])
        #expect(try await TrebuchetServer.stop(node.member.node, at: engine))
        try await running.value
        #expect(try await engine.nodes().isEmpty)
        #expect(try await engine.owner(of: ClusterSlot(of: "a")) == nil)
    }

    @Test("errors for clients contain neither the address nor the messages of the coordination store")
    func disclosure() async throws {
        let engine = MemoryEngine()
        let faulty = FaultyEngine(engine)
        let node = try Node("a", engine, through: faulty)
        try await node.start()
        await ownAll([node])
        let tally = try await node.client().resolve(Tally.self, id: "tallies/x")
        #expect(try await tally.add(1) == 1)
        faulty.set { $0.refusesAppends = true }
        let error = await #expect(throws: TrebuchetError.self) { try await tally.add(1) }
        #expect(error?.code == .unknownOutcome)
        #expect(error?.message.contains("the coordination store failed") == true)
        #expect(error?.message.contains("10.1.2.3") == false)
        faulty.set { $0.refusesAppends = false }
        #expect(try await tally.add(0) == 2)
        await node.stop()
    }

    @Test("a call that waits for an actor that moves during loading is answered by the next owner")
    func movedWhileLoaded() async throws {
        let engine = MemoryEngine()
        let faulty = FaultyEngine(engine)
        let first = try Node("a", engine, through: faulty)
        let second = try Node("b", engine)
        try await first.start()
        await ownAll([first])
        let client = try await first.client()
        faulty.set { $0.hangsReads = true }
        let calls = try (0..<12).map { number in
            let tally = try client.resolve(Tally.self, id: "tallies/\(number)")
            return Task { try await tally.add(1) }
        }
        #expect(await eventually { faulty.readCount >= 12 })
        try await second.start()
        await ownAll([first, second])
        #expect((0..<12).contains { second.owns("tallies/\($0)") })
        faulty.set { $0.hangsReads = false }
        for call in calls { #expect(try await call.value == 1) }
        for node in [first, second] { await node.stop() }
    }
}
