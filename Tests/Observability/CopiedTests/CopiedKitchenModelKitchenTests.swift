// swift-format-ignore-file
import Testing
import Trebuchet
import TrebuchetTesting

@testable import KitchenModel

@Test("recorded calls of kitchen")
func kitchenCalls() async throws {
    let recorded = RecordedState()
    try await withTestServer { server in
        let actor = Kitchen(actorSystem: server.actorSystem)
        _ = try await actor.whenLocal { actor in
            actor.state = try recorded(#"{"orders":[]}"#)
        }
        await server.expose(actor, as: "kitchen")
    } body: { client, _ in
        let actor = try client.resolve(Kitchen.self, id: "kitchen")
        _ = try await actor.menu()
        _ = try await actor.order(dish: recorded(#""Sole""#), table: 4)
        await #expect(throws: (any Error).self) { _ = try await actor.order(dish: recorded(#""Sole""#), table: 5) }
        _ = try await actor.serve(number: 1)
        #expect(await recorded.matches(#"{"orders":[{"dish":"Sole","table":4,"isServed":true}]}"#, in: actor.observeState()))
    }
}
