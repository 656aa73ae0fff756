import TestSupport
import Testing
import TrebuchetCluster

@testable import TrebuchetRedis

/// The behaviour common to all engines.
@Suite(.hasRedis, .redisServer, .serialized)
struct EngineConformanceTests {
    @Test("each scenario has the outcomes in its steps", arguments: EngineKind.allCases, EngineScenario.all)
    func scenarios(_ kind: EngineKind, _ scenario: EngineScenario) async throws {
        let rig = try EngineRig(kind, limits: scenario.limits)
        let player = try EnginePlayer(rig.one)
        for (number, step) in scenario.steps.enumerated() {
            guard let (outcome, expected) = try await player.play(step) else {
                try await rig.passLease(of: player.log.slot)
                continue
            }
            #expect(outcome == expected, "step \(number): \(step)")
        }
    }

    @Test(
        "any random scenario has the same outcomes as with the memory engine", arguments: [EngineKind.redis, .sqlite],
        0..<4 as Range<UInt64>)
    func random(_ kind: EngineKind, _ seed: UInt64) async throws {
        var limits = ClusterEngineLimits()
        (limits.entriesPerLog, limits.repliesPerLog, limits.readBytes) = (12, 3, 20)
        let rigs = try [EngineKind.memory, kind].map { try EngineRig($0, limits: limits) }
        let players = try rigs.map { try EnginePlayer($0.one, log: "é\u{0}{x}") }
        var course = RandomEngineScenario(seed: seed)
        for number in 0..<300 {
            let step = course.next()
            let outcomes = [try await players[0].play(step)!.outcome, try await players[1].play(step)!.outcome]
            guard outcomes[0] == outcomes[1] else {
                Issue.record("seed \(seed), step \(number), \(step): \(outcomes)")
                return
            }
            course.note(outcomes[0], of: step)
        }
        extendLifetime(rigs)
        // Enough of its appends succeeded.
        #expect(course.top > 20)
    }

    @Test("one of several nodes that acquire a slot concurrently succeeds", arguments: EngineKind.allCases)
    func race(_ kind: EngineKind) async throws {
        let rig = try EngineRig(kind)
        let nodes = try (0..<4).map { try ClusterNode(name: "n\($0)") }
        for slot in ClusterSlot.all.prefix(20) {
            let winners = try await withThrowingTaskGroup(of: Int.self) { group in
                for (index, node) in nodes.enumerated() {
                    group.addTask {
                        let engine = index % 2 == 0 ? rig.one : rig.other
                        switch try await engine.acquire(slot, for: node, duration: EngineRig.long) {
                        case .acquired(let lease):
                            #expect(lease.fence == 1)
                            return 1
                        case .ownedByOther(let holder):
                            #expect(holder.lease.fence == 1 && holder.lease.owner != node)
                            return 0
                        }
                    }
                }
                return try await group.reduce(0, +)
            }
            #expect(winners == 1)
        }
    }

    @Test("nodes are live for as long as they announced", arguments: EngineKind.allCases)
    func nodes(_ kind: EngineKind) async throws {
        let rig = try EngineRig(kind)
        let (a, b) = (try ClusterNode(name: "a"), try ClusterNode(name: "b"))
        #expect(try await rig.one.nodes() == [])
        try await rig.one.renewNode(b, info: [0, 255], duration: EngineRig.short)
        try await rig.one.renewNode(a, info: [], duration: EngineRig.long)
        // A new incarnation of the name is another node.
        let again = try ClusterNode(name: "a")
        try await rig.other.renewNode(again, info: [1], duration: EngineRig.long)
        try await rig.passNode(b)
        let live = try await rig.other.nodes()
        #expect(Set(live.map(\.node)) == [a, again])
        #expect(live.allSatisfy { $0.remaining > .seconds(60) && $0.remaining <= EngineRig.long })
        try await rig.one.renewNode(b, info: [2], duration: EngineRig.long)
        #expect(try await rig.other.nodes().last?.info == [2])
        try await rig.one.removeNode(again)
        #expect(try await rig.other.nodes().map(\.node) == [a, b])
    }

    @Test(
        "a message reaches its subscriber, and the sender learns whether there is one", arguments: EngineKind.allCases)
    func inbox(_ kind: EngineKind) async throws {
        let rig = try EngineRig(kind)
        let (node, earlier) = (try ClusterNode(name: "a"), try ClusterNode(name: "a"))
        #expect(try await rig.one.sendMessage([1], to: node) == false)
        let received = Journal()
        let subscription = try await rig.other.subscribeToInbox(of: node) { received.record("\($0)") }
        #expect(try await rig.one.sendMessage([0, 13, 10, 255], to: node))
        #expect(try await rig.one.sendMessage([], to: node))
        // An earlier incarnation of the name is another node.
        #expect(try await rig.one.sendMessage([3], to: earlier) == false)
        await received.wait { $0.count == 2 }
        #expect(received.entries == ["message([0, 13, 10, 255])", "message([])"])
        subscription.cancel()
        #expect(try await eventually { try await rig.one.sendMessage([4], to: node) == false })
    }

