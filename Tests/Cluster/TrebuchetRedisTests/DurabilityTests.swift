import Glibc
import Networking
import TestSupport
import Testing
import TrebuchetCluster

@testable import TrebuchetRedis

/// The point at which a write counts as complete.
@Suite(.hasRedis)
struct DurabilityTests {
    private let node: ClusterNode
    private let log = ClusterLog("x")

    init() throws { node = try ClusterNode(name: "a") }

    private func lease(at engine: RedisEngine) async throws -> SlotLease {
        try #require(try await engine.acquire(log.slot, for: node, duration: .seconds(3_600)).lease)
    }

    @Test("a write on too few replicas has an unknown outcome, delays no lease, and is confirmed when repeated")
    func replicated() async throws {
        let primary = try await RedisServer(options: ["--repl-diskless-sync-delay", "0"])
        let replica = try await RedisServer(options: ["--replicaof", "127.0.0.1 \(primary.port)"])
        #expect(await eventually { (try? await primary.cli("INFO", "replication").contains("state=online")) ?? false })
        let engine = try RedisEngine(url: primary.url, durability: .replicated(1, within: .seconds(2)))
        #expect(try await engine.check() == [])
        let lease = try await lease(at: engine)
        #expect(try await engine.append(LogAppend([1], expectedHead: 0), to: log, lease: lease) == .accepted(1))
        #expect(try await engine.store([1], at: 1, of: log, under: lease) == .stored)
        let other = try RedisEngine(url: replica.url)
        #expect(try await other.read(log, after: nil).head.offset == 1)

        replica.signal(SIGSTOP)
        let change = LogAppend([2], expectedHead: 1, call: .init(id: "c", reply: [7]))
        async let outcome = engine.append(change, to: log, lease: lease)
        #expect(try await eventually { try await engine.read(log, after: nil).head.offset == 2 })
        // The write is there, unconfirmed; neither renewals nor refused appends wait for it.
        #expect(try await engine.renewLease(lease, duration: .seconds(3_600)))
        #expect(try await primary.cli("INFO", "clients").contains("blocked_clients:1"))
        do {
            _ = try await outcome
            Issue.record("the write was acknowledged")
        } catch {
            let error = error as? ClusterEngineError
            #expect(error?.code == .unknownOutcome && error?.message.contains("0 of 1 replicas") == true)
        }
        let refused = SlotLease(log.slot, owner: try ClusterNode(name: "b"), fence: 1)
        #expect(try await engine.append(change, to: log, lease: refused) == .fenced(1))
        // An earlier write of the same entry does not make it complete.
        let again = await #expect(throws: ClusterEngineError.self) {
            try await engine.append(change, to: log, lease: lease)
        }
        #expect(again?.code == .unknownOutcome)
        // Tables behave likewise.
        let table = ClusterTable("t")
        let put = TableChange([.init("a", .put([1]))], preconditions: [.init("a", version: 0)])
        let unconfirmed = await #expect(throws: ClusterEngineError.self) { try await engine.apply(put, to: table) }
        #expect(unconfirmed?.code == .unknownOutcome)
        #expect(try await engine.apply(put, to: table) == .conflict("a"))
        replica.signal(SIGCONT)
        #expect(try await engine.append(change, to: log, lease: lease) == .repeated([7]))
        #expect(try await other.read(log, after: nil).head.offset == 2)
        await replica.stop()
        await primary.stop()
    }

    @Test("many concurrent writes are confirmed together")
    func together() async throws {
        let primary = try await RedisServer(options: ["--repl-diskless-sync-delay", "0"])
        let replica = try await RedisServer(options: ["--replicaof", "127.0.0.1 \(primary.port)"])
        #expect(await eventually { (try? await primary.cli("INFO", "replication").contains("state=online")) ?? false })
        let url = try RedisURL(primary.url)
        let client = RedisClient(RedisTarget(url.endpoints[0], as: url))
        _ = try await client.send(RedisCommand("PING"))
        let confirmation = RedisConfirmation(replicas: 1, within: .seconds(30)) { _ in true }
        let outcomes = Journal()
        await client.reactor.perform {
            for _ in 0..<100 {
                client.send(RedisCommand("INCR", ["x"])) { _ in
                    client.confirm(confirmation) { outcomes.record("\($0)") }
                }
            }
        }
        await outcomes.wait { $0.count == 100 }
        #expect(outcomes.entries.allSatisfy { $0 == "success()" })
        let calls = try await primary.cli("INFO", "commandstats").split(whereSeparator: \.isNewline)
            .first { $0.hasPrefix("cmdstat_wait:calls=") }
        let count = try #require(calls.flatMap { Int($0.dropFirst(19).prefix { $0 != "," }) })
        #expect(count > 0 && count < 10)
        await replica.stop()
        await primary.stop()
    }

    @Test("a connection lost before replicas confirm leaves an unknown outcome, whichever server is connected next")
    func broken() async throws {
        let primary = try await RedisServer(options: ["--repl-diskless-sync-delay", "0"])
        let engine = try RedisEngine(url: primary.url)
        let lease = try await lease(at: engine)
        let careful = try RedisEngine(url: primary.url, durability: .replicated(1, within: .milliseconds(2_400)))
        async let outcome = careful.append(LogAppend([1], expectedHead: 0), to: log, lease: lease)
        #expect(
            await eventually { (try? await primary.cli("INFO", "clients").contains("blocked_clients:1")) ?? false })
        try await primary.cli("CLIENT", "KILL", "TYPE", "normal")
        do {
            _ = try await outcome
            Issue.record("the write was acknowledged")
        } catch {
            #expect((error as? ClusterEngineError)?.code == .unknownOutcome)
        }
        await primary.stop()
    }

    @Test("a server that does not sync each write is refused where synced writes are required")
    func synced() async throws {
        let server = try await RedisServer()
        let engine = try RedisEngine(url: server.url, durability: .synced)
        let error = await #expect(throws: ClusterEngineError.self) { try await engine.check() }
        #expect(error?.code == .unsupported && error?.message.contains("Set appendfsync always") == true)
        try await server.cli("CONFIG", "SET", "appendfsync", "always")
        #expect(try await engine.check() == [])
        await server.stop()
    }

    @Test("an unsupported durability is refused")
    func invalid() {
        for durability in [
            RedisDurability.replicated(0), .replicated(1, within: .zero), .replicated(1, within: .seconds(3)),
        ] {
            let error = #expect(throws: ClusterEngineError.self) {
                try RedisEngine(url: "redis://x", durability: durability)
            }
            #expect(error?.code == .invalid)
        }
    }
}
