// swift-format-ignore-file
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetCLI

@Test("recorded calls of counter")
func counterCalls() async throws {
    let recorded = RecordedState()
    try await withTestServer { server in
        let actor = Counter(actorSystem: server.actorSystem)
        _ = try await actor.whenLocal { actor in
            actor.state = try recorded(#"{"count":0}"#)
        }
        await server.expose(actor, as: "counter")
    } body: { client, _ in
        let actor = try client.resolve(Counter.self, id: "counter")
        _ = try await actor.increment()
        _ = try await actor.add(-5)
        _ = try await actor.reset()
        _ = try await actor.add(42)
        #expect(await recorded.matches(#"{"count":42}"#, in: actor.observeState()))
    }
}
