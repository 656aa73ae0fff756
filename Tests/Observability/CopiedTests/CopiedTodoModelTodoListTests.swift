// swift-format-ignore-file
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TodoModel

@Test("recorded calls of shopping")
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
        #expect(await recorded.matches(#"{"todos":[{"id":"26B70819-6CFE-486A-BD8F-E6223B5C411F","title":"Milk","isDone":false},{"id":"A8740A16-05EB-465C-B39B-6A8511236C78","title":"Bread","isDone":true}]}"#, in: actor.observeState()))
    }
}
