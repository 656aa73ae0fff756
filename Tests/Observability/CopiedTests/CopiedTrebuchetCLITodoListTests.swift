// swift-format-ignore-file
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetCLI

@Test("recorded calls of todos")
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
        #expect(await recorded.matches(#"{"todos":[{"id":"3D105E18-A52B-4C1F-B6BD-0546A3B38DD5","title":"Milk","isDone":false}]}"#, in: actor.observeState()))
        _ = try await actor.addTodo(title: recorded(#""Bread""#))
        #expect(await recorded.matches(#"{"todos":[{"id":"3D105E18-A52B-4C1F-B6BD-0546A3B38DD5","title":"Milk","isDone":false},{"id":"091A0A1C-6362-401A-9717-7056C2A6C49B","title":"Bread","isDone":false}]}"#, in: actor.observeState()))
        _ = try await actor.toggleTodo(id: recorded(#""3D105E18-A52B-4C1F-B6BD-0546A3B38DD5""#))
        await #expect(throws: (any Error).self) { _ = try await actor.removeTodo(id: recorded(#""00000000-0000-0000-0000-000000000001""#)) }
        _ = try await actor.removeTodo(id: recorded(#""3D105E18-A52B-4C1F-B6BD-0546A3B38DD5""#))
        _ = try await actor.removeTodo(id: recorded(#""091A0A1C-6362-401A-9717-7056C2A6C49B""#))
        #expect(await recorded.matches(#"{"todos":[]}"#, in: actor.observeState()))
    }
}
