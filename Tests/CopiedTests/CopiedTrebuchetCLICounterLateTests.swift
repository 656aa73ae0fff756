// swift-format-ignore-file
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetCLI

@Test("the calls that counters/late had")
func counters_lateCalls() async throws {
    // What state was before these calls is not known, as nobody looked at it then: it begins as in a new actor, and is not compared.
    let recorded = RecordedState()
    try await withTestServer { server in
        let actor = Counter(actorSystem: server.actorSystem)
        await server.expose(actor, as: "counters/late")
    } body: { client, _ in
        let actor = try client.resolve(Counter.self, id: "counters/late")
        _ = try await actor.increment()
        _ = try await actor.add(5)
    }
}
