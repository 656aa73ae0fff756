import Glibc
import TestSupport
import Testing
import TrebuchetCluster

@testable import TrebuchetRedis

/// Detection of an emptied server, and of changes of its clock.
@Suite(.hasRedis)
struct RedisGenerationTests {
    private let slot = ClusterSlot(of: "x")

    private func milliseconds(_ server: RedisServer) async throws -> Int {
        let words = try await server.cli("TIME").split(separator: "\n").compactMap { Int($0) }
        return words[0] * 1_000 + words[1] / 1_000
    }

    @Test(
        "a generation covers all slots, starts once, and a new one with higher fences starts when the server was emptied"
    )
    func generations() async throws {
        let server = try await RedisServer()
        let (one, other) = (try RedisEngine(url: server.url), try RedisEngine(url: server.url))
        let node = try ClusterNode(name: "a")
        #expect(try await one.generation() == nil)
        async let begun = one.createGeneration()
        async let joined = other.createGeneration()
        let (first, second) = try await (begun, joined)
        #expect(first == second)
        #expect(try await one.generation() == first)
        var fences: [UInt64] = []
        for _ in 0..<2 {
            let generation = try await one.createGeneration()
            for slot in ClusterSlot.all {
                guard
                    case .acquired(let lease) = try await one.acquireSlot(
                        slot, for: node, duration: .seconds(60), generation: generation)
                else {
                    Issue.record("\(slot) was not acquired")
                    continue
                }
                if slot == self.slot { fences.append(lease.fence) }
            }
            try await server.cli("FLUSHALL")
            #expect(try await one.generation() == nil)
            let error = await #expect(throws: ClusterEngineError.self) {
                try await one.acquireSlot(slot, for: node, duration: .seconds(60), generation: generation)
            }
            #expect(error?.code == .dataLoss)
        }
        #expect(fences.count == 2 && fences[0] < fences[1])
        await server.stop()
    }

    @Test("a slot that lost only its keys is not assigned to nodes of the same generation")
    func oneSlot() async throws {
        let server = try await RedisServer()
        let engine = try RedisEngine(url: server.url)
        let generation = try await engine.createGeneration()
        try await server.cli("DEL", "tb:{\(slot)}:own")
        let error = await #expect(throws: ClusterEngineError.self) {
            try await engine.acquireSlot(
                slot, for: ClusterNode(name: "a"), duration: .seconds(60), generation: generation)
        }
        #expect(error?.code == .dataLoss)
        await server.stop()
    }

    @Test("slots of a server from before generations keep their owners and fences")
    func adopted() async throws {
        let server = try await RedisServer()
        let engine = try RedisEngine(url: server.url)
        let node = try ClusterNode(name: "a")
        let lease = try #require(
            try await engine.acquire(slot, for: node, duration: .seconds(60)).lease)
        let generation = try await engine.createGeneration()
        #expect(try await engine.renewLease(lease, duration: .seconds(60)))
        #expect(
            try await engine.acquireSlot(slot, for: node, duration: .seconds(60), generation: generation)
                == .acquired(lease))
        await server.stop()
    }

    @Test("when the server's clock is set back, a dead node's lease ends no later than its duration from then")
    func clockBack() async throws {
        let server = try await RedisServer()
        let engine = try RedisEngine(url: server.url)
        let (dead, next) = (try ClusterNode(name: "a"), try ClusterNode(name: "b"))
        _ = try await engine.acquire(slot, for: dead, duration: .milliseconds(300))
        // As if the time were 40 s ahead.
        let ahead = try await milliseconds(server) + 40_000
        try await server.cli("HSET", "tb:{\(slot)}:own", "until", "\(ahead)")
        guard case .ownedByOther(let holder) = try await engine.acquire(slot, for: next, duration: .seconds(5)) else {
            Issue.record("the slot should have an owner")
            return
        }
        #expect(holder.remaining <= .milliseconds(300))
        #expect(
            try await eventually {
                guard case .acquired = try await engine.acquire(slot, for: next, duration: .seconds(5)) else {
                    return false
                }
                return true
            })
        await server.stop()
    }

    @Test("when the server's clock is set back, a dead node is not listed any longer")
    func clockBackOfNodes() async throws {
        let server = try await RedisServer()
        let engine = try RedisEngine(url: server.url)
        let (dead, next) = (try ClusterNode(name: "a"), try ClusterNode(name: "b"))
        try await engine.renewNode(dead, info: [], duration: .milliseconds(300))
        let ahead = try await milliseconds(server) + 40_000
        try await server.cli("ZADD", "tb:{nodes}:until", "\(ahead + 300)", dead.description)
        try await server.cli("HSET", "tb:{nodes}:info", "", "\(ahead)")
        try await engine.renewNode(next, info: [], duration: .seconds(3_600))
        let remaining = try await engine.nodes().first { $0.node == dead }?.remaining ?? .zero
        #expect(remaining <= .milliseconds(300))
        #expect(try await eventually { try await engine.nodes().map(\.node) == [next] })
        await server.stop()
    }
}