    @Test(
        "a log subscriber receives its entries in order, and after a gap reads the missing ones",
        arguments: EngineKind.allCases)
    func watching(_ kind: EngineKind) async throws {
        let rig = try EngineRig(kind)
        let log = ClusterLog("watched")
        let node = try ClusterNode(name: "a")
        let lease = try #require(
            try await rig.one.acquire(log.slot, for: node, duration: EngineRig.long).lease)
        func append(_ offset: UInt64) async throws {
            let change = LogAppend([UInt8(offset), 58, 0], expectedHead: offset - 1)
            #expect(try await rig.one.append(change, to: log, lease: lease) == .accepted(offset))
        }
        try await append(1)
        let received = Journal()
        let subscription = try await rig.other.subscribeToLog(log) { event in
            switch event {
            case .appended(let entry): received.record("\(entry.position) \(entry.payload)")
            case .eventsMissed: received.record("gap")
            case .ended: received.record("ended")
            }
        }
        for offset in 2...10 as ClosedRange<UInt64> { try await append(offset) }
        await received.wait { $0.count == 9 }
        #expect(received.entries == (2...10).map { "1:\($0) [\($0), 58, 0]" })
        // Refused appends are not published, nor are those that only record a reply.
        _ = try await rig.one.append(LogAppend([1], expectedHead: 3), to: log, lease: lease)
        _ = try await rig.one.append(
            LogAppend(nil, expectedHead: 10, call: .init(id: "c", reply: [])), to: log, lease: lease)
        try await rig.breakSubscriptions()
        try await append(11)
        await received.wait { $0.contains("gap") }
        let missed = try await rig.other.read(log, after: LogPosition(fence: 1, offset: 10))
        #expect(missed.entries.map(\.position.offset) == [11])
        try await append(12)
        await received.wait(for: "1:12 [12, 58, 0]")
        subscription.cancel()
        #expect(received.entries.filter { $0.hasPrefix("1:") }.count <= 11)
    }

    @Test("oversized and invalid arguments are refused before a request is sent", arguments: EngineKind.allCases)
    func limits(_ kind: EngineKind) async throws {
        var limits = ClusterEngineLimits()
        (limits.payloadBytes, limits.snapshotBytes, limits.infoBytes, limits.nameBytes, limits.callIDBytes) = (
            4, 5, 2, 8, 3
        )
        let rig = try EngineRig(kind, limits: limits)
        let engine = rig.one
        defer { extendLifetime(rig) }
        let node = try ClusterNode(name: "a")
        let log = ClusterLog("12345678")
        let lease = try #require(
            try await engine.acquire(log.slot, for: node, duration: EngineRig.long).lease)
        func code(_ body: () async throws -> Void) async -> ClusterEngineError.Code? {
            do { try await body() } catch { return (error as? ClusterEngineError)?.code }
            return nil
        }
        func append(_ size: Int?, call: String? = nil, reply: Int = 0, to log: ClusterLog = log) async
            -> ClusterEngineError.Code?
        {
            let payload = size.map { [UInt8](repeating: 0, count: $0) }
            let call = call.map { LogAppend.Call(id: $0, reply: [UInt8](repeating: 0, count: reply)) }
            return await code {
                _ = try await engine.append(LogAppend(payload, expectedHead: 0, call: call), to: log, lease: lease)
            }
        }
        #expect(await append(4, call: "123", reply: 4) == nil)
        #expect(await append(5) == .tooLarge)
        #expect(await append(1, call: "1234") == .tooLarge)
        #expect(await append(1, call: "1", reply: 5) == .tooLarge)
        #expect(await append(1, call: "") == .invalid)
        #expect(await append(nil) == .invalid)
        #expect(await append(1, to: ClusterLog("123456789")) == .tooLarge)
        #expect(await append(1, to: ClusterLog("other")) == .invalid)
        #expect(
            await code { _ = try await engine.store([1, 2, 3, 4, 5, 6], at: 0, of: log, under: lease) } == .tooLarge)
        #expect(await code { try await engine.renewNode(node, info: [1, 2, 3], duration: .seconds(1)) } == .tooLarge)
        #expect(await code { _ = try await engine.sendMessage([1, 2, 3, 4, 5], to: node) } == .tooLarge)
        for duration in [Duration.zero, .seconds(-1), .seconds(86_401)] {
            #expect(await code { _ = try await engine.acquire(log.slot, for: node, duration: duration) } == .invalid)
        }
    }

    @Test("operations on a closed engine fail, and its subscriptions end", arguments: EngineKind.allCases)
    func closing(_ kind: EngineKind) async throws {
        let rig = try EngineRig(kind)
        let node = try ClusterNode(name: "a")
        let received = Journal()
        let inbox = try await rig.one.subscribeToInbox(of: node) {
            if case .ended(let error) = $0 { received.record("\(error.code)") }
        }
        let log = try await rig.one.subscribeToLog(ClusterLog("x")) {
            if case .ended(let error) = $0 { received.record("\(error.code)") }
        }
        await rig.one.close()
        await received.wait { $0.count == 2 }
        #expect(received.entries == ["closed", "closed"])
        let error = await #expect(throws: ClusterEngineError.self) { try await rig.one.nodes() }
        #expect(error?.code == .closed)
        inbox.cancel()
        log.cancel()
    }
}
