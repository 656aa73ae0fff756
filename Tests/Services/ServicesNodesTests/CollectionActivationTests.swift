import NodeSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes
@testable import TrebuchetServices
@testable import TrebuchetServicesClient

/// What callers receive while the log of a collection cannot be read.
@MainActor @Suite(.timeLimit(.minutes(5))) struct CollectionActivationTests {
    private let actor = "collections/notes"

    @Test(
        "a collection of another owner has moved, one whose lease is renewed is unavailable, and neither is a failure")
    func leases() async throws {
        let engine = MemoryEngine()
        let node = try ClusterNode(name: "n")
        let lease = try #require(
            try await engine.acquire(ClusterSlot(of: actor), for: node, duration: .seconds(60)).lease)
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        func load(valid: SlotLease?, known: SlotLease?) async throws {
            let store = EngineStore(engine, known: { _ in known }) { _ in valid }
            let stored = StoredCollection(
                "notes", in: store, StoredCollection.Ownership(actor: actor, fence: lease.fence))
            _ = try await stored.load(CollectionLimits(), at: server, now: 0)
        }
        try await load(valid: lease, known: lease)
        let moved = await #expect(throws: TrebuchetError.self) { try await load(valid: nil, known: nil) }
        #expect(moved?.isOfMovedActor == true)
        #expect(
            moved?.message == "collection 'notes' cannot be loaded: this node does not own actor 'collections/notes'")
        let renewed = await #expect(throws: TrebuchetError.self) { try await load(valid: nil, known: lease) }
        #expect(renewed?.code == .unavailable && renewed?.isOfMovedActor == false)
        #expect(
            renewed?.message
                == "collection 'notes' cannot be loaded: the lease of actor 'collections/notes' is not renewed yet")
        await server.shutdown(drain: .zero)
    }

    @Test(
        "while a node cannot reach the coordination store, its collections are unavailable, and links are tried again")
    func away() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let nodes = [try ServiceNode("a", engine, through: engineRoute), try ServiceNode("b", engine)]
        try await Node.with(nodes.map(\.node)) {
            let (from, to) = (nodes[0].collection, nodes[1].collection)
            let unloaded = try #require(
                (0..<100_000).map { "x\($0)" }.first { $0 != from && nodes[0].node.owns("collections/\($0)") })
            let app = try await App(nodes[0], as: "ada")
            let people = try await app.collection(to).commit([.add("ada")], from: "a client of ada's", at: 1)
            let notes = try app.collection(from)
            let added = try await notes.commit([.add("1", ["tags": .array([])])], from: "a client of ada's", at: 1)
            #expect((people + added).map(\.error) == [nil, nil])
            engineRoute.set { $0.isAway = true }
            let error = await #expect(throws: TrebuchetError.self) {
                try await app.collection(unloaded).get(CollectionQuery())
            }
            #expect(error?.code == .unavailable)
            #expect(error?.message.contains("cannot be loaded: the coordination store is unreachable") == true)
            let link = DocumentCommand.link(id: "1", field: "tags", target: .string("ada"), in: to)
            await #expect(throws: CollectionError.closed) {
                try await notes.commit([link], from: "a client of ada's", at: 2)
            }
            engineRoute.set { $0.isAway = false }
            #expect(try await notes.commit([link], from: "a client of ada's", at: 2).map(\.error) == [nil])
            #expect(try await app.collection(unloaded).get(CollectionQuery()).documents.isEmpty)
        }
    }
}
