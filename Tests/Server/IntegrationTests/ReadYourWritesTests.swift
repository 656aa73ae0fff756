import Testing
import Trebuchet
import TrebuchetTesting

@Suite(.timeLimit(.minutes(5))) struct ReadYourWritesTests {
    @Test("an update that a call causes is on the caller's connection before the response", arguments: [1, 2])
    func updateBeforeAnswer(reactors: Int) async throws {
        try await withTestServer(reactors: reactors) { server in
            for name in ["a", "b"] { await server.expose(SizedStateActor(actorSystem: server.actorSystem), as: name) }
        } body: { _, server in
            // Eight connections, so that actors of either reactor are called from both.
            for _ in 0..<8 {
                let peer = try await RawPeer.connect(#require(server.address))
                for actor in ["a", "b"] {
                    peer.invoke("o", actor, "observeState")
                    #expect(try await peer.next()?.type == "streamStart")
                    let first = try #require(await peer.next())
                    var last = try #require(first.payload.sequenceNumber)
                    var count = try #require(first.payload.data?.count)
                    for round in 0..<20 {
                        peer.invoke("c", actor, round.isMultiple(of: 2) ? "add()" : "addLater()")
                        let update = try #require(await peer.next())
                        count += 1
                        #expect(update.type == "streamData")
                        #expect(update.payload.data?.count == count)
                        let sequence = try #require(update.payload.sequenceNumber)
                        #expect(sequence > last)
                        last = sequence
                        let answer = try #require(await peer.next())
                        #expect(answer.payload.callID == "c")
                        #expect(answer.payload.result == count)
                    }
                    peer.send(#"{"type":"streamEnd","payload":{"streamID":"\#(first.payload.streamID ?? "")"}}"#)
                    #expect(try await peer.next()?.type == "streamEnd")
                }
                peer.close()
            }
        }
    }
}
