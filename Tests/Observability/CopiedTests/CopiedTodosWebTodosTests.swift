// swift-format-ignore-file
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TodosWeb

@Test("recorded calls of web-todos")
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
        #expect(await recorded.matches(#"{"todos":[{"id":"390C40F6-722E-476A-A9E4-D1007D820AAA","title":"Milk","isDone":false}]}"#, in: actor.observeState()))
        _ = try await actor.toggleTodo(id: recorded(#""390C40F6-722E-476A-A9E4-D1007D820AAA""#))
        _ = try await actor.addTodo(title: recorded(#""Bread""#))
        #expect(await recorded.matches(#"{"todos":[{"id":"390C40F6-722E-476A-A9E4-D1007D820AAA","title":"Milk","isDone":true},{"id":"99492E74-4B62-468E-A6BD-8872580F49EC","title":"Bread","isDone":false}]}"#, in: actor.observeState()))
    }
}
