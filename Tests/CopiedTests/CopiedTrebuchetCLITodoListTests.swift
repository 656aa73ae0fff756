// swift-format-ignore-file
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetCLI

@Test("the calls that todos had")
func todosCalls() async throws {
    let recorded = RecordedState()
    try await withTestServer { server in
        let actor = TodoList(actorSystem: server.actorSystem)
        _ = try await actor.whenLocal { actor in
            actor.state = try recorded(#"{"todos":[]}"#)
        }
        await server.expose(actor, as: "todos")
    } body: { client, _ in
        let actor = try client.resolve(TodoList.self, id: "todos")
        _ = try await actor.addTodo(title: recorded(#""Milk""#))
        #expect(await recorded.isShown(#"{"todos":[{"id":"86E9E2F8-9B7E-4A18-B548-75DA538ECE75","title":"Milk","isDone":false}]}"#, in: actor.observeState()))
        _ = try await actor.addTodo(title: recorded(#""Bread""#))
        #expect(await recorded.isShown(#"{"todos":[{"id":"86E9E2F8-9B7E-4A18-B548-75DA538ECE75","title":"Milk","isDone":false},{"id":"49163DDC-93D0-4C87-9EC5-08B3DE8A75FF","title":"Bread","isDone":false}]}"#, in: actor.observeState()))
        _ = try await actor.toggleTodo(id: recorded(#""86E9E2F8-9B7E-4A18-B548-75DA538ECE75""#))
        await #expect(throws: (any Error).self) { _ = try await actor.removeTodo(id: recorded(#""00000000-0000-0000-0000-000000000001""#)) }
        _ = try await actor.removeTodo(id: recorded(#""86E9E2F8-9B7E-4A18-B548-75DA538ECE75""#))
        _ = try await actor.removeTodo(id: recorded(#""49163DDC-93D0-4C87-9EC5-08B3DE8A75FF""#))
        #expect(await recorded.isShown(#"{"todos":[]}"#, in: actor.observeState()))
    }
}
