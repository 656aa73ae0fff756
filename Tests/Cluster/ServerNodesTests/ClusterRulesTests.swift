import NodeSupport
import TestSupport
import Testing
import Trebuchet
import TrebuchetCluster

/// Authorization rules of nodes: calls and streams to actors of another node are checked at both nodes.
@Suite(.timeLimit(.minutes(5))) struct ClusterRulesTests {
    private static let allowed = ""
    private static let refused = "unauthenticated"

    @Test(
        "calls through a node channel are checked against replaced rules of both nodes, and streams end",
        arguments: [false, true])
    func replaced(directly: Bool) async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let access = AccessPolicy(authorize: { _, _, _ in true })
        try await withNodes(["a", "b"], engine: engine, through: engineRoute, access: access, areReached: directly) {
            nodes in
            let (board, tally) = (nodes[1].names("boards")[0], nodes[1].names(1)[0])
            if directly {
                // The first calls go through the coordination store.
                let first = try await nodes[0].client().resolve(Tally.self, id: tally)
                #expect(
                    await eventually {
                        let before = engineRoute.messageCount
                        _ = try? await first.add(0)
                        return engineRoute.messageCount == before
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
                // One shared stream, and one for this client only.
                client.observe("shared", board, "observeSteps")
                client.call(1, board, "observeSteps", "[]", more: #","filter":{"distinct":true}"#)
                #expect(await eventually { client.versions.count == 2 })

                await nodes[place].server.replaceAuthorization { _, _, _ in false }
                // Once a shared stream has started, only the node of the client re-authorizes it.
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
