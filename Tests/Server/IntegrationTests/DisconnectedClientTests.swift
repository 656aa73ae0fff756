import Networking
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@Suite(.timeLimit(.minutes(5))) struct DisconnectedClientTests {
    @Test("when a client vanishes during a call, the call is cancelled and others continue")
    func midCall() async throws {
        let journal = Journal()
        try await withTestServer { server in
            await server.expose(SizedStateActor(journal: journal, actorSystem: server.actorSystem), as: "board")
        } body: { client, server in
            let peer = try await RawPeer.connect(#require(server.address))
            peer.invoke("c", "board", "hold(_:)", #"["a"]"#)
            await journal.wait(for: "a began")
            peer.abort()
            await journal.wait(for: "a was cancelled")
            #expect(try await client.resolve(SizedStateActor.self, id: "board").add() == 1)
            #expect(await eventually { await server.connectionCount == 1 })
        }
    }

    @Test("a client that vanishes within a frame leaves no memory behind", arguments: [true, false])
    func midFrame(isReset: Bool) async throws {
        try await withTestServer { server in
            await server.expose(SizedStateActor(actorSystem: server.actorSystem), as: "board")
        } body: { client, server in
            let address = try #require(server.address)
            for length in 1...12 {
                let socket = PlainSocket(address)
                socket.send(Array(PlainSocket.upgrade.utf8))
                #expect(await eventually { await server.connectionCount == 2 })
                // A masked text frame of 200 bytes, cut within its header or shortly after it.
                let frame: [UInt8] = [0x81, 0xFE, 0x00, 0xC8, 1, 2, 3, 4] + [UInt8](repeating: 0x20, count: 192)
                socket.send(Array(frame.prefix(length)))
                socket.close(reset: isReset)
                #expect(await eventually { await server.connectionCount == 1 })
            }
            #expect(try await client.resolve(SizedStateActor.self, id: "board").add() == 1)
        }
    }

    @Test("2,000 silent connections do not disturb others")
    func silentConnections() async throws {
        try await withTestServer { server in
            await server.expose(SizedStateActor(actorSystem: server.actorSystem), as: "board")
        } body: { client, server in
            let address = try #require(server.address)
            let silent = (0..<1_000).map { _ in PlainSocket(address) }
            let upgraded = (0..<1_000).map { _ in PlainSocket(address) }
            for socket in upgraded { socket.send(Array(PlainSocket.upgrade.utf8)) }
            #expect(await eventually { await server.connectionCount == 1_001 })
            let board = try client.resolve(SizedStateActor.self, id: "board")
            for count in 1...100 { #expect(try await board.add() == count) }
            for socket in silent + upgraded { socket.close(reset: true) }
            #expect(await eventually { await server.connectionCount == 1 })
        }
    }

    @Test("streams whose connection closes while they start leave no subscriber on either reactor")
    func shortStreams() async throws {
        try await withTestServer(reactors: 2) { server in
            for name in ["a", "b"] { await server.expose(SizedStateActor(actorSystem: server.actorSystem), as: name) }
        } body: { _, server in
            let address = try #require(server.address)
            for _ in 0..<100 {
                let peer = try await RawPeer.connect(address)
                for actor in ["a", "b"] { peer.invoke(actor, actor, "observeState") }
                peer.abort()
            }
            for actor in ["a", "b"] {
                #expect(await eventually { await server.connectionCount == 1 })
                #expect(await eventually { await server.subscriberCount(of: actor, "observeState") == 0 })
                #expect(await eventually { await server.broadcasterCount(of: actor, "observeState") == 0 })
            }
        }
    }
}
