import Glibc
import TestSupport
import Testing
import TrebuchetCluster

@testable import TrebuchetRedis

/// A primary, a replica and a sentinel that the tests start.
@Suite(.hasRedis)
struct SentinelTests {
    private struct Servers {
        let primary: RedisServer
        let replica: RedisServer
        let sentinel: RedisServer
        /// The first address has no sentinel: the next one is asked.
        var url: String { "redis+sentinel://127.0.0.1:\(RedisServer.freePort()),127.0.0.1:\(sentinel.port)/main" }

        /// - Parameter downAfter: Milliseconds without a response after which the sentinel considers a server failed.
        init(downAfter: Int = 300) async throws {
            primary = try await RedisServer(options: ["--repl-diskless-sync-delay", "0"])
            replica = try await RedisServer(options: ["--replicaof", "127.0.0.1 \(primary.port)"])
            let replica = replica
            #expect(
                await eventually {
                    (try? await replica.cli("INFO", "replication").contains("master_link_status:up")) ?? false
                })
            sentinel = try await RedisServer(
                program: "redis-sentinel",
                config: """
                    sentinel monitor main 127.0.0.1 \(primary.port) 1
                    sentinel down-after-milliseconds main \(downAfter)
                    sentinel failover-timeout main 3000
                    """)
            let sentinel = sentinel
            #expect(
                await eventually {
                    (try? await sentinel.cli("SENTINEL", "REPLICAS", "main").contains("\(replica.port)")) ?? false
                })
        }

        func stop() async {
            for server in [sentinel, replica, primary] { await server.stop() }
        }
    }

    @Test("when the primary stops, the engine connects to the one named by the sentinels and notifies subscribers")
    func failover() async throws {
        let servers = try await Servers()
        var settings = RedisSettings()
        settings.topologyInterval = .milliseconds(50)
        settings.maximumReconnectDelay = .milliseconds(100)
        let engine = try RedisEngine(url: servers.url, settings: settings)
        let node = try ClusterNode(name: "a")
        let log = ClusterLog("x")
        let lease = try #require(
            try await engine.acquire(log.slot, for: node, duration: .seconds(3_600)).lease)
        #expect(try await engine.append(LogAppend([1], expectedHead: 0), to: log, lease: lease) == .accepted(1))
        let received = Journal()
        let inbox = try await engine.subscribeToInbox(of: node) { received.record("\($0)") }
        // Writes that have not reached the replica are lost.
        #expect(await eventually { (try? await servers.replica.cli("HGET", "tb:{\(log.slot)}:meta:x", "top")) == "1" })

        // The primary is stopped without closing connections: only the sentinels report its failure.
        servers.primary.signal(SIGSTOP)
        await received.wait(for: "messagesMissed")
        #expect(
            await eventually {
                (try? await engine.append(LogAppend([2], expectedHead: 1), to: log, lease: lease)) == .accepted(2)
            })
        #expect(try await engine.sendMessage([7], to: node))
        await received.wait(for: "message([7])")
        #expect(try await servers.replica.cli("ROLE").hasPrefix("master"))
        #expect(try await engine.read(log, after: nil).entries.map(\.payload) == [[1], [2]])

        servers.primary.signal(SIGCONT)
        inbox.cancel()
        await engine.close()
        await servers.stop()
    }

    @Test("neither a replica nor the server of an unknown name is accepted as the primary")
    func wrongPrimary() async throws {
        let servers = try await Servers()
        let url = try RedisURL("redis+sentinel://127.0.0.1:\(servers.sentinel.port)/main")
        let replica = servers.replica.endpoint
        let client = RedisClient(RedisTarget(as: url, isPrimaryNeeded: true) { replica })
        let error = await #expect(throws: RedisError.self) { try await client.send(RedisCommand("PING")) }
        #expect(error?.kind == "unavailable" && error?.description.contains("is a replica, but was reported") == true)
        let engine = try RedisEngine(url: "redis+sentinel://127.0.0.1:\(servers.sentinel.port)/other")
        let unknown = await #expect(throws: ClusterEngineError.self) { try await engine.nodes() }
        #expect(
            unknown?.code == .unavailable && unknown?.message.contains("does not know a server named 'other'") == true)
        await servers.stop()
    }

    @Test("the report with the highest epoch counts, among those of the sentinels and the last one known")
    func epochs() {
        func word(_ epoch: Int64, _ port: Int) -> Sentinels.PrimaryReport {
            Sentinels.PrimaryReport(epoch: epoch, endpoint: .init(host: "127.0.0.1", port: port))
        }
        #expect(Sentinels.newest(of: [word(1, 1), word(2, 2), word(1, 1)], known: nil) == word(2, 2))
        // The sentinels that know of it do not respond.
        #expect(Sentinels.newest(of: [word(1, 1)], known: word(2, 2)) == word(2, 2))
        #expect(Sentinels.newest(of: [word(3, 1), word(2, 2)], known: word(2, 2)) == word(3, 1))
        // The address changed without a failover.
        #expect(Sentinels.newest(of: [word(2, 5)], known: word(2, 2)) == word(2, 5))
        #expect(Sentinels.newest(of: [word(2, 5), word(2, 2)], known: word(2, 2)) == word(2, 2))
    }

    @Test("a primary is left although an isolated sentinel that responded first still names it")
    func split() async throws {
        // No automatic failover: it could undo the one that the test orders.
        let servers = try await Servers(downAfter: 600_000)
        // This sentinel knows another server by that name, and no failover.
        let old = try await RedisServer()
        let cutOff = try await RedisServer(
            program: "redis-sentinel", config: "sentinel monitor main 127.0.0.1 \(old.port) 1\n")
        let url = try RedisURL("redis+sentinel://127.0.0.1:\(cutOff.port),127.0.0.1:\(servers.sentinel.port)/main")
        let sentinels = Sentinels(url, "main", RedisSettings())
        _ = try await sentinels.primary()
        // The sentinel refuses (NOGOODSLAVE) until the replica has responded to it.
        var reply = ""
        #expect(
            await eventually {
                reply = (try? await servers.sentinel.cli("SENTINEL", "FAILOVER", "main")) ?? ""
                return reply.contains("OK")
            }, "\(reply)")
        #expect(
            await eventually {
                (try? await servers.sentinel.cli("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main")
                    .contains("\(servers.replica.port)")) ?? false
            })
        #expect(await eventually { (try? await sentinels.primary()) == servers.replica.endpoint })
        // The highest epoch persists when only the other sentinels respond.
        servers.sentinel.signal(SIGSTOP)
        #expect(try await sentinels.primary() == servers.replica.endpoint)
        for server in [cutOff, old] { await server.stop() }
        await servers.stop()
    }
}
