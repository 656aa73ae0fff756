import NodeSupport
import TestSupport
import Testing
import Trebuchet
import TrebuchetCluster

/// Rules of nodes: what a client asks of an actor that lives elsewhere is under those of both.
@Suite(.timeLimit(.minutes(5))) struct ClusterRulesTests {
    private static let allowed = ""
    private static let refused = "unauthenticated"

    @Test(
        "calls over a line to another node are under the rules that replace others at either, and streams end",
        arguments: [false, true])
    func replaced(directly: Bool) async throws {
        let engine = MemoryEngine()
        let way = FaultyEngine(engine)
        let access = AccessPolicy(authorize: { _, _, _ in true })
        try await withNodes(["a", "b"], engine: engine, through: way, access: access, areReached: directly) { nodes in
            let (board, tally) = (nodes[1].names("boards")[0], nodes[1].names(1)[0])
            if directly {
                // The first ones go through the engine.
                let first = try await nodes[0].client().resolve(Tally.self, id: tally)
                #expect(
                    await eventually {
                        let before = way.messageCount
                        _ = try? await first.add(0)
                        return way.messageCount == before
                    })
            }
            for place in nodes.indices {
                let client = try await nodes[0].textClient()
                func answer(_ callID: String) async -> String? {
                    client.call(callID, tally, "add(_:)", [1])
                    #expect(await eventually { client.answers(callID).count == 1 })
                    return client.answers(callID).first?.error
                }
                #expect(await answer("before") == Self.allowed)
                // One that its node takes for all of its clients, and one for it alone.
                client.observe("shared", board, "observeSteps")
                client.call(1, board, "observeSteps", "[]", more: #","filter":{"distinct":true}"#)
                #expect(await eventually { client.versions.count == 2 })

                await nodes[place].server.replaceAuthorization { _, _, _ in false }
                // Whether a client may have what its node takes for several is its node's to say from then on.
                let ended = place == 0 ? 2 : 1
                #expect(
                    await eventually {
                        client.messages.filter { $0.type == "streamError" && $0.error == Self.refused }.count == ended
                    })
                #expect(await answer("after") == Self.refused)
                await nodes[place].server.replaceAuthorization { _, _, _ in true }
                #expect(await answer("again") == Self.allowed)
                client.abort()
            }
        }
    }
}
