import Networking
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@Suite(.timeLimit(.minutes(5)), .serialized) struct FanOutTests {
    /// Connections that have received the first value of a state.
    private func subscribers(_ count: Int, _ address: SocketAddress) async throws -> [RawPeer] {
        try await withThrowingTaskGroup(of: RawPeer.self) { group in
            for _ in 0..<count {
                group.addTask {
                    let peer = try await RawPeer.connect(address)
                    peer.invoke("o", "board", "observeState")
                    let types = [try await peer.next()?.type, try await peer.next()?.type]
                    #expect(types == ["streamStart", "streamData"])
                    return peer
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    @Test("one update of 1,000 elements to 1,000 subscribers is encoded once; after 1,000 aborts none is left")
    func thousandSubscribers() async throws {
        try await withTestServer { server in
            let board = SizedStateActor(actorSystem: server.actorSystem)
            try await board.fill(items: 1_000, padding: 0)
            await server.expose(board, as: "board")
        } body: { client, server in
            let address = try #require(server.address)
            let peers = try await subscribers(1_000, address)
            #expect(await server.subscriberCount(of: "board", "observeState") == 1_000)

            let before = await server.encodeCount(of: "board", "observeState")
            let board = try client.resolve(SizedStateActor.self, id: "board")
            #expect(try await board.add() == 1)
            for peer in peers {
                let update = try await peer.next()
                #expect(update?.payload.patch == [Message.Payload.Operation(op: "replace", path: "/count", value: 1)])
            }
            #expect(await server.encodeCount(of: "board", "observeState") == before + 1)

            for peer in peers { peer.abort() }
            #expect(await eventually { await server.subscriberCount(of: "board", "observeState") == 0 })
            #expect(await eventually { await server.connectionCount == 1 })
            // Lost connections may resume: for a while the state is encoded for them.
            #expect(try await board.add() == 2)
            #expect(await server.encodeCount(of: "board", "observeState") == before + 2)
        }
    }

    @Test("calls of one turn reach subscribers in order: few calls version by version, and always the last one")
    func versionsOfOneTurn() async throws {
        try await withTestServer(reactors: 1) { server in
            await server.expose(SizedStateActor(actorSystem: server.actorSystem), as: "board")
        } body: { _, server in
            let address = try #require(server.address)
            let subscriber = try await subscribers(1, address)[0]
            let caller = try await RawPeer.connect(address)
            // One task on the caller's reactor, so one write: the server handles many of them in a turn.
            let few = 20
            await caller.together { for _ in 0..<few { caller.invoke("c", "board", "add()") } }
            for count in 1...few { #expect(try await subscriber.next()?.payload.data?.count == count) }

            let many = 5_000
            await caller.together { for _ in 0..<many { caller.invoke("c", "board", "add()") } }
            var counts = [few]
            while counts.last != few + many {
                counts.append(try #require(await subscriber.next()?.payload.data).count)
            }
            #expect(zip(counts, counts.dropFirst()).allSatisfy(<))
            subscriber.close()
            caller.close()
        }
    }

    @Test("a subscriber that keeps pace gets differences, however many calls arrive together", arguments: [40, 400])
    func differencesOfOneTurn(calls: Int) async throws {
        try await withTestServer(reactors: 1) { server in
            let board = SizedStateActor(actorSystem: server.actorSystem)
            try await board.fill(items: 0, padding: 20_000)
            await server.expose(board, as: "board")
        } body: { _, server in
            let address = try #require(server.address)
            let subscriber = try await subscribers(1, address)[0]
            let caller = try await RawPeer.connect(address)
            var count = 0
            for round in 1...5 {
                await caller.together { for _ in 0..<calls { caller.invoke("c", "board", "add()") } }
                var updates = 0
                while count < round * calls {
                    let update = try #require(await subscriber.next())
                    let last = try #require(
                        update.payload.patch?.last, "a whole value was sent after \(count) of \(calls)")
                    #expect(last.path == "/count")
                    #expect(try #require(last.value) > count)
                    count = try #require(last.value)
                    updates += 1
                }
                #expect(updates >= min(calls, 32), "encoded updates are sent")
            }
            subscriber.close()
            caller.close()
        }
    }

    @Test("a subscriber that does not read delays no other, and gets the newest state when it reads again")
    func slowSubscriber() async throws {
        // The reader pauses for all calls, on a busy machine for longer than the default write timeout.
        var limits = ServerLimits()
        limits.streams.supersededVersionTimeout = .seconds(600)
        try await withTestServer(reactors: 1, limits: limits) { server in
            let board = SizedStateActor(actorSystem: server.actorSystem)
            try await board.fill(items: 0, padding: 1 << 20)
            await server.expose(board, as: "board")
        } body: { _, server in
            let address = try #require(server.address)
            let slow = try await subscribers(1, address)[0]
            await slow.pauseReading()
            let caller = try await RawPeer.connect(address)
            let updates = 60
            for count in 1...updates {
                caller.invoke("c", "board", "churn()")
                #expect(try await caller.next()?.payload.result == count)
            }
            await slow.resumeReading()
            var counts: [Int] = []
            while counts.last != updates {
                counts.append(try #require(await slow.next()?.payload.data).count)
            }
            #expect(zip(counts, counts.dropFirst()).allSatisfy(<))
            // No more than the kernel's buffers and the watermark hold.
            #expect(counts.count < updates / 2)
            slow.close()
            caller.close()
        }
    }

    @Test("many subscribers with different stream names and start versions each get all versions in order")
    func namesOfTheirOwn() async throws {
        try await withTestServer(reactors: 1) { server in
            for name in ["board", "other"] {
                await server.expose(SizedStateActor(actorSystem: server.actorSystem), as: name)
            }
        } body: { _, server in
            let address = try #require(server.address)
            let caller = try await RawPeer.connect(address)
            var peers: [(peer: RawPeer, name: String?, count: Int)] = []
            var count = 0
            for round in 0..<4 {
                for number in 0..<12 {
                    let peer = try await RawPeer.connect(address)
                    // Every third one has another stream first.
                    if number % 3 == 0 {
                        peer.invoke("x", "other", "observeState")
                        #expect(try await [peer.next()?.type, peer.next()?.type] == ["streamStart", "streamData"])
                    }
                    peer.invoke("o", "board", "observeState")
                    let name = try await peer.next()?.payload.streamID
                    #expect(try await peer.next()?.payload.data?.count == count)
                    peers.append((peer, name, count))
                }
                let calls = 3 + 10 * round
                await caller.together { for _ in 0..<calls { caller.invoke("c", "board", "add()") } }
                count += calls
                for _ in 0..<calls { #expect(try await caller.next()?.type == "response") }
            }
            for (peer, name, first) in peers {
                var last = first
                while last < count {
                    let update = try #require(await peer.next()).payload
                    #expect(update.streamID == name)
                    last += 1
                    #expect((update.patch?.last?.value ?? update.data?.count) == last)
                }
                #expect(peer.waitingCount == 0)
                peer.abort()
            }
            caller.close()
        }
    }
}
