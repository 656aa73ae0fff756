import DocumentedDefaults
import Foundation
import TestSupport
import Testing
import TrebuchetCluster

@testable import TrebuchetRedis

/// Behaviour specific to the Redis engine: it checks the server, and loses it.
@Suite(.hasRedis)
struct RedisEngineTests {
    struct Row: CustomTestStringConvertible, Sendable {
        let info: String
        var durability = RedisDurability.engine
        var hasSentinels = false
        var problem: String?
        var warning: String?
        var testDescription: String { info }
    }

    @Test(
        "a server's configuration is checked, and each problem names the setting to change",
        arguments: [
            Row(info: "redis_version:7.0.15 maxmemory_policy:noeviction aof_enabled:1 aof_last_write_status:ok"),
            Row(info: "redis_version:8.0.0 aof_enabled:1"),
            Row(info: "redis_version:7.2.4 valkey_version:8.0.1 aof_enabled:1"),
            Row(info: "redis_version:6.2.14 aof_enabled:1", problem: "Run Redis 7.0 or later"),
            Row(info: "aof_enabled:1", problem: "+info"), Row(info: "redis_version:x aof_enabled:1", problem: "+info"),
            Row(
                info: "redis_version:7.0.15 maxmemory_policy:allkeys-lru aof_enabled:1",
                problem: "Set maxmemory-policy noeviction"),
            Row(info: "redis_version:7.0.15 aof_enabled:0", warning: "Set appendonly yes"),
            Row(info: "redis_version:7.0.15 aof_enabled:1 aof_last_write_status:err", problem: "disk is full"),
            Row(
                info: "redis_version:7.0.15 aof_enabled:0", durability: .synced, problem: "durability is .synced",
                warning: "Set appendonly yes"),
            Row(
                info: "redis_version:7.0.15 aof_enabled:1 connected_slaves:1", durability: .replicated(2),
                problem: "Connect 1 more"),
            Row(info: "redis_version:7.0.15 aof_enabled:1 connected_slaves:2", durability: .replicated(2)),
            Row(
                info: "redis_version:7.0.15 aof_enabled:1 connected_slaves:2", hasSentinels: true,
                warning: "Set min-replicas-to-write 1"),
            Row(
                info: "redis_version:7.0.15 aof_enabled:1 connected_slaves:2 min_slaves_good_slaves:2",
                hasSentinels: true),
            Row(
                info: "redis_version:7.0.15 aof_enabled:1 connected_slaves:2", durability: .replicated(1),
                hasSentinels: true),
        ])
    func fitness(_ row: Row) {
        let findings = RedisServerRequirements(
            info: "# Server\r\n" + row.info.replacing(" ", with: "\r\n") + "\r\n", row.durability,
            hasSentinels: row.hasSentinels)
        #expect(findings.problems.count == (row.problem == nil ? 0 : 1))
        #expect(findings.warnings.count == (row.warning == nil ? 0 : 1))
        if let problem = row.problem { #expect(findings.problems[0].contains(problem)) }
        if let warning = row.warning { #expect(findings.warnings[0].contains(warning)) }
    }

    @Test("a real server that would lose data is refused or reported with a warning")
    func check() async throws {
        let server = try await RedisServer()
        let engine = try RedisEngine(url: server.url)
        #expect(try await engine.check() == [])
        try await server.cli("CONFIG", "SET", "appendonly", "no")
        #expect(try await engine.check().count == 1)
        try await server.cli("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        let error = await #expect(throws: ClusterEngineError.self) { try await engine.check() }
        #expect(error?.code == .unsupported && error?.message.contains("noeviction") == true)
        // A server without free memory reports this.
        try await server.cli("CONFIG", "SET", "maxmemory-policy", "noeviction")
        try await server.cli("CONFIG", "SET", "maxmemory", "1")
        let node = try ClusterNode(name: "a")
        let full = await #expect(throws: ClusterEngineError.self) {
            try await engine.acquire(ClusterSlot.all[0], for: node, duration: .seconds(1))
        }
        #expect(full?.code == .failed && full?.message.contains("maxmemory") == true)
        await server.stop()
    }

    @Test("a killed and restarted server has all acknowledged data, and subscribers are notified")
    func restart() async throws {
        let port = RedisServer.freePort()
        let engine = try RedisEngine(url: "redis://127.0.0.1:\(port)")
        // The log is still empty.
        let node = try ClusterNode(name: "a")
        let log = ClusterLog("kept")
        let missing = await #expect(throws: ClusterEngineError.self) { try await engine.nodes() }
        #expect(missing?.code == .unavailable)

        let server = try await RedisServer(port: port, options: ["--appendfsync", "always"])
        #expect(await eventually { (try? await engine.nodes()) != nil })
        let lease = try #require(
            try await engine.acquire(log.slot, for: node, duration: .seconds(3_600)).lease)
        let received = Journal()
        let inbox = try await engine.subscribeToInbox(of: node) { received.record("\($0)") }
        let change = LogAppend([1], expectedHead: 0, call: .init(id: "c", reply: [2]))
        #expect(try await engine.append(change, to: log, lease: lease) == .accepted(1))
        await server.stop()
        #expect(
            await eventually {
                do { _ = try await engine.nodes() } catch {
                    return (error as? ClusterEngineError)?.code == .unavailable
                }
                return false
            })

        let again = try await RedisServer(port: port, folder: server.folder)
        await received.wait(for: "messagesMissed")
        #expect(await eventually { (try? await engine.nodes()) != nil })
        #expect(try await engine.append(change, to: log, lease: lease) == .repeated([2]))
        #expect(try await engine.releaseLease(lease))
        let next = try #require(
            try await engine.acquire(log.slot, for: node, duration: .seconds(1)).lease)
        #expect(next.fence == 2)
        inbox.cancel()
        await again.stop()
    }

    @Test("a node that owned a slot of an emptied server receives data loss, whoever owns the slot now")
    func emptied() async throws {
        let server = try await RedisServer()
        let engine = try RedisEngine(url: server.url)
        let (a, b) = (try ClusterNode(name: "a"), try ClusterNode(name: "b"))
        let log = ClusterLog("x")
        var lease = SlotLease(log.slot, owner: a, fence: 0)
        for _ in 0..<3 {
            let next = try #require(
                try await engine.acquire(log.slot, for: a, duration: .seconds(60)).lease)
            lease = next
            _ = lease.fence < 3 ? try await engine.releaseLease(lease) : true
        }
        try await server.cli("FLUSHALL")
        for _ in 0..<2 {
            let error = await #expect(throws: ClusterEngineError.self) {
                try await engine.append(LogAppend([1], expectedHead: 0), to: log, lease: lease)
            }
            #expect(error?.code == .dataLoss && error?.message.contains("FLUSHALL") == true)
            _ = try await engine.acquire(log.slot, for: b, duration: .seconds(60))
        }
        await server.stop()
    }

    @Test("a user with the documented rights can do everything needed, and nothing else")
    func rights() async throws {
        let server = try await RedisServer()
        let page = try String(
            contentsOf: packageRoot.appending(
                path: "Docs/Guides/Cluster.md"),
            encoding: .utf8)
        let line = try #require(page.split(separator: "\n").first { $0.contains("ACL SETUSER trebuchet") })
        let words = line.split(separator: " ").map { $0 == ">PASSWORD" ? ">pass" : String($0) }
        let client = RedisClient(try Self.target(server.url))
        _ = try await client.send(RedisCommand("ACL", words.dropFirst().map { .text($0) }))

        let engine = try RedisEngine(url: "redis://trebuchet:pass@127.0.0.1:\(server.port)")
        #expect(try await engine.check() == [])
        let node = try ClusterNode(name: "a")
        let log = ClusterLog("x")
        try await engine.renewNode(node, info: [], duration: .seconds(60))
        #expect(try await engine.nodes().count == 1)
        let lease = try #require(
            try await engine.acquire(log.slot, for: node, duration: .seconds(60)).lease)
        let watch = try await engine.subscribeToLog(log) { _ in }
        let inbox = try await engine.subscribeToInbox(of: node) { _ in }
        let change = LogAppend([1], expectedHead: 0, call: .init(id: "c", reply: [2]))
        #expect(try await engine.append(change, to: log, lease: lease) == .accepted(1))
        #expect(try await engine.store([1], at: 1, of: log, under: lease) == .stored)
        #expect(try await engine.reply(to: "c", in: log) == [2])
        #expect(try await engine.read(log, after: nil).isComplete)
        #expect(try await engine.sendMessage([1], to: node))
        #expect(try await engine.renewLease(lease, duration: .seconds(60)))
        #expect(try await engine.releaseLease(lease))
        try await engine.removeNode(node)
        watch.cancel()
        inbox.cancel()
        let other = try RedisEngine(url: "redis://trebuchet:pass@127.0.0.1:\(server.port)", prefix: "other")
        let error = await #expect(throws: ClusterEngineError.self) { try await other.nodes() }
        #expect(error?.code == .failed)
        await server.stop()
    }

    private static func target(_ text: String) throws -> RedisTarget {
        let url = try RedisURL(text)
        return RedisTarget(url.endpoints[0], as: url)
    }

    @Test(
        "invalid addresses and prefixes are refused",
        arguments: [("http://x", "tb"), ("redis://x", ""), ("redis://x", "a{b"), ("redis://x", "a b")])
    func invalid(_ url: String, _ prefix: String) {
        let error = #expect(throws: ClusterEngineError.self) { try RedisEngine(url: url, prefix: prefix) }
        #expect(error?.code == .invalid)
    }

    @Test("limits beyond the size of one command are refused")
    func largest() {
        var limits = ClusterEngineLimits()
        limits.snapshotBytes += 1
        let error = #expect(throws: ClusterEngineError.self) { try RedisEngine(url: "redis://x", limits: limits) }
        #expect(error?.code == .invalid)
    }

    @Test("the documented defaults are the defaults in the code")
    func defaults() throws {
        let settings = try DocumentedDefaults(
            of: RedisSettings(), in: "Cluster/TrebuchetRedis/Client/RedisSettings.swift")
        #expect(settings.wrong == [] && settings.compared.count >= 7)
        let limits = try DocumentedDefaults(
            of: ClusterEngineLimits(), in: "Cluster/TrebuchetCluster/ClusterEngineLimits.swift")
        #expect(limits.wrong == [] && limits.compared.count == 12)
        let parser = try DocumentedDefaults(of: RESPLimits(), in: "Cluster/TrebuchetRedis/Wire/RESPParser.swift")
        #expect(parser.wrong == [] && parser.compared.count == 5)
    }
}
