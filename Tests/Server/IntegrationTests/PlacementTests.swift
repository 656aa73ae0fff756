import Dispatch
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet

/// The reactor that an actor is placed on.
@Suite(.timeLimit(.minutes(5))) struct PlacementTests {
    private func peer(_ server: TrebuchetServer, onReactor index: UInt64) async throws -> RawPeer {
        while true {
            let peer = try await RawPeer.connect(#require(server.address))
            if peer.reactorIndex == index { return peer }
            peer.close()
        }
    }

    /// The number of the reactor that a gate is on, as it reports it.
    private func place(of name: String, _ peer: RawPeer, _ server: TrebuchetServer) async throws -> Int? {
        peer.invoke("1", name, "thread()")
        let answer = try #require(await peer.nextText())
        return server.shards.firstIndex { answer.contains("\"\($0.reactor.name)\"") }
    }

    @Test("an on-demand actor is placed on the reactor of its first caller")
    func onDemand() async throws {
        try await withTestServer(reactors: 2) { server in
            let system = server.actorSystem
            server.expose(CombinedCallActor.self, as: "bells/*") { _ in
                await Task.yield()
                return CombinedCallActor(journal: Journal(), opening: DispatchSemaphore(value: 0), actorSystem: system)
            }
        } body: { _, server in
            let peers = [try await peer(server, onReactor: 0), try await peer(server, onReactor: 1)]
            for (index, other) in [(0, 1), (1, 0)] {
                for number in 0..<6 {
                    let name = "bells/\(index)-\(number)"
                    #expect(try await place(of: name, peers[index], server) == index)
                    #expect(try await place(of: name, peers[other], server) == index)
                }
            }
            for peer in peers { peer.close() }
        }
    }

    @Test("exposed actors are distributed over the reactors")
    func exposed() async throws {
        try await withTestServer(reactors: 2) { server in
            for number in 0..<8 {
                let gate = CombinedCallActor(
                    journal: Journal(), opening: DispatchSemaphore(value: 0), actorSystem: server.actorSystem)
                await server.expose(gate, as: "gate-\(number)")
            }
        } body: { _, server in
            let peer = try await peer(server, onReactor: 0)
            var counts = [0, 0]
            for number in 0..<8 { counts[try #require(await place(of: "gate-\(number)", peer, server))] += 1 }
            #expect(counts == [4, 4])
            peer.close()
        }
    }
}
