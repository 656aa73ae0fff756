// swift-format-ignore-file
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetCLI

@Test("recorded calls of game")
func gameCalls() async throws {
    let recorded = RecordedState()
    try await withTestServer { server in
        let actor = GameServer(actorSystem: server.actorSystem)
        _ = try await actor.whenLocal { actor in
            actor.gameState = try recorded(#"{"level":1,"score":0,"players":[]}"#)
            actor.metrics = try recorded(#"{"joins":0,"levelsPlayed":0}"#)
        }
        await server.expose(actor, as: "game")
    } body: { client, _ in
        let actor = try client.resolve(GameServer.self, id: "game")
        _ = try await actor.join(player: recorded(##""ada \"1\" \\#(2)""##))
        _ = try await actor.join(player: recorded(#""ada""#))
        _ = try await actor.advanceLevel()
        // cheat(score:) is omitted: it was rejected before execution with methodNotFound: actor 'game' has no method 'cheat(score:)'; it has advanceLevel(), join(player:), observeGameState, observeMetrics.
        // join(player:) is omitted: its arguments were invalid.
        #expect(await recorded.matches(##"{"level":2,"score":100,"players":["ada \"1\" \\#(2)","ada"]}"##, in: actor.observeGameState()))
        #expect(await recorded.matches(#"{"joins":2,"levelsPlayed":1}"#, in: actor.observeMetrics()))
    }
}
