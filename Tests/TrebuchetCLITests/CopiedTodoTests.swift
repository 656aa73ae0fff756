import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetCLI

@Test("the calls that todos had")
func todosCalls() async throws {
    try await withTestServer { server in
        await server.expose(TodoList(actorSystem: server.actorSystem), as: "todos")
    } body: { client, _ in
        let actor = try client.resolve(TodoList.self, id: "todos")
        _ = try await actor.addTodo(title: "Milk \"\\(1)\u{a}")
        let made2 = try await actor.addTodo(title: "Bread")
        _ = try await actor.toggleTodo(id: made2.id)
        // removeTodo(id:) is left out: it names what was there before.
        _ = try await actor.removeTodo(id: made2.id)
        await #expect(throws: (any Error).self) { _ = try await actor.removeTodo(id: made2.id) }
        // nothing() is left out: there is no such method, or it was refused before it began.
        // addTodo(title:) is left out: its arguments are shown to nobody.
    }
}
