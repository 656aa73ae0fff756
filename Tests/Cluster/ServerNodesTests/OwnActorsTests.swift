import NodeSupport
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet

/// Persisted actors placed on each node, whichever slots the node owns.
@Suite(.timeLimit(.minutes(5))) struct OwnActorsTests {
    /// An actor exposed by name, and one activated on demand.
    private static let names = ["own", "mine/x"]

    private static func node(
        _ name: String, _ engine: MemoryEngine, through engineRoute: (any ClusterEngine)? = nil,
        settings: ClusterMemberSettings = Node.settings, store: (any StateStore)? = nil, lines: Journal = Journal()
    ) async throws -> Node {
        let node = try Node(
            name, engine, through: engineRoute, settings: settings, store: store, log: ConsoleLog { lines.record($0) }
        ) { server in
            let system = server.actorSystem
            server.expose(Tally.self, as: "mine/*") { _ in Tally(actorSystem: system) }
            server.expose(Tally.self, as: "tallies/*", placement: .cluster) { _ in Tally(actorSystem: system) }
        }
        await node.server.expose(Tally(actorSystem: node.server.actorSystem), as: "own")
        return node
    }

    @Test(
        "each node has its own instance, persists it in the node's store, and writes nothing of it to the coordination store",
        arguments: [true, false])
    func own(haveStores: Bool) async throws {
        let engine = MemoryEngine()
        let stores = [MemoryStore(), MemoryStore()]
        var nodes: [Node] = []
        for (name, store) in zip(["a", "b"], stores) {
            nodes.append(try await Self.node(name, engine, store: haveStores ? store : nil))
        }
        try await Node.with(nodes) {
            for (place, node) in nodes.enumerated() {
                let client = try await node.textClient()
                for (number, name) in Self.names.enumerated() {
                    client.call(number, name, "add(_:)", "[\(place + 1)]")
                    let answer = try #require(await client.answer(number))
                    #expect(answer.contains(#""result":\#(place + 1)"#))
                    #expect((try await stores[place].readLog(StateKey("states", "\(name).count")) != nil) == haveStores)
                    #expect(try await engine.read(ClusterLog(name), after: nil).entries.isEmpty)
                }
                client.abort()
            }
        }
    }

    @Test(
        "local actors respond while the coordination store is unavailable, and after all leases have expired",
        arguments: [true, false])
    func engineAway(hasStore: Bool) async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        var settings = Node.settings
        settings.leaseDuration = .seconds(2)
        settings.leaseMargin = .milliseconds(500)
        let node = try await Self.node(
            "a", engine, through: engineRoute, settings: settings, store: hasStore ? MemoryStore() : nil)
        try await Node.with([node]) {
            let client = try await node.textClient()
            var call = 0
            func add(_ sum: Int) async throws {
                for name in Self.names {
                    call += 1
                    client.call(call, name, "add(_:)", "[1]")
                    let answer = try #require(await client.answer(call))
                    #expect(answer.contains(#""result":\#(sum)"#))
                }
            }
            try await add(1)
            engineRoute.set { $0.isAway = true }
            #expect(await eventually { node.member.slotCount == 0 })
            try await add(2)
            engineRoute.set { $0.isAway = false }
            #expect(await eventually { node.member.slotCount == ClusterSlot.count })
            try await add(3)
            client.abort()
        }
    }

    @Test("a cluster-wide actor continues at the next owner, even when each node has a separate store")
    func clustered() async throws {
        let engine = MemoryEngine()
        let nodes = [
            try await Self.node("a", engine, store: MemoryStore()),
            try await Self.node("b", engine, store: MemoryStore()),
        ]
        try await Node.with(nodes) {
            let name = nodes[1].names(1)[0]
            let client = try await nodes[0].textClient()
            client.call(1, name, "add(_:)", "[5]")
            #expect(await client.answer(1)?.contains(#""result":5"#) == true)
            try await nodes[1].kill()
            client.call(2, name, "add(_:)", "[1]")
            #expect(await client.answer(2)?.contains(#""result":6"#) == true)
            client.abort()
        }
    }

    @Test("a node without a store logs which of its local actors are in memory only", arguments: [true, false])
    func warning(hasStore: Bool) async throws {
        let lines = Journal()
        let node = try await Self.node("a", MemoryEngine(), store: hasStore ? MemoryStore() : nil, lines: lines)
        for name in ["own", "mine/*"] {
            let logged = lines.entries.filter {
                $0.contains("'\(name)' has persisted states, but this server has no store")
            }
            #expect(logged.count == (hasStore ? 0 : 1))
        }
        #expect(!lines.entries.contains { $0.contains("'tallies/*'") })
        await node.stop()
    }

    @Test("an actor that cannot be loaded is counted, and its server loads it when the store is available again")
    func unloadable() async throws {
        let store = ControllableStore()
        store.set { $0.failsReads = true }
        let server = TrebuchetServer(transport: .webSocket(port: 0), store: store, log: nil)
        await server.expose(Tally(actorSystem: server.actorSystem), as: "own")
        let client = try await TextClient(try await server.start())
        client.call(1, "own", "add(_:)", "[1]")
        let refused = try #require(await client.answer(1))
        #expect(refused.contains("unavailable") && refused.contains("the disk is gone"))
        // Metrics throw while other tests of this process block a reactor.
        #expect(await eventually { (try? await server.metricList().now.actorsUnloadable) == 1 })
        store.set { $0.failsReads = false }
        #expect(await eventually { server.actorCount == 1 })
        #expect(await eventually { (try? await server.metricList().now.actorsUnloadable) == 0 })
        client.call(2, "own", "add(_:)", "[1]")
        #expect(await client.answer(2)?.contains(#""result":1"#) == true)
        client.abort()
        await server.shutdown(drain: .zero)
    }
}
