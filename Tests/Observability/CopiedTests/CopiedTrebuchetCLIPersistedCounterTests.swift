// swift-format-ignore-file
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetCLI

@Test("recorded calls of counters/42")
func counters_42Calls() async throws {
    let recorded = RecordedState()
    try await withTestServer { server in
        let actor = PersistedCounter(actorSystem: server.actorSystem)
        _ = try await actor.whenLocal { actor in
            actor.count = try recorded(#"0"#)
        }
        await server.expose(actor, as: "counters/42")
    } body: { client, _ in
        let actor = try client.resolve(PersistedCounter.self, id: "counters/42")
        _ = try await actor.add(1)
        _ = try await actor.add(recorded(#"9007199254740993"#))
        _ = try await actor.add(-9007199254740952)
        #expect(await recorded.matches(#"42"#, in: actor.observeCount()))
    }
}
