// swift-format-ignore-file
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetCLI

@Test("recorded calls of counters/late")
func counters_lateCalls() async throws {
    // The state of state before these calls was not recorded: it begins as in a new actor, and is not compared.
    try await withTestServer { server in
        let actor = Counter(actorSystem: server.actorSystem)
        await server.expose(actor, as: "counters/late")
    } body: { client, _ in
        let actor = try client.resolve(Counter.self, id: "counters/late")
        _ = try await actor.increment()
        _ = try await actor.add(5)
    }
}
