import Testing
import Trebuchet
import TrebuchetTesting

/// A state on the global pool.
@Trebuchet(executor: .concurrent)
private distributed actor Pool {
    @StreamedState var state: SizedStateActor.State = SizedStateActor.State()

    distributed func fill(_ count: Int) -> Int {
        for _ in 0..<count { state.count += 1 }
        return state.count
    }
    distributed func fillLater(_ count: Int) async -> Int {
        let filled = fill(count / 2)
        await Task.yield()
        return fill(count - count / 2) + filled - filled
    }
    distributed func fillAndThrow(_ count: Int) throws {
        _ = fill(count)
        throw Full()
    }
}

private struct Full: Error, Codable {}

@Suite(.timeLimit(.minutes(5))) struct ConcurrentPublishingTests {
    private func withPool(_ body: (RawPeer, TrebuchetServer) async throws -> Void) async throws {
        try await withTestServer { server in
            await server.expose(Pool(actorSystem: server.actorSystem), as: "pool")
        } body: { _, server in
            let peer = try await RawPeer.connect(#require(server.address))
            peer.invoke("o", "pool", "observeState")
            #expect(try await peer.next()?.type == "streamStart")
            #expect(try await peer.next()?.payload.data?.count == 0)
            try await body(peer, server)
            peer.close()
        }
    }

    @Test(
        "many changes in one call of an actor on the global pool are one update, which precedes the response",
        arguments: ["fill(_:)", "fillAndThrow(_:)"])
    func oneUpdate(target: String) async throws {
        try await withPool { peer, server in
            let before = await server.encodeCount(of: "pool", "observeState")
            for round in 1...5 {
                peer.invoke("c", "pool", target, "[2000]")
                let update = try #require(await peer.next())
                #expect(update.payload.data?.count == 2_000 * round, "\(update.type)")
                let answer = try #require(await peer.next())
                #expect(answer.payload.callID == "c" && answer.type == "response")
            }
            #expect(await server.encodeCount(of: "pool", "observeState") == before + 5)
        }
    }

    @Test("a call that suspends publishes its changes so far, and the rest before its response")
    func suspending() async throws {
        try await withPool { peer, _ in
            peer.invoke("c", "pool", "fillLater(_:)", "[2000]")
            var counts: [Int] = []
            while let message = try await peer.next(), message.type == "streamData" {
                counts.append(try #require(message.payload.data?.count))
            }
            #expect(counts.last == 2_000)
            #expect(counts.count <= 2, "\(counts)")
        }
    }

    @Test("changes outside of calls are sent as well")
    func outsideOfCalls() async throws {
        try await withPool { peer, server in
            let pool = try Pool.resolve(id: TrebuchetActorID("pool"), using: server.actorSystem)
            _ = try await pool.fill(2_000)
            #expect(try await peer.next()?.payload.data?.count == 2_000)
        }
    }
}
