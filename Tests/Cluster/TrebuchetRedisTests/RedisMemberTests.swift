import Glibc
import Synchronization
import TestSupport
import Testing
import TrebuchetCluster

@testable import TrebuchetRedis

/// Nodes that share slots at a real server.
@Suite(.hasRedis)
struct RedisMemberTests {
    /// A node and the task that runs it.
    private struct Running {
        let member: ClusterMember
        let directory: SlotDirectory
        let run: Task<Void, any Error>
        let owned: Owned

        /// Stops it without releasing any slot.
        func kill() async {
            run.cancel()
            _ = await run.result
        }
    }

    private final class Owned: SlotRebalanceListener {
        let slots = Mutex<Set<SlotLease>>([])
        func slotAssigned(_ lease: SlotLease) { slots.withLock { _ = $0.insert(lease) } }
        func slotWillBeRevoked(_ lease: SlotLease) async { slots.withLock { _ = $0.remove(lease) } }
        func slotLost(_ lease: SlotLease) { slots.withLock { _ = $0.remove(lease) } }
    }

    /// - Parameter lease: long unless the test waits for its expiry: a busy machine renews a short one too late.
    private func start(
        _ name: String, _ server: RedisServer, lease: Duration = .seconds(600)
    ) throws -> Running {
        var settings = ClusterMemberSettings()
        (settings.leaseDuration, settings.leaseMargin) = (lease, lease / 10)
        (settings.roundInterval, settings.concurrentHandovers) = (.milliseconds(50), 128)
        let engine = try RedisEngine(url: server.url)
        let owned = Owned()
        let member = try ClusterMember(
            try ClusterNode(name: name), at: engine, settings: settings, listener: owned)
        let directory = SlotDirectory(engine, member: member)
        let run = Task {
            // A member does not retain its listener.
            defer { _ = owned }
            try await member.run()
        }
        return Running(member: member, directory: directory, run: run, owned: owned)
    }

    private func areAllOwned(by all: Running...) async -> Bool {
        await eventually {
            all.allSatisfy { $0.member.slotCount > 0 }
                && all.reduce(0) { $0 + $1.member.slotCount } == ClusterSlot.count
                && all.allSatisfy { $0.member.liveNodes.count == all.count }
                && all.allSatisfy { one in one.owned.slots.withLock { $0.count } == one.member.slotCount }
        }
    }

    // ClusterMemberTests.dying tests the timing with a manual clock.
    @Test("the other node has all slots when a killed node's leases expire, and a directory finds them there")
    func killed() async throws {
        let server = try await RedisServer()
        let (one, two) = (try start("a", server), try start("b", server, lease: .seconds(10)))
        #expect(await areAllOwned(by: one, two))
        let lease = try #require(two.owned.slots.withLock { $0.first })
        #expect(try await one.directory.owner(of: lease.slot) == two.member.node)
        #expect(try await two.directory.owner(of: lease.slot) == two.member.node)

        await two.kill()
        #expect(two.member.lease(of: lease.slot) == nil && two.owned.slots.withLock { $0.isEmpty })
        #expect(await eventually { one.member.slotCount == ClusterSlot.count })
        // The directory returns the cached owner until it is invalidated.
        #expect(try await one.directory.owner(of: lease.slot) == one.member.node)
        let third = SlotDirectory(try RedisEngine(url: server.url))
        #expect(try await third.owner(of: lease.slot) == one.member.node)
        await one.member.drain()
        #expect(try await third.owner(of: lease.slot) == one.member.node)
        third.invalidate(lease.slot, ownedBy: two.member.node)
        #expect(try await third.owner(of: lease.slot) == one.member.node)
        third.invalidate(lease.slot, ownedBy: one.member.node)
        #expect(try await third.owner(of: lease.slot) == nil)
        await server.stop()
    }

    @Test("a drained node releases everything, and a lookup that waits for an owner gets the other node")
    func drained() async throws {
        let server = try await RedisServer()
        let (one, two) = (try start("a", server), try start("b", server))
        #expect(await areAllOwned(by: one, two))
        let slot = try #require(two.owned.slots.withLock { $0.first }).slot
        await two.member.drain()
        try await two.run.value
        #expect(two.member.slotCount == 0 && two.owned.slots.withLock { $0.isEmpty })
        let directory = SlotDirectory(try RedisEngine(url: server.url))
        #expect(try await directory.owner(of: slot, waitingUpTo: .seconds(20)) == one.member.node)
        #expect(await areAllOwned(by: one))
        await one.member.drain()
        let empty = try RedisEngine(url: server.url)
        #expect(try await empty.nodes() == [])
        for slot in ClusterSlot.all { #expect(try await empty.owner(of: slot) == nil) }
        let error = await #expect(throws: ClusterEngineError.self) {
            try await SlotDirectory(empty).owner(of: slot, waitingUpTo: .milliseconds(30))
        }
        #expect(error?.code == .unavailable)
        await server.stop()
    }

    @Test("a server silent for longer than a lease ends all ownership, and slots are acquired again when it responds")
    func silence() async throws {
        let server = try await RedisServer()
        let one = try start("a", server, lease: .seconds(5))
        #expect(await areAllOwned(by: one))
        server.signal(SIGSTOP)
        #expect(await eventually { one.owned.slots.withLock { $0.isEmpty } })
        #expect(one.member.slotCount == 0)
        server.signal(SIGCONT)
        #expect(await areAllOwned(by: one))
        await one.kill()
        await server.stop()
    }

    @Test("a server that was emptied ends the ownership of all nodes, and none of them acquires slots there")
    func emptied() async throws {
        let server = try await RedisServer()
        // Announcements after that last as long as a lease, and the third node waits for their end.
        let (one, two) = (
            try start("a", server, lease: .seconds(5)), try start("b", server, lease: .seconds(5))
        )
        #expect(await areAllOwned(by: one, two))
        try await server.cli("FLUSHALL")
        for node in [one, two] {
            let error = await #expect(throws: ClusterEngineError.self) { try await node.run.value }
            #expect(error?.code == .dataLoss && node.owned.slots.withLock { $0.isEmpty })
        }
        let engine = try RedisEngine(url: server.url)
        for slot in ClusterSlot.all { #expect(try await engine.owner(of: slot) == nil) }
        // A node started afterwards begins with the present data.
        let three = try start("c", server)
        #expect(await eventually { three.member.slotCount == ClusterSlot.count })
        await three.kill()
        await server.stop()
    }

    @Test("a server that refuses writes for lack of memory is a problem until it accepts one, although it responds")
    func full() async throws {
        let server = try await RedisServer()
        let one = try start("a", server, lease: .seconds(5))
        #expect(await areAllOwned(by: one))
        #expect(await eventually { one.member.problem == nil && one.member.engineError == nil })
        try await server.cli("CONFIG", "SET", "maxmemory", "1")
        #expect(await eventually { one.member.slotCount == 0 })
        #expect(await eventually { one.member.engineError?.message.contains("raise its maxmemory") == true })
        #expect(await eventually { one.member.problem?.contains("raise its maxmemory") == true })
        try await server.cli("CONFIG", "SET", "maxmemory", "0")
        #expect(await areAllOwned(by: one))
        #expect(await eventually { one.member.problem == nil && one.member.engineError == nil })
        await one.kill()
        await server.stop()
    }
}
