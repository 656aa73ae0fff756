// swift-format-ignore-file
import Testing
import Trebuchet
import TrebuchetTesting

@testable import GameModel

@Test("recorded calls of matches/first")
func matches_firstCalls() async throws {
    let recorded = RecordedState()
    try await withTestServer { server in
        let actor = Match(actorSystem: server.actorSystem)
        _ = try await actor.whenLocal { actor in
            actor.board = try recorded(#"{"riders":[],"tick":0}"#)
        }
        await server.expose(actor, as: "matches/first")
    } body: { client, _ in
        let actor = try client.resolve(Match.self, id: "matches/first")
        _ = try await actor.join(name: recorded(#""ada""#))
        await #expect(throws: (any Error).self) { _ = try await actor.join(name: recorded(#""ada""#)) }
        _ = try await actor.turn(name: recorded(#""ada""#), to: recorded(#""up""#))
        _ = try await actor.turn(name: recorded(#""bob""#), to: recorded(#""down""#))
        #expect(await recorded.matches(#"{"riders":[{"name":"ada","direction":"up","trail":[{"x":4,"y":6}],"hasCrashed":false}],"tick":0}"#, in: actor.observeBoard()))
    }
}
