import Foundation
import Trebuchet

/// One thing to do.
struct Todo: Codable, Sendable, Identifiable {
    var id = UUID()
    var title: String
    var isDone = false
}

/// There is no such thing to do, perhaps any more.
struct NoSuchTodo: Error, Codable, Sendable {
    var id: UUID
}

/// A list that everybody who opens the page shares.
@Trebuchet
distributed actor Todos {
    struct State: Codable, Sendable { var todos: [Todo] = [] }
    @StreamedState(persisted: true) var state: State = State()

    /// Adds one at the end.
    @Idempotent
    distributed func addTodo(title: String) -> Todo {
        let todo = Todo(title: title)
        state.todos.append(todo)
        return todo
    }

    distributed func toggleTodo(id: UUID) throws(NoSuchTodo) -> Todo {
        guard let index = state.todos.firstIndex(where: { $0.id == id }) else { throw NoSuchTodo(id: id) }
        state.todos[index].isDone.toggle()
        return state.todos[index]
    }

    distributed func removeTodo(id: UUID) throws(NoSuchTodo) {
        guard let index = state.todos.firstIndex(where: { $0.id == id }) else { throw NoSuchTodo(id: id) }
        state.todos.remove(at: index)
    }
}
