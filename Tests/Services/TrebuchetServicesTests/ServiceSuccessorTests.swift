import Testing
import Trebuchet
import TrebuchetActors
import TrebuchetCluster
import TrebuchetNodes
import TrebuchetTesting

@testable import TrebuchetServices

/// Actors of services that a node gives up, when their names have successors.
@Suite(.timeLimit(.minutes(5))) struct ServiceSuccessorTests {
    private func server() throws -> TrebuchetServer {
        var access = AccessPolicy.open
        access.identifiesCallers = true
        return TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), access: access,
            cluster: try ClusterMembership(of: "a", at: MemoryEngine()), log: nil)
    }

    @Test("a room that is ended twice does not affect its successor")
    func rooms() async throws {
        let server = try server()
        let host = RoomHost.expose(on: server)
        let address = try await server.start()
        let name = "rooms/chat-lobby"
        let old = try #require(try await server.actor(Room.self, named: name))
        await server.giveUp([(name, old)])
        #expect(host.roomCount == 0)
        let guest = RoomTestClient(TrebuchetClient(transport: .webSocket(host: address.host, port: address.port)))
        try await guest.client.connect()
        _ = try await guest.room().join(presence: .integer(1), token: nil, attempt: nil)
        let next = try #require(host.room("chat-lobby"))
        #expect(next !== old)
        await old.whenLocal { $0.didMove() }
        await old.whenLocal { $0.deactivationDidFinish(false) }
        #expect(await old.whenLocal { $0.isClosed } == true)
        #expect(host.room("chat-lobby") === next && host.roomCount == 1)
        #expect(host.summaries(prefix: "chat-", after: nil, limit: 10).map(\.members) == [1])
        await guest.client.close()
        await server.shutdown(drain: .zero)
    }

    @Test("a collection that is ended twice does not affect its successor")
    func collections() async throws {
        let server = try server()
        let host = CollectionHost.expose(on: server)
        _ = try await server.start()
        let name = "collections/things"
        let old = try #require(try await server.actor(DocumentCollection.self, named: name))
        await server.giveUp([(name, old)])
        #expect(host.collectionCount == 0)
        let next = try #require(try await server.actor(DocumentCollection.self, named: name))
        #expect(next !== old)
        await old.whenLocal { $0.didMove() }
        #expect(host.collectionCount == 1 && host.live.first?.part === next)
        await server.shutdown(drain: .zero)
    }
}
