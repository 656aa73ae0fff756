// swift-format-ignore-file
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TodosWeb

@Test("the calls that web-todos had")
func web_todosCalls() async throws {
    let recorded = RecordedState()
    try await withTestServer { server in
        let actor = Todos(actorSystem: server.actorSystem)
        _ = try await actor.whenLocal { actor in
            actor.state = try recorded(#"{"todos":[]}"#)
        }
        await server.expose(actor, as: "web-todos")
    } body: { client, _ in
        let actor = try client.resolve(Todos.self, id: "web-todos")
        _ = try await actor.addTodo(title: recorded(#""Milk""#))
        #expect(await recorded.isShown(#"{"todos":[{"id":"64DC6AE0-4823-4B51-ACB7-53801AB20ED9","title":"Milk","isDone":false}]}"#, in: actor.observeState()))
        _ = try await actor.toggleTodo(id: recorded(#""64DC6AE0-4823-4B51-ACB7-53801AB20ED9""#))
        _ = try await actor.addTodo(title: recorded(#""Bread""#))
        #expect(await recorded.isShown(#"{"todos":[{"id":"64DC6AE0-4823-4B51-ACB7-53801AB20ED9","title":"Milk","isDone":true},{"id":"4AAAF68B-A051-4CAF-814F-19F75B5C5D66","title":"Bread","isDone":false}]}"#, in: actor.observeState()))
    }
}
