// swift-format-ignore-file
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TodoModel

@Test("the calls that shopping had")
func shoppingCalls() async throws {
    let recorded = RecordedState()
    try await withTestServer { server in
        let actor = TodoList(actorSystem: server.actorSystem)
        _ = try await actor.whenLocal { actor in
            actor.state = try recorded(#"{"todos":[]}"#)
        }
        await server.expose(actor, as: "shopping")
    } body: { client, _ in
        let actor = try client.resolve(TodoList.self, id: "shopping")
        _ = try await actor.add(title: recorded(#""Milk""#))
        _ = try await actor.add(title: recorded(#""Bread""#))
        _ = try await actor.finish(number: 2)
        await #expect(throws: (any Error).self) { _ = try await actor.finish(number: 3) }
        #expect(await recorded.isShown(#"{"todos":[{"id":"F164A256-DD03-4E43-BCAC-D158506544FF","title":"Milk","isDone":false},{"id":"967CE192-89BC-47AE-BD5C-2009016D26B2","title":"Bread","isDone":true}]}"#, in: actor.observeState()))
    }
}
