import TestSupport
import Testing
import TrebuchetCluster

@testable import TrebuchetRedis

/// A Redis Cluster of three nodes that the tests start.
@Suite(.hasRedis)
struct RedisClusterTests {
    private struct Nodes {
        let all: [RedisServer]
        /// One node is enough to find the others.
        var url: String { "redis+cluster://127.0.0.1:\(all[0].port)" }

        init() async throws {
            var all: [RedisServer] = []
            for index in 0..<3 {
                let bus = RedisServer.freePort()
                let node = try await RedisServer(options: [
                    "--cluster-enabled", "yes", "--cluster-port", "\(bus)", "--cluster-node-timeout", "20000",
                ])
                let first = index * 5_461
                try await node.cli("CLUSTER", "ADDSLOTSRANGE", "\(first)", "\(index == 2 ? 16_383 : first + 5_460)")
                try await node.cli("CLUSTER", "SET-CONFIG-EPOCH", "\(index + 1)")
                if let met = all.first {
                    try await met.cli("CLUSTER", "MEET", "127.0.0.1", "\(node.port)", "\(bus)")
                }
                all.append(node)
            }
            self.all = all
            for node in all {
                #expect(
                    await eventually {
                        (try? await node.cli("CLUSTER", "SLOTS").split(separator: "\n").count) ?? 0 >= 15
                    })
                #expect(
                    await eventually { (try? await node.cli("CLUSTER", "INFO").contains("cluster_state:ok")) ?? false })
            }
        }

        func id(_ index: Int) async throws -> String { try await all[index].cli("CLUSTER", "MYID") }

        func stop() async { for node in all { await node.stop() } }
    }

    @Test("names spread over the nodes, and commands and subscriptions follow a slot that moves")
    func cluster() async throws {
        let nodes = try await Nodes()
        var settings = RedisSettings()
        settings.topologyInterval = .milliseconds(50)
        let engine = try RedisEngine(url: nodes.url, settings: settings)
        #expect(try await engine.check() == [])
        let node = try ClusterNode(name: "a")
        for slot in ClusterSlot.all.prefix(30) {
            #expect(
                try await engine.acquire(slot, for: node, duration: .seconds(3_600))
                    == .acquired(SlotLease(slot, owner: node, fence: 1)))
        }
        for server in nodes.all { #expect(try await Int(server.cli("DBSIZE"))! > 3) }

        let log = ClusterLog("moving")
        let lease = try #require(
            try await engine.acquire(log.slot, for: node, duration: .seconds(3_600)).lease)
        let received = Journal()
        let watch = try await engine.subscribeToLog(log) { event in
            if case .appended(let entry) = event {
                received.record("\(entry.position.offset)")
            } else {
                received.record("\(event)")
            }
        }
        #expect(try await engine.append(Self.append(1), to: log, lease: lease) == .accepted(1))
        await received.wait(for: "1")

        // The hash slot of the log moves to another node: first its keys, one by one, then its assignment.
        let slot = HashSlot.of(Array("tb:{\(log.slot)}".utf8))
        let from = min(slot / 5_461, 2)
        let to = (from + 1) % 3
        let (source, target) = (nodes.all[from], nodes.all[to])
        try await target.cli("CLUSTER", "SETSLOT", "\(slot)", "IMPORTING", nodes.id(from))
        try await source.cli("CLUSTER", "SETSLOT", "\(slot)", "MIGRATING", nodes.id(to))
        let keys = try await source.cli("CLUSTER", "GETKEYSINSLOT", "\(slot)", "100").split(separator: "\n").map(
            String.init)
        for key in keys { try await source.cli("MIGRATE", "127.0.0.1", "\(target.port)", key, "0", "5000") }
        // All keys have moved, and the source redirects commands once.
        #expect(try await engine.renewLease(lease, duration: .seconds(3_600)))
        #expect(try await engine.append(Self.append(2), to: log, lease: lease) == .accepted(2))
        for server in [target, source] { try await server.cli("CLUSTER", "SETSLOT", "\(slot)", "NODE", nodes.id(to)) }
        await received.wait(for: "eventsMissed")
        #expect(try await engine.append(Self.append(3), to: log, lease: lease) == .accepted(3))
        await received.wait(for: "3")
        #expect(try await engine.read(log, after: nil).entries.map(\.payload) == [[1], [2], [3]])

        try await checkTables(at: engine)
        watch.cancel()
        await engine.close()
        await nodes.stop()
    }

    /// Checks that all parts of a table are on the node of its name, whichever that is.
    private func checkTables(at engine: RedisEngine) async throws {
        for number in 0..<10 {
            let table = ClusterTable("table \(number)")
            let received = Journal()
            let watch = try await engine.subscribeToChanges(of: table) { received.record("\($0)") }
            let change = TableChange(
                [.init("a", .putExpiring([1], lifetime: .seconds(3_600))), .init("n", .increment(1))],
                preconditions: [.init("a", version: 0)], notice: [2])
            #expect(try await engine.apply(change, to: table) == .changed(1))
            #expect(try await engine.apply(change, to: table) == .conflict("a"))
            #expect(try await engine.rows(of: table, prefix: "", after: nil, limit: 10).rows.map(\.name) == ["a", "n"])
            #expect(try await engine.changeFeed(of: table, after: nil, limit: 10).items.map(\.bytes) == [[2]])
            let takes = ["a", "b"].map {
                RateConsumption(RateKey($0, "x"), interval: .seconds(3_600), burst: 1, maximumEntries: 10)
            }
            #expect(try await engine.consumeRates(takes, of: table) == nil)
            #expect(try await engine.consumeRates(takes, of: table) != nil)
            await received.wait(for: "noticesAvailable(1)")
            watch.cancel()
        }
    }

    /// An append that writes to all keys of a log: a node without some of them refuses it.
    private static func append(_ offset: UInt8) -> LogAppend {
        LogAppend([offset], expectedHead: UInt64(offset) - 1, call: .init(id: "c\(offset)", reply: []))
    }

    @Test("a cluster's map is parsed as the server sends it, and other values are refused")
    func maps() throws {
        let asked = RedisURL.Endpoint(host: "h", port: 1)
        func range(_ first: Int64, _ last: Int64, _ host: RESPValue, _ port: Int64) -> RESPValue {
            .array([.integer(first), .integer(last), .array([host, .integer(port), .bulk([])])])
        }
        let map = try #require(
            SlotMap(
                .array([range(0, 5, .bulk(Array("a".utf8)), 7), range(6, 6, .null, 8), range(7, 9, .bulk([]), 8)]),
                from: asked))
        #expect(
            (0...10).map { map[$0]?.description } == [String](repeating: "a:7", count: 6) + [
                "h:8", "h:8", "h:8", "h:8", nil,
            ])
        for wrong: RESPValue in [
            .null, .array([]), .array([.integer(1)]), .array([range(5, 4, .null, 7)]), .array([range(-1, 4, .null, 7)]),
            .array([range(0, 16_384, .null, 7)]), .array([range(0, 1, .null, 0)]),
            .array([.array([.integer(0), .integer(1)])]),
        ] { #expect(SlotMap(wrong, from: asked) == nil) }
    }
}
